"""Grades one trial per frame, each in its own forked child: runs in the verifier sandbox under the forkserver.

Standalone (Python >= 3.10, standard library), copied into the sandbox beside ``checks/<sha256>.py``. The server process
compiles the check sources, which are the same for everyone, before it forks; a trial's truth and artifacts arrive in a
frame that only the child reads, so no process ever holds those of two trials.

Frame: 4 bytes big-endian header length, JSON header ``{"check", "timeout_s", "truth", "artifacts": [[name, size]]}``
(``truth`` is a size in bytes), the truth as JSON, then the artifacts one after the other. Answer: JSON
``{"kind": "scored", "reward", "passed", "checks"}``, ``{"kind": "malformed_deliverable", "explain"}`` or
``{"kind": "verifier_error", "error", "explain"}``; whoever receives it validates it.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NoReturn

LIBRARY = "/opt/agent/lib"
"""Where the verifier's environment has its packages."""

MAX_JSON_DEPTH = 64
"""Deepest JSON deliverable: an answer is flat, a deeper one only serves to overflow whatever walks over it."""

Answer = dict[str, Any]


class OutOfTime(BaseException):
    """The check's own deadline; not an ``Exception``, so that a check does not swallow it by accident."""


def load_checks(directory: Path) -> dict[str, CodeType | str]:
    """Code, or the error text, of each ``<sha256>.py``; modules they import are loaded once for all children.

    A check that says ``PRELOAD = "module"`` has that module loaded as well, from the verifier's environment or from the
    archives (``<sha256>.zip``) that tasks brought along.
    """
    checks: dict[str, CodeType | str] = {}
    for path in sorted(directory.glob("*.py")):
        try:
            tree = ast.parse(path.read_bytes())
            checks[path.stem] = compile(tree, "check.py", "exec")
        except (SyntaxError, ValueError) as error:
            checks[path.stem] = f"check.py is not Python: {error}"
            continue
        for node in tree.body:
            preload(node)
    return checks


def preload(node: ast.stmt) -> None:
    """Import the standard modules of an import statement; the check itself reports what cannot be imported."""
    names: list[str] = []
    if isinstance(node, ast.ImportFrom):
        names = [node.module or ""]
    elif isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif (wanted := declared(node)) is not None:
        archives = [str(path) for path in sorted((Path(__file__).parent / "checks").glob("*.zip"))]
        sys.path += [path for path in (LIBRARY, *archives) if path not in sys.path]
        with contextlib.suppress(ImportError):
            importlib.import_module(wanted)
    for name in names:
        if name.partition(".")[0] in sys.stdlib_module_names:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def declared(node: ast.stmt) -> str | None:
    """The module that ``PRELOAD = "module"`` names; None for any other statement."""
    is_named = isinstance(node, ast.Assign) and [getattr(t, "id", "") for t in node.targets] == ["PRELOAD"]
    value = node.value if is_named and isinstance(node, ast.Assign) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def unreadable(name: str, data: bytes) -> str | None:
    """Why a deliverable cannot be read as what its name says, or None. Only JSON is looked at here."""
    if not name.endswith(".json"):
        return None
    try:
        value = STRICT_JSON.decode(data.decode("utf-8"))
    except RecursionError:
        return f"{name} is nested too deeply"
    except ValueError as error:
        return f"{name} is not JSON: {error}"
    level = [value]
    for _ in range(MAX_JSON_DEPTH):
        level = [child for parent in level for child in containers_in(parent)]
        if not level:
            return None
    return f"{name} is nested deeper than {MAX_JSON_DEPTH} levels"


def containers_in(value: Any) -> list[Any]:
    """The lists and objects directly inside a JSON value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [child for child in inner if isinstance(child, dict | list)]


def refuse_constant(word: str) -> NoReturn:
    """NaN and the infinities are no JSON; Python's reader would accept them."""
    raise ValueError(f"{word} is no JSON number")


