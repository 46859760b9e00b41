"""Faults in a fifth of the attempts and kill -9 of whatever can be killed: each trial ends in exactly one row."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from trial_faults import CAUSES, FAULTS
from trial_places import arguments_of, oracle_turns

from journeyman.ladder.workshop import Workshop
from journeyman.sandbox import proctree
from journeyman.sandbox.reaper import DIRECTORY_PREFIX, traces
from journeyman.trials.groups import drop_report
from journeyman.trials.outcome import OUTCOMES
from journeyman.trials.resume import final_rows
from journeyman.trials.store import TrialRow, open_run

OWNER = Path(__file__).with_name("chaos_run.py")
VICTIMS = ("owner", "supervisor", "trial", "trial", "trial")
RATE = 0.2
QUICK = tuple(kind for kind in FAULTS if kind != "hang")
"""A hang lasts until the wall clock of its attempt, which has a test of its own."""


def slowness() -> float:
    """How many times longer work takes while others run here too; working time that runs out is graded, no fault."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def plan_of(
    workshop: Workshop, out: Path, *, trials: int, concurrency: int, limit_s: float, kinds: Sequence[str]
) -> dict[str, Any]:
    tasks = workshop.tasks("train")
    return {
        "out": str(out / "run"),
        "tasks": [str(task.path) for task in tasks],
        "samples": -(-trials // len(tasks)),
        "trials": trials,
        "scripts": {task.id: oracle_turns(workshop, task) for task in tasks},
        "place": arguments_of(workshop, label=f"chaos-{os.getpid()}-{trials}"),
        "seed": 7,
        "rate": RATE,
        "kinds": list(kinds),
        "concurrency": concurrency,
        "max_attempts": 5,
        "supervisors": 4,
        "limits": dict.fromkeys(("start_s", "setup_s", "collect_s", "stop_s", "slack_s"), limit_s)
        | {"agent_s": limit_s * slowness(), "quiesce_s": limit_s},
    }


class Chaos:
    """One owner at a time, and somebody who kills."""

    def __init__(self, plan: dict[str, Any], out: Path, seed: int) -> None:
        self.path = out / "plan.json"
        self.path.write_text(json.dumps(plan))
        self.log = (out / "owner.log").open("ab")
        self.rng = random.Random(seed)
        self.killed: Counter[str] = Counter()
        self.owner = self.begin()

    def begin(self) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(OWNER.parent), *(word for word in sys.path if word)])
        environment = {**os.environ, "PYTHONPATH": path}
        return subprocess.Popen([sys.executable, str(OWNER), str(self.path)], stderr=self.log, env=environment)

    def supervisors(self) -> list[int]:
        found = []
        for pid in proctree.children(self.owner.pid):
            with_command = Path(f"/proc/{pid}/cmdline")
            if with_command.exists() and b"executors.supervisor" in with_command.read_bytes():
                found.append(pid)
        return found

    def kill(self, victim: str) -> bool:
        supervisors = self.supervisors()
        pids = {
            "owner": [self.owner.pid],
            "supervisor": supervisors,
            "trial": [pid for supervisor in supervisors for pid in proctree.children(supervisor)],
        }[victim]
        if not pids:
            return False
        try:
            os.kill(self.rng.choice(pids), signal.SIGKILL)
        except ProcessLookupError:
            return False
        self.killed[victim] += 1
        if victim == "owner":
            self.owner.wait(timeout=60)
            self.owner = self.begin()
        return True

    def wait(self, limit_s: float, kills: int, trials: int) -> None:
        """Until the owner ends by itself; victims are killed as the run gets on, each kind at least once."""
        until = time.monotonic() + limit_s
        victims = [*VICTIMS[:3], *(self.rng.choice(VICTIMS) for _ in range(kills - 3))]
        self.rng.shuffle(victims)
        done = self.path.parent / "run" / "trials"
        while self.owner.poll() is None:
            assert time.monotonic() < until, "the run did not end"
            closed = sum(1 for _ in done.glob("*/*/DONE"))
            is_due = closed >= (kills - len(victims) + 1) * trials / (kills + 2)
            if victims and is_due and self.kill(victims[0]):
                victims.pop(0)
            time.sleep(0.05)
        self.log.close()
        assert self.owner.returncode == 0, (self.path.parent / "owner.log").read_text()[-3000:]


