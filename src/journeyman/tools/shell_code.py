"""code_exec: a shell command line in the sandbox; output bounded, raw Python told apart."""

from __future__ import annotations

import ast
import json
import re

from journeyman.sandbox.errors import ExecTimeout
from journeyman.sandbox.protocol import Sandbox

MAX_OUTPUT_BYTES = 200_000
"""Of each stream; what comes after is counted and dropped by the sandbox."""

_PYTHON = re.compile(
    r"^\s*(import [\w.]+|from [\w.]+ import |def \w+\(|class \w+[:(]|print\(|with open\(|@\w+)", re.MULTILINE
)
_SHELL = re.compile(
    r"^\s*(python3?|sh|bash|cat|echo|ls|cd|pip|awk|sed|grep|\./|[A-Z_]+=)\b|<<|\$\(|&&|\|\||(^|\s)\|\s", re.MULTILINE
)

RAW_PYTHON = (
    "error: code_exec takes a shell command line, and this is Python. Run it as\n"
    "python3 - <<'EOF'\n...your code...\nEOF\nor write it to a file first. Nothing was run."
)


def is_raw_python(code: str) -> bool:
    """Whether a text is Python source and not a shell command line: it parses, and says things only Python says."""
    if _SHELL.search(code) or not _PYTHON.search(code):
        return False
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def run_shell(sandbox: Sandbox, code: str, *, deadline_s: float, cwd: str) -> tuple[str, bool]:
    """(JSON with ``success``, ``exit_status`` and ``output``, whether it passed its deadline).

    Raises:
        SandboxLost: the sandbox is gone.
    """
    try:
        result = sandbox.exec(
            ["/bin/sh", "-c", code], deadline_s=deadline_s, cwd=cwd, max_output_bytes=MAX_OUTPUT_BYTES
        )
    except ExecTimeout as error:
        said = _joined(error.stdout, error.stderr, error.omitted_bytes)
        note = f"(stopped after {deadline_s:g} s with everything it had started; run long work in parts)"
        return _shown(False, 124, f"{said}\n{note}"), True
    output = _joined(result.stdout, result.stderr, result.omitted_bytes)
    if result.oom_kills:
        output += "\n(the sandbox's memory ran out and a process was killed; work on less at a time)"
    return _shown(result.return_code == 0, result.return_code, output), False


def _joined(stdout: bytes, stderr: bytes, omitted: int) -> str:
    parts = [stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace")]
    text = "\n".join(part.rstrip("\n") for part in parts if part)
    return (
        f"{text}\n[{omitted} bytes of output were dropped; write it to a file and look at parts]" if omitted else text
    )


def _shown(success: bool, status: int, output: str) -> str:
    return json.dumps({"success": success, "exit_status": status, "output": output}, ensure_ascii=False)
