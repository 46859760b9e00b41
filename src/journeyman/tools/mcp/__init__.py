"""mcp: the Model Context Protocol in both directions, with the official SDK (extra ``mcp``), behind ``ToolSet``.

Promise: a tool gives the same observation in process and over the protocol; a server that cannot be reached fails the
start of a trial by name, one that dies is started again; every wait ends; no server outlives whoever started it. The
SDK is imported inside functions, since it costs about a second.
"""