def check_rows(rows: list[TrialRow], trials: int, max_attempts: int) -> dict[str, TrialRow]:
    """Every trial has one row that counts, every attempt one row, and no error a reward."""
    keys = [(row.trial_id, row.attempt) for row in rows]
    assert len(set(keys)) == len(keys)
    assert all(row.is_done for row in rows)
    last = final_rows(rows)
    assert len(last) == trials
    by_trial: dict[str, list[TrialRow]] = {}
    for row in rows:
        by_trial.setdefault(row.trial_id, []).append(row)
        policy = OUTCOMES[row.cause]
        scored = row.outcome in ("solved", "failed", "malformed_deliverable")
        assert (row.reward is not None) == (scored and policy.reward_valid)
    for attempts in by_trial.values():
        assert sorted(row.attempt for row in attempts) == list(range(1, len(attempts) + 1))
        assert sum(row.reward is not None for row in attempts) <= 1
        assert sum(row.outcome != "cancelled" for row in attempts) <= max_attempts
    return last


def left_of(plan: dict[str, Any], patience_s: float = 10.0) -> list[str]:
    """Processes, groups and directories of a run, after the few moments that a dying process takes."""
    until = time.monotonic() + patience_s
    label = plan["place"]["label"]
    while True:
        mine = {os.getpid(), os.getppid()}
        found = [str(trace) for trace in traces(label).values()]
        found += [str(p) for p in Path(tempfile.gettempdir()).glob(f"{DIRECTORY_PREFIX}{label}*")]
        for path in Path("/proc").glob("[0-9]*"):
            try:
                text = (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
            except OSError:
                continue
            if label.encode() in text and int(path.name) not in mine:
                found.append(text[:200].decode(errors="replace"))
        found += [line for line in Path("/proc/mounts").read_text().splitlines() if label in line]
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.1)


def chaos(
    workshop: Workshop, out: Path, *, trials: int, concurrency: int, kills: int, limit_s: float, kinds: Sequence[str]
) -> None:
    plan = plan_of(workshop, out, trials=trials, concurrency=concurrency, limit_s=limit_s, kinds=kinds)
    started = time.monotonic()
    run = Chaos(plan, out, seed=3)
    run.wait(1200.0, kills, trials)
    with open_run(Path(plan["out"])) as stored:
        rows = stored.trials(include_open=True)
    last = check_rows(rows, trials, plan["max_attempts"])
    outcomes = Counter(row.outcome for row in last.values())
    print(f"kills {dict(run.killed)}, attempts {len(rows)}, rows {dict(outcomes)}, {time.monotonic() - started:.1f} s")
    print(f"causes {dict(Counter(row.cause for row in rows))}; {drop_report(rows).lines()[0]}")
    assert sum(run.killed.values()) == kills
    assert outcomes["solved"] >= 0.9 * trials
    assert "failed" not in outcomes
    expected = {CAUSES[kind] for kind in kinds} | {"cancelled", "trial_lost"}
    causes = {row.cause for row in rows}
    assert causes - {"verifier_failed"} <= expected
    assert len(causes) >= min(5, len(expected))
    assert left_of(plan) == []


@pytest.mark.thorough
def test_sixty_trials_under_faults_and_kills_end_in_one_row_each_and_leave_nothing(
    prepared: Workshop, tmp_path: Path
) -> None:
    chaos(prepared, tmp_path, trials=60, concurrency=16, kills=5, limit_s=10.0, kinds=QUICK)


@pytest.mark.slow
def test_five_hundred_trials_under_faults_and_twenty_kills_end_in_one_row_each_and_leave_nothing(
    prepared: Workshop, tmp_path: Path
) -> None:
    chaos(prepared, tmp_path, trials=500, concurrency=100, kills=20, limit_s=10.0, kinds=FAULTS)
