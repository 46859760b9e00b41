"""A tool server over standard streams, written out by hand: two tools and no library. ``word`` reads a variable."""

from __future__ import annotations

import json
import os
import sys

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    {"name": "word", "description": "The word of the day.", "inputSchema": {"type": "object", "properties": {}}},
    {"name": "shout", "description": "Say it louder.", "inputSchema": TEXT},
]


def answer(request: dict[str, object], result: dict[str, object]) -> None:
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


for line in sys.stdin:
    request = json.loads(line)
    method, params = request.get("method"), request.get("params") or {}
    if method == "initialize":
        about = {"name": "words", "version": "1"}
        tools = {"capabilities": {"tools": {}}, "serverInfo": about}
        answer(request, {"protocolVersion": params["protocolVersion"], **tools})
    elif method == "tools/list":
        answer(request, {"tools": TOOLS})
    elif method == "tools/call":
        text = os.environ.get("WORD", "rhubarb")
        if params["name"] == "shout":
            text = str(params["arguments"]["text"]).upper()
        answer(request, {"content": [{"type": "text", "text": text}]})
    elif method == "ping":
        answer(request, {})
