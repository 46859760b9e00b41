"""One request in, one answer out; whatever goes wrong with a file or an argument is an answer.

Request, JSON: ``tool``, ``arguments``; optional ``root``, ``apps``, ``tmp``, ``max_chars``, ``deadline_s`` (after
which this process is killed by its own alarm), ``reads`` (an argument's name: the answer then carries that file's
digest) and ``known`` (digests for which the caller has the answer already).
Answer, JSON: ``content``, ``is_error``, ``changed`` (paths), ``spill`` (path of the whole text) and ``sha256``; or
``same`` with the digest when it is one of ``known``; or ``elsewhere`` when the program with the parsers is to be asked.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .kinds import NeedsParsers
from .workspace import SPILL, Refused, Workspace, as_text

MAX_CHARS = 20_000
"""Characters of an answer; a longer one is cut in its middle and kept whole in a file."""

HEAD_SHARE = 0.75
"""Part of a cut answer that comes from its beginning."""

MODULES = {
    name: name
    for name in (
        *("filesystem", "pdfs", "documents", "spreadsheets", "presentations"),
        *("mail", "chat", "calendar", "search", "code", "output"),
    )
}
"""Server -> module of this package with ``TOOLS``."""

ToolFunction = Callable[..., Any]


def handle(payload: bytes) -> bytes:
    """Serve one request. Raises ValueError only for a payload that is no request."""
    request = json.loads(payload)
    if request.get("deadline_s"):  # the default action ends the process, whatever a parser holds
        signal.setitimer(signal.ITIMER_REAL, float(request["deadline_s"]))
    answer = answer_of(request)
    return json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")


def function_of(name: str) -> ToolFunction:
    """The function of a public name. Raises Refused for a name that does not exist."""
    server, _, tool = name.partition("_")
    if server not in MODULES:
        raise Refused(f"no tool {name}")
    tools: dict[str, ToolFunction] = importlib.import_module(f".{MODULES[server]}", __package__).TOOLS
    if tool not in tools:
        raise Refused(f"no tool {name}; {server} has {', '.join(sorted(tools))}")
    return tools[tool]


def answer_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request, as JSON values."""
    workspace = Workspace(
        str(request.get("root") or os.environ.get("WORKTOOLS_ROOT") or "/ws"),
        str(request.get("apps") or os.environ.get("WORKTOOLS_APPS") or ""),
        str(request.get("tmp") or os.environ.get("TMPDIR") or "/tmp"),
    )
    limit = int(request.get("max_chars") or MAX_CHARS)
    arguments = dict(request.get("arguments") or {})
    answer: dict[str, Any] = {"content": "", "is_error": False, "changed": []}
    try:
        function = function_of(str(request["tool"]))
        if request.get("reads"):
            data, _ = workspace.read(str(arguments.get(str(request["reads"]), "")))
            answer["sha256"] = hashlib.sha256(data).hexdigest()
            if answer["sha256"] in (request.get("known") or ()):
                return {"same": answer["sha256"]}
        answer["content"] = as_text(function(workspace, **arguments))
    except NeedsParsers:
        return {"elsewhere": True}
    except (MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of a Rust library is a BaseException
        answer["content"], answer["is_error"] = _explained(error), True
    answer["changed"] = workspace.changed
    return _bounded(answer, limit, workspace)


def _explained(error: BaseException) -> str:
    """What went wrong, for the policy: our own refusals as they are, everything else named."""
    if isinstance(error, Refused) or hasattr(error, "remedy"):  # an officedocs error names file, place and remedy
        return f"error: {error}"
    if isinstance(error, RecursionError):
        return "error: the file is nested too deeply to be read"
    words = str(error).strip().splitlines()[0][:300] if str(error).strip() else "no more is known"
    return f"error: this file or argument could not be handled ({type(error).__name__}: {words})"


def _bounded(answer: dict[str, Any], limit: int, workspace: Workspace) -> dict[str, Any]:
    text = answer["content"] or "(nothing)"
    text = text.encode("utf-8", "replace").decode()  # lone surrogates of broken files
    if len(text) > limit:
        path = workspace.temporary / SPILL / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.txt"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(text)
            answer["spill"] = str(path)
            rest = f"the whole text lies in {path}; read on with output_read_page or sed"
        except OSError:
            rest = "the whole text could not be kept; ask for less"
        head = int(limit * HEAD_SHARE)
        tail = limit - head
        omitted = len(text) - limit
        text = f"{text[:head]}\n[... {omitted} characters left out of {len(text)}; {rest} ...]\n{text[-tail:]}"
    answer["content"] = text
    return answer
