"""vLLM over HTTP: any recent server, one or several, kept up to date by pushed weights.

Promise: ids and logprobs are the server's own; every token carries the version of the weights that sampled it where the
server tells; a push reaches all servers or none, carries every tied tensor, and is proved by logprobs; every call ends
by its deadline; a server started here leaves no process behind. Nothing here imports vLLM: the server has an
environment of its own.
"""

from journeyman.engines.vllm.engine import Prefix, VllmEngine
from journeyman.engines.vllm.launch import ServerSpec, VllmServer, launch
from journeyman.engines.vllm.ledger import Push
from journeyman.engines.vllm.proof import Proof, Prove

__all__ = ["Prefix", "Proof", "Prove", "Push", "ServerSpec", "VllmEngine", "VllmServer", "launch"]
