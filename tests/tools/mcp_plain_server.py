"""A tool server over standard streams, written out by hand: starts at once, and dies, hangs and forgets on demand.

    python mcp_plain_server.py JOURNAL

``JOURNAL`` gets one line per start and per effect, so that a test sees what really happened.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

JOURNAL = sys.argv[1]
HINTS = {"echo": {"readOnlyHint": True}, "die_once": {"idempotentHint": True}, "late": {"readOnlyHint": True}}
TOOLS = ("echo", "note", "die", "die_once", "late", "wedge", "malformed", "refuse", "child")


def journal(word: str) -> None:
    with open(JOURNAL, "a") as file:
        file.write(f"{word} {os.getpid()}\n")


def starts() -> int:
    with open(JOURNAL) as file:
        return sum(line.startswith("start") for line in file)


def answer(request: dict[str, object], **body: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **body}), flush=True)


def call(request: dict, name: str, arguments: dict) -> None:
    journal(name)
    if name in ("die", "die_once") and (name == "die" or starts() == 1):
        os.kill(os.getpid(), 9)
    if name == "late":
        return  # never answered, but the loop goes on
    if name == "wedge":
        time.sleep(100)
    text = str(arguments.get("text", name))
    if name == "child":
        text = str(subprocess.Popen(["sleep", "100"], start_new_session=True).pid)
    if name == "refuse":
        answer(request, error={"code": -32602, "message": "not like this"})
    elif name == "malformed":
        answer(request, result={"content": "no list"})
    else:
        answer(request, result={"content": [{"type": "text", "text": text}]})


journal("start")
print("a word on standard error", file=sys.stderr)
for line in sys.stdin:
    request = json.loads(line)
    method, params = request.get("method"), request.get("params") or {}
    if method == "initialize":
        version = params["protocolVersion"]
        about = {"name": "plain", "version": "1"}
        answer(request, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about})
    elif method == "tools/list":
        at = int(params.get("cursor", "0"))
        page = [{"name": n, "inputSchema": {"type": "object"}, "annotations": HINTS.get(n)} for n in TOOLS[at : at + 4]]
        page = [{key: value for key, value in tool.items() if value} for tool in page]
        more = {"nextCursor": str(at + 4)} if at + 4 < len(TOOLS) else {}
        answer(request, result={"tools": page, **more})
    elif method == "tools/call":
        call(request, params["name"], params.get("arguments") or {})
    elif method == "ping":
        answer(request, result={})
