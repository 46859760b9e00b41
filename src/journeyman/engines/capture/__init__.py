"""Any agent program in front of any engine, recorded token by token: an endpoint that looks like a chat service.

Promise: what is stored is what was sampled, never an encoding of text; a conversation that the program continues with
our own turn only grows; one that it rewrites is forked from the longest prefix that is left, and counted; a turn was
made durable before the program saw it; the endpoint listens on loopback and asks for a token. What a program says of
earlier turns is compared, never trusted as tokens.
"""

from journeyman.engines.capture.journal import CaptureReport, contexts_in, report_of
from journeyman.engines.capture.lines import Lines
from journeyman.engines.capture.serve import CaptureSpec, serve

__all__ = ["CaptureReport", "CaptureSpec", "Lines", "contexts_in", "report_of", "serve"]
