"""Two thousand trials through the asynchronous loop, with engine, trainer and trial processes killed at random."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ladder_training_setup import small_policy

TRIALS = int(os.environ.get("JOURNEYMAN_SOAK_TRIALS", "2000"))
GROUPS_PER_STEP, TRIALS_PER_GROUP = 5, 8
KILL_EVERY_S = (4.0, 12.0)
"""Shortest and longest time between two kills."""
PROGRESS_BYTES = 15_000
"""Of finished trials between two kills: half a dozen of them."""
SESSION = """
import json, sys
from journeyman.ladder.training.rl import run_rl
from journeyman.train.recipe import RlRecipe
report = run_rl(RlRecipe.model_validate(json.loads(sys.argv[1])), print,
                changes={"grader": "ladder_training_setup:LuckyGrader"})
sys.exit(0 if report.result.status == "done" else 1)
"""


@pytest.mark.slow
def test_a_soak_with_random_kills_accounts_for_every_group_at_every_step(prepared, tmp_path):
    policy, out = small_policy(prepared, tmp_path / "policy"), tmp_path / "run"
    steps = max(1, TRIALS // (GROUPS_PER_STEP * TRIALS_PER_GROUP))
    recipe = {
        "policy": {"model": str(policy)},
        "tasks": {"train": [str(prepared.run.path("tasks", "train"))]},
        "rollout": {
            "harness": "framing:toolbelt",
            "executor": "process",
            "rows": 32,
            "max_context": 320,
            "concurrency": 64,
            "waive": sorted(prepared.tier.waive),
            "sandbox": prepared.provider.name,
            "supervisors": 2,
        },
        "loop": {
            "steps": steps,
            "groups_per_step": GROUPS_PER_STEP,
            "trials_per_group": TRIALS_PER_GROUP,
            "staleness": 2,
            "stall_s": 600.0,
        },
        "guards": {"on_gap": "warn"},
        "out": str(out),
    }
    rng, killed = random.Random(7), {"engine": 0, "trainer": 0, "trial": 0}
    sessions = 0
    until = time.monotonic() + 7200
    while True:
        assert time.monotonic() < until, "the soak did not end"
        sessions += 1
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])}
        with (tmp_path / "session.log").open("ab") as log:
            trainer = subprocess.Popen(
                [sys.executable, "-c", SESSION, json.dumps(recipe)], env=env, stdout=log, stderr=log
            )
        try:
            status = _torment(trainer, out, rng, killed)
        finally:
            trainer.kill()
            trainer.wait()
        if status == 0:
            break
        assert status == -signal.SIGKILL, (tmp_path / "session.log").read_text()[-3000:]
    records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [r["step"] for r in records] == list(range(1, steps + 1))
    for record in records:
        parts = sum(v for k, v in record.items() if k.startswith(("groups/filtered/", "groups/dropped/")))
        assert record["groups/submitted"] == record["groups/trained"] + parts + record["groups/in_flight"]
        assert record["groups/trained"] == record["step"] * GROUPS_PER_STEP
        assert record["staleness/trained_max"] <= 2
    print(f"{steps} steps in {sessions} sessions; killed {killed}")
    assert killed["trainer"] == sessions - 1
    if TRIALS >= 1000:
        assert all(killed.values())


def _torment(trainer: subprocess.Popen, out: Path, rng: random.Random, killed: dict[str, int]) -> int:
    """Kill something of a session now and then, until it ends; its exit status."""
    written = _journalled(out)
    while True:
        try:
            return trainer.wait(rng.uniform(*KILL_EVERY_S))
        except subprocess.TimeoutExpired:
            pass
        if _journalled(out) - written < PROGRESS_BYTES:
            continue  # on a busy machine nothing but starts would be killed
        written = _journalled(out)
        family = _below(trainer.pid)
        engines = [pid for pid, words in family.items() if "site_process" in words]
        trials = [pid for pid, words in family.items() if "supervisor" in words and _parent(pid) in family]
        trials = [pid for pid in trials if "supervisor" in family.get(_parent(pid), "")] or trials
        kind = rng.choice(["engine", "trial", "trial", "trainer"])
        if kind == "trainer" and not (out / "metrics.jsonl").is_file():
            continue
        victims = {"engine": engines, "trial": trials, "trainer": [trainer.pid]}[kind]
        if victims:
            killed[kind] += 1
            try:
                os.kill(rng.choice(victims), signal.SIGKILL)
            except ProcessLookupError:
                killed[kind] -= 1


def _journalled(out: Path) -> int:
    """Bytes of the journal ever written, roughly: segments have growing numbers."""
    found = [(int(path.stem.partition("-")[2]), path.stat().st_size) for path in out.glob("journal/journal-*.bin")]
    return sum(size for _, size in found) + 10 * PROGRESS_BYTES * max((number for number, _ in found), default=0)


def _below(root: int) -> dict[int, str]:
    """Pids below a process and their command lines."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and (parent := _parent(int(path.name))) is not None:
            children.setdefault(parent, []).append(int(path.name))
    found: dict[int, str] = {}
    front = [root]
    while front:
        for pid in children.get(front.pop(), []):
            try:
                found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            front.append(pid)
    return found


def _parent(pid: int) -> int | None:
    try:
        match = re.search(r"^PPid:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) if match else None