def parse_frame(payload: bytes) -> tuple[dict[str, Any], Any, dict[str, bytes]]:
    """Header, truth and artifacts of one frame."""
    start = 4 + int.from_bytes(payload[:4], "big")
    header = json.loads(payload[4:start])
    truth = json.loads(payload[start : start + header["truth"]])
    start += header["truth"]
    artifacts = {}
    for name, size in header["artifacts"]:
        artifacts[name] = payload[start : start + size]
        start += size
    return header, truth, artifacts


def out_of_time(signum: int, frame: FrameType | None) -> NoReturn:
    """Handler of the alarm."""
    raise OutOfTime


def grade(code: CodeType | str, truth: Any, artifacts: dict[str, bytes], timeout_s: float) -> Answer:
    """Run one check; whatever it does, the answer is one of the three kinds."""
    for name, data in artifacts.items():
        reason = unreadable(name, data)
        if reason:
            return {"kind": "malformed_deliverable", "explain": reason}
    if isinstance(code, str):
        return failure("VerifierCrashed", code)
    signal.signal(signal.SIGALRM, out_of_time)
    signal.setitimer(signal.ITIMER_REAL, timeout_s)
    try:
        try:
            module: dict[str, Any] = {"__name__": "check", "__file__": "check.py"}
            exec(code, module)  # the task's own check, which its author wrote; never a file of an agent
            result = module["grade"](artifacts, truth)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        parts = {"passed": result.get("passed"), "checks": result.get("checks", [])}
        return {"kind": "scored", "reward": result["reward"], **parts}
    except OutOfTime:
        return failure("VerifierTimeout", f"check.py did not end within {timeout_s:g} s")
    except MemoryError:
        return failure("VerifierKilled", "check.py ran out of memory")
    except BaseException as error:
        if any(kind.__name__ == "MalformedDeliverable" for kind in type(error).__mro__):
            return {"kind": "malformed_deliverable", "explain": str(error)}
        return failure("VerifierCrashed", f"check.py raised {described(error)}")


def failure(error: str, explain: str) -> Answer:
    """The answer of a check that broke; ``error`` is the name of a type in ``journeyman.tasks.errors``."""
    return {"kind": "verifier_error", "error": error, "explain": explain}


def described(error: BaseException) -> str:
    """Type, text and line of an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" (line {trace.tb_lineno} of {trace.tb_frame.f_code.co_filename})" if trace is not None else ""
    return f"{type(error).__name__}: {str(error)[:500]}{place}"


def handle(payload: bytes) -> bytes:
    """Frame handler for the forkserver: bytes in, JSON bytes out. Runs in the child."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.set_threshold(100_000)  # a short-lived child that collects garbage only copies pages of its parent
    header, truth, artifacts = parse_frame(payload)
    answer = grade(CHECKS[header["check"]], truth, artifacts, header["timeout_s"])
    try:
        return json.dumps(answer).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return json.dumps(failure("VerifierCrashed", f"check.py returned what is not JSON: {error}")).encode()


def main(directory: str) -> int:
    """Print why a file below ``directory`` cannot be read; exit status 3 if there is one, else 0."""
    for parent, _, names in sorted(os.walk(directory)):
        for path in sorted(Path(parent, name) for name in names):
            reason = unreadable(path.name, path.read_bytes())
            if reason:
                sys.stdout.write(reason + "\n")
                return 3
    return 0


def rehearse() -> None:
    """Grade nothing a few times in the server: a child pays for each page that it is the first to write, and Python
    writes into its code while it learns in some eight calls how that is used.
    """
    header = json.dumps({"check": "", "timeout_s": 1.0, "truth": 2, "artifacts": [["answer.json", 2]]}).encode()
    frame = len(header).to_bytes(4, "big") + header + b"{}" + b"{}"
    source = "def grade(artifacts, truth):\n    return {'reward': 1.0, 'passed': True, 'checks': []}\n"
    CHECKS[""] = compile(source, "check.py", "exec")
    for _ in range(10):
        handle(frame)
    del CHECKS[""]


STRICT_JSON = json.JSONDecoder(parse_constant=refuse_constant)
CHECKS = load_checks(Path(__file__).parent / "checks")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
else:
    rehearse()
