"""Runs that go on without a terminal: a state file says who drives a run, so it can be listed, followed and stopped."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from journeyman.clock import now
from journeyman.durable import write_json
from journeyman.errors import InputError
from journeyman.redact import process_redactor
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.identity import start_ticks
from journeyman.trials.resume import close_orphans, final_rows
from journeyman.trials.store import Owner, open_run

FILE = "trials-run.json"
LOG = "run.log"
STOP_S = 60.0
"""Seconds that an owner has to end what runs after it was asked to; then it is killed and its run is reaped."""
START_S = 120.0


class RunState:
    """The state file of a run while it is driven; a context manager that notes the end.

    Attributes:
        label: owner of every sandbox of the run; the same when it is resumed.
    """

    def __init__(self, directory: Path, facts: dict[str, Any]) -> None:
        self.directory, self._facts = directory, facts
        self.label = str(facts["label"])

    @classmethod
    def begin(cls, directory: Path, plan: dict[str, Any]) -> RunState:
        """Take the run over; whoever drove it before is gone, since the store has one owner."""
        old = _read(directory) or {}
        facts = {
            "label": old.get("label") or f"trials-{os.urandom(5).hex()}",
            "state": "running",
            "pid": os.getpid(),
            "start_ticks": start_ticks(os.getpid()),
            "started_at": now(),
            "ended_at": None,
            "plan": plan,
        }
        state = cls(directory, facts)
        state._write()
        return state

    def note(self, state: str) -> None:
        """Say how it ended, other than by itself."""
        self._facts["state"] = state
        self._write()

    def __enter__(self) -> RunState:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._facts["state"] == "running":
            self._facts["state"] = "ended" if error is None else "failed"
        self._facts["ended_at"] = now()
        self._write()

    def _write(self) -> None:
        write_json(self.directory / FILE, process_redactor().data(self._facts))


@dataclass(frozen=True)
class RunInfo:
    """One run as a stranger sees it.

    Attributes:
        directory: of the run.
        state: ``running``, ``ended``, ``cancelled``, ``failed``, or ``lost``: its owner was killed.
        pid: of its owner.
        started_at: when the owner took it over.
        trials: wanted, by the plan.
        outcomes: trials that have their row, by outcome class.
        is_live: its owner is alive.
    """

    directory: Path
    state: str
    pid: int
    started_at: str
    trials: int
    outcomes: dict[str, int]
    is_live: bool

    @property
    def line(self) -> str:
        """One line for a person."""
        done = sum(n for name, n in self.outcomes.items() if name != "cancelled")
        counts = ", ".join(f"{name} {n}" for name, n in sorted(self.outcomes.items()))
        return f"{self.state:<9} {done}/{self.trials}  {self.directory}  {counts}"


def first_day(directory: Path) -> str:
    """The date of a run's first start, ISO: kept in its plan; today for one that has not begun."""
    kept = (_read(directory) or {}).get("plan") or {}
    return str(kept.get("today") or now()[:10])


def info_of(directory: Path) -> RunInfo:
    """The run in a directory. Raises InputError when there is none."""
    facts = _read(directory)
    if facts is None:
        raise InputError(str(directory), f"holds no {FILE}", hint="start one: journeyman trials run")
    is_live = facts["start_ticks"] is not None and start_ticks(facts["pid"]) == facts["start_ticks"]
    state = facts["state"] if is_live or facts["state"] != "running" else "lost"
    with open_run(directory) as run:
        last = final_rows(run.trials())
    plan = facts["plan"]
    return RunInfo(
        directory,
        state,
        facts["pid"],
        facts["started_at"],
        len(plan["tasks"]) * plan["samples"],
        dict(Counter(row.outcome for row in last.values())),
        is_live,
    )


def list_runs(directory: Path) -> list[RunInfo]:
    """The run in a directory, or those in its sub-directories, sorted."""
    if not directory.is_dir():
        raise InputError(str(directory), "is not a directory")
    found = [directory] if (directory / FILE).is_file() else sorted(p.parent for p in directory.glob(f"*/{FILE}"))
    return [info_of(path) for path in found]


def detach(words: Sequence[str], directory: Path) -> int:
    """Start the same command in a session of its own; returns the pid once it drives the run.

    Args:
        words: of the command line after ``journeyman``.
        directory: the run.

    Raises:
        InputError: it ended before it began; the last line of its log says why.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / LOG).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "journeyman.cli.main", *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        facts = _read(directory)
        if facts is not None and facts["pid"] == process.pid:
            process.returncode = 0  # it is on its own now: nobody waits for it here
            return process.pid
        if process.poll() is not None:
            lines = (directory / LOG).read_text(errors="replace").strip().splitlines() or ["it said nothing"]
            raise InputError(str(directory / LOG), f"the run did not start: {lines[-1]}")
        time.sleep(0.05)
    process.kill()
    process.wait(timeout=10)
    raise InputError(str(directory / LOG), f"the run did not start within {START_S:g} s")


def attach(directory: Path, on_change: Callable[[RunInfo], None], *, poll_s: float = 0.5) -> RunInfo:
    """Follow a run until nobody drives it any more; returns how it stands then."""
    before: RunInfo | None = None
    while True:
        info = info_of(directory)
        if before is None or info != before:
            on_change(info)
        if not info.is_live or info.state != "running":
            return info
        before = info
        time.sleep(poll_s)


def cancel(directory: Path) -> RunInfo:
    """Stop a run: its owner kills what runs and records it as ``cancelled``; a dead owner's leavings are removed.

    Running the same command again goes on with the trials that were cancelled or never began.
    """
    info = info_of(directory)
    if info.is_live and info.state == "running":
        with contextlib.suppress(ProcessLookupError):
            os.kill(info.pid, signal.SIGTERM)
        until = time.monotonic() + STOP_S
        while (info := info_of(directory)).is_live and time.monotonic() < until:
            time.sleep(0.05)
        if info.is_live:
            with contextlib.suppress(ProcessLookupError):
                os.kill(info.pid, signal.SIGKILL)
            time.sleep(0.5)
    facts = _read(directory) or {}
    if facts.get("state") == "running":
        PROVIDERS[facts["plan"]["provider"]]().reap(facts["label"])
        with Owner(directory) as owner:
            close_orphans(owner)
        write_json(directory / FILE, {**facts, "state": "cancelled", "ended_at": now()})
    return info_of(directory)


def _read(directory: Path) -> dict[str, Any] | None:
    try:
        facts: dict[str, Any] = json.loads((directory / FILE).read_text())
    except (OSError, ValueError):
        return None
    return facts
