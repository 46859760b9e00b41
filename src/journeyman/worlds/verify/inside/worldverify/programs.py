"""Checks of code: the delivered program runs as a child with limits, on inputs that the truth drew.

The program's files travel through a pipe and are imported from memory: the sandbox lets nobody write a file. The child
is another program than this one and gets none of its memory, its environment or its open files.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from .bundle import Bundle
from .comparing import equal, normal, shown
from .outcome import Outcome

MAX_OUTPUT_BYTES = 1_000_000
CASE_S = 5.0
"""Seconds one case may take, by default."""

_BOOT = """\
import sys, json, io, importlib.abc, importlib.util
files = json.loads(sys.stdin.buffer.readline())
main = json.loads(sys.stdin.buffer.readline())
class _Memory(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    def find_spec(self, name, path=None, target=None):
        base = name.replace(".", "/")
        for file, package in ((base + ".py", False), (base + "/__init__.py", True)):
            if file in files:
                return importlib.util.spec_from_loader(name, self, is_package=package, origin=file)
    def get_source(self, name):
        base = name.replace(".", "/")
        return files.get(base + ".py", files.get(base + "/__init__.py"))
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        exec(compile(self.get_source(module.__name__), module.__name__, "exec"), module.__dict__)
sys.meta_path.insert(0, _Memory())
import builtins, os.path
_open = builtins.open
def open(file, mode="r", *args, **kwargs):
    name = str(file)
    if name in files and not set(mode) & set("wax+"):
        text = files[name]
        return io.BytesIO(text.encode()) if "b" in mode else io.StringIO(text, newline=kwargs.get("newline"))
    return _open(file, mode, *args, **kwargs)
builtins.open = io.open = open
sys.argv = [main["entry"], *main["args"]]
scope = {"__name__": "__main__", "__file__": main["entry"]}
exec(compile(files[main["entry"]], main["entry"], "exec"), scope)
"""


def properties(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """What the program prints, case by case.

    Params: ``entry``: delivered file; ``cases``: [{``args``?, ``stdin``?, ``files``?: name -> text, ``stdout``? or
    ``json``?: expected, ``status``?: 0, ``name``?}]; ``case_s``?; ``credit``: ``all`` (default) or ``share``; ``tol``?.
    Files of a case are read by ``open`` as if they lay in the working directory.
    """
    sources = {name: data.decode("utf-8", "replace") for name, data in bundle.files.items() if name.endswith(".py")}
    entry = params["entry"]
    if entry not in sources:
        bundle.data(entry)
    wrong = []
    for number, case in enumerate(params["cases"], start=1):
        problem = _case(sources, entry, case, params)
        if problem:
            wrong.append(f"case {case.get('name', number)}: {problem}")
    total = len(params["cases"])
    right = total - len(wrong)
    score = 1.0 if not wrong else right / total if params.get("credit") == "share" else 0.0
    return Outcome.of(score, f"{entry}: {right} of {total} cases", wrong)


def _case(sources: dict[str, str], entry: str, case: dict[str, Any], params: dict[str, Any]) -> str:
    """What is wrong with a case; empty for nothing."""
    files = {**sources, **case.get("files", {})}
    lines = [json.dumps(files), json.dumps({"entry": entry, "args": case.get("args", [])})]
    given = "\n".join(lines).encode() + b"\n" + str(case.get("stdin", "")).encode()
    limit_s = float(params.get("case_s", CASE_S))
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _BOOT],
            input=given,
            capture_output=True,
            timeout=limit_s,
            check=False,
            env={"PYTHONDONTWRITEBYTECODE": "1"},
            close_fds=True,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return f"no end within {limit_s:g} s"
    status = case.get("status", 0)
    if (done.returncode == 0) != (status == 0):
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return f"status {done.returncode}, {status} was asked for" + (f": {last[0][:120]}" if last else "")
    text = done.stdout[:MAX_OUTPUT_BYTES].decode("utf-8", "replace")
    if "json" in case:
        try:
            value = json.loads(text)
        except ValueError:
            return f"it prints {shown(text)}, JSON was asked for"
        return "" if same(case["json"], value, params.get("tol")) else "the JSON it prints is another one"
    if "stdout" in case and _lines(text) != _lines(case["stdout"]):
        return f"it prints {shown(text)}"
    return ""


def same(expected: Any, got: Any, tol: dict[str, float] | None) -> bool:
    """Equal JSON, numbers within tolerance."""
    if isinstance(expected, dict) and isinstance(got, dict):
        return expected.keys() == got.keys() and all(same(expected[key], got[key], tol) for key in expected)
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(same(a, b, tol) for a, b in zip(expected, got, strict=True))
    if isinstance(expected, dict | list) or isinstance(got, dict | list):
        return False
    if expected is None or got is None:
        return expected is got
    return equal(expected, got, tol) or (expected == "" and got == "")


def _lines(text: str) -> list[str]:
    return [normal(line) for line in text.strip().splitlines()]
