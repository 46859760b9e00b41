"""Trials for tests of the store: made from their id alone, so that any process can say what must be stored of them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.tokens.context import Columns, Context
from journeyman.trials.store import HotTrial
from journeyman.trials.store.columns import calls_of
from journeyman.trials.store.space import SpaceGuard


def columns_of(trial_id: str, turns: int = 5) -> Columns:
    """A context of ``turns`` turns with observations between, weight versions that move, and extreme logprobs."""
    rng = np.random.default_rng(int(hashlib.sha256(trial_id.encode()).hexdigest()[:12], 16))
    context = Context()
    context.append_prompt(rng.integers(0, 150_000, 40).tolist())
    for turn in range(turns):
        n = int(rng.integers(1, 30))
        logprobs = -np.exp(rng.normal(-2, 4, n)).astype(np.float32)
        logprobs[0] = (0.0, -1e-45, -3.4e38)[turn % 3]
        context.append_sampled(rng.integers(0, 150_000, n).tolist(), logprobs, version=turn // 2)
        if turn == 1:
            context.append_forced([7])
        if turn < turns - 1:
            context.append_observation(rng.integers(0, 150_000, int(rng.integers(1, 40))).tolist())
    return context.arrays()


def record_of(trial_id: str, reward: float | None = 1.0) -> dict[str, Any]:
    """A record like that of a graded trial."""
    return {
        "task_id": trial_id.split("/")[-2] if "/" in trial_id else "task",
        "world_id": "world-1",
        "family": "sum2",
        "split": "train",
        "harness": "toolbelt",
        "sample": 0,
        "temperature": 0.7,
        "stop_reason": "answered",
        "outcome": "solved" if reward else "failed",
        "cause": "none",
        "reward": reward,
        "passed": bool(reward),
        "instruction": "Add the two figures.",
        "verdict": {"kind": "scored", "reward": reward, "checks": [{"id": "answer", "kind": "scored", "score": 1.0}]},
        "turns": [
            {
                "n_sampled": 3,
                "finish": "stop",
                "calls": [{"tool": "calc", "arguments": {"expr": "1+1"}, "status": "ok"}],
                "malformed": [],
                "observation": "2",
            }
        ],
    }


def store_hot(root: Path, trial_id: str, *, attempt: int = 1, reward: float | None = 1.0, turns: int = 5) -> Path:
    """Write a whole trial, call by call with an event each; returns its directory."""
    with HotTrial(root, trial_id, attempt, space=SpaceGuard(reserve_bytes=0, wait_s=0), durable=False) as hot:
        for number, call in enumerate(calls_of(columns_of(trial_id, turns))):
            hot.append_call(call)
            hot.event("call", number=number)
        return hot.close(record_of(trial_id, reward))
