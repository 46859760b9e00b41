"""Checks of code: the delivered program runs as a child with limits, on inputs that the truth drew.

The program's files travel through a pipe and are imported from memory: the sandbox lets nobody write a file. What runs
them is another program than this one and gets none of its memory, its environment or its open files; it forks once per
case (``casecode.py``).
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import marshal
import os
import select
import signal
import subprocess
import sys
import time
from functools import cache
from typing import Any

from .bundle import Bundle
from .comparing import equal, normal, shown
from .outcome import Outcome

MAX_OUTPUT_BYTES = 1_000_000
CASE_S = 5.0
"""Seconds one case may take, by default."""

GRACE_S = 10.0
"""What starting and answering may take beside a case."""

PATIENCE = 3.0
"""On a busy machine a case gets up to so many times as long, see ``casecode.is_over``."""

ENOUGH_WRONG = 3
"""Where one wrong case decides, the others are not run after so many."""


@cache
def _case_code() -> str:
    """The text of ``casecode.py``, wherever this package lies."""
    spec = importlib.util.find_spec(f"{__package__}.casecode")
    assert spec is not None
    return str(spec.loader.get_source(spec.name))  # type: ignore[union-attr]


class Runner:
    """A child that runs one deliverable's cases. State: the process, None before the first case and after a loss."""

    def __init__(self, sources: dict[str, str]) -> None:
        self._sources = sources
        self._process: subprocess.Popen[bytes] | None = None

    def answer(self, case: dict[str, Any], limit_s: float) -> tuple[int | None, bytes, bytes] | None:
        """Status (None for no end in time), output and errors of a case; None when it broke what runs it."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _case_code()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={"PYTHONDONTWRITEBYTECODE": "1"},
                close_fds=True,
                start_new_session=True,
            )
            self._say({"files": self._sources})
        asked = {"files": case.get("files", {}), "args": case.get("args", []), "stdin": str(case.get("stdin", ""))}
        self._say({**asked, "entry": case["entry"], "limit_s": limit_s, "most": MAX_OUTPUT_BYTES})
        ends_at = time.monotonic() + PATIENCE * limit_s + GRACE_S
        head, line_end, body = self._heard(bytearray(), 1, ends_at).partition(b"\n")
        try:
            status, out, err = head.decode().split(" ")
            whole = self._heard(body, int(out) + int(err), ends_at)
            if not line_end or len(whole) != int(out) + int(err):
                raise ValueError(head)
            return int(status) if status else None, bytes(whole[: int(out)]), bytes(whole[int(out) :])
        except ValueError:
            self.close()
            return None

    def _say(self, value: Any) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        data = marshal.dumps(value)
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(len(data).to_bytes(4, "big") + data)
            self._process.stdin.flush()

    def _heard(self, found: bytearray, least: int, ends_at: float) -> bytearray:
        """What it says until there is enough, or what there is of it when the time is over."""
        assert self._process is not None
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while len(found) < least and len(found) <= 3 * MAX_OUTPUT_BYTES:
            if not select.select([descriptor], [], [], max(0.0, ends_at - time.monotonic()))[0]:
                break
            data = os.read(descriptor, 1 << 20)
            if not data:
                break
            found += data
        return found

    def close(self) -> None:
        """End it and whatever it started."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        process.wait()


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
    is_shared = params.get("credit") == "share"
    runner = bundle.kept("runner", lambda: Runner(sources))
    wrong: list[str] = []
    run = 0
    for number, case in enumerate(params["cases"], start=1):
        run = number
        problem = _case(runner, {**case, "entry": entry}, params)
        if problem:
            wrong.append(f"case {case.get('name', number)}: {problem}")
        if len(wrong) >= ENOUGH_WRONG and not is_shared:
            break
    total = len(params["cases"])
    score = 1.0 if not wrong else (run - len(wrong)) / total if is_shared else 0.0
    rest = f", {total - run} not run" if run < total else ""
    return Outcome.of(score, f"{entry}: {run - len(wrong)} of {total} cases{rest}", wrong)


def _case(runner: Runner, case: dict[str, Any], params: dict[str, Any]) -> str:
    """What is wrong with a case; empty for nothing."""
    limit_s = float(params.get("case_s", CASE_S))
    done = runner.answer(case, limit_s)
    if done is None:
        return "the program ended what ran it"
    status, out, err = done
    if status is None:
        return f"no end within {limit_s:g} s"
    wanted = case.get("status", 0)
    if (status == 0) != (wanted == 0):
        last = err.decode("utf-8", "replace").strip().splitlines()[-1:]
        return f"status {status}, {wanted} was asked for" + (f": {last[0][:120]}" if last else "")
    text = out.decode("utf-8", "replace")
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
