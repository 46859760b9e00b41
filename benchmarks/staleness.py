"""What each policy at the staleness bound costs, and what each buffer order does to the first steps.

    python benchmarks/staleness.py

The loop's own gate under a virtual clock, on a heavy-tailed workload: tools take lognormal times (median 1 s, p99
30 s), tasks differ in their number of turns and in difficulty (hard ones are long), a Group ends with its last trial,
the trainer takes ``--trainer-s`` per step. Deterministic by seed; no CPU time is measured, so the figures are the same
on every machine.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import random
import statistics

import numpy as np

from journeyman.train.loop.admission import AdmissionSpec
from journeyman.train.loop.bound import BOUND_POLICIES
from journeyman.train.loop.buffer import BUFFER_ORDERS
from journeyman.train.loop.gate import Gate, GateSpec
from journeyman.train.loop.order import TaskOrder
from journeyman.train.loop.protocol import GroupOrder
from journeyman.train.loop.settling import SettledGroup
from journeyman.train.metrics.lost import Fate, lost_report

SIGMA = math.log(30.0) / 2.3263478740408408
"""Of the logarithm of a tool's time: median 1 s, 99 % quantile 30 s."""


def tasks_of(count: int, rng: random.Random) -> list[tuple[int, float]]:
    """Turns and difficulty of each task: 2 to 40 turns, the long ones hard."""
    turns = [max(2, min(40, round(6 * math.exp(rng.gauss(0, 0.7))))) for _ in range(count)]
    return [(n, min(0.95, max(0.05, 0.2 + 0.02 * n + rng.gauss(0, 0.1)))) for n in turns]


def group_s(turns: int, trials: int, rng: random.Random) -> float:
    """Seconds until the last trial of a Group has ended."""
    return max(sum(math.exp(rng.gauss(0, SIGMA)) for _ in range(turns)) for _ in range(trials))


def simulate(given: argparse.Namespace, policy: str, order: str, seed: int) -> dict[str, float | str]:
    """One run of ``given.steps`` steps."""
    rng = random.Random(seed)
    tasks = tasks_of(given.tasks, rng)
    told: list[Fate] = []

    def fate(of: GroupOrder, what: str) -> None:
        turns, difficulty = tasks[of.task]
        told.append(Fate(of.task, what, turns * given.trials * 100, float(turns), difficulty))

    admission = AdmissionSpec(given.groups, given.staleness, given.running)
    sampler = TaskOrder(len(tasks), seed, "simulation")

    def dropped(of: GroupOrder, group: SettledGroup | None, reason: str) -> None:
        fate(of, reason)
        if reason == "requeued":
            sampler.again(of.task)

    gate = Gate(
        GateSpec(admission, policy, order, given.groups, given.steps),  # type: ignore[arg-type]
        dropped,
    )
    events: list[tuple[float, int, str, GroupOrder | None]] = []
    now, position, idle_s, free_at = 0.0, 0, 0.0, 0.0
    is_busy, first, ages = False, [], []
    while gate.version < given.steps:
        for _ in range(gate.room()):
            of = GroupOrder(position, sampler.next(), given.trials, gate.version)
            position += 1
            gate.submit(of)
            heapq.heappush(events, (now + group_s(tasks[of.task][0], given.trials, rng), of.position, "end", of))
        gate.sweep()
        if not is_busy and (take := gate.take()).groups:
            idle_s += now - free_at
            is_busy = True
            ages += [gate.version - g.oldest for g in take.groups]
            if gate.version < given.early:
                first += [g.difficulty for g in take.groups]
            for g in take.groups:
                fate(g.order, "trained")
            heapq.heappush(events, (now + given.trainer_s, -1, "step", None))
            continue
        now, _, what, done = heapq.heappop(events)
        if what == "step":
            gate.step_done()
            is_busy, free_at = False, now
        elif done is not None and done.position in gate.running:
            difficulty = tasks[done.task][1]
            gate.finish(SettledGroup(done, (), done.version, gate.version, "", difficulty))
    report = lost_report(told)
    return {
        "policy": policy,
        "order": order,
        "trainer_idle_share": idle_s / now,
        "groups_per_hour": 3600 * gate.ledger.trained / now,
        "lost_share": report.lost_groups / max(1, report.groups),
        "lost_share_longest_decile": report.by_length[-1].share if report.by_length else 0.0,
        "staleness_mean": float(np.mean(ages)),
        "staleness_max": float(max(ages)),
        "early_difficulty": statistics.mean(first),
        "all_difficulty": statistics.mean(difficulty for _, difficulty in tasks),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--early", type=int, default=5, help="steps whose difficulty is compared with all tasks'")
    parser.add_argument("--tasks", type=int, default=400)
    parser.add_argument("--groups", type=int, default=16)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--running", type=int, default=512)
    parser.add_argument("--staleness", type=int, default=3)
    parser.add_argument("--trainer-s", type=float, default=60.0)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    runs = [(policy, "finished") for policy in BOUND_POLICIES]
    runs += [("accept", order) for order in BUFFER_ORDERS if order != "finished"]
    for policy, order in runs:
        rows = [simulate(given, policy, order, seed) for seed in range(given.seeds)]
        means = {k: round(statistics.mean(row[k] for row in rows), 4) for k in rows[0] if k not in ("policy", "order")}
        print(json.dumps({"policy": policy, "order": order, **means}), flush=True)


if __name__ == "__main__":
    main()
