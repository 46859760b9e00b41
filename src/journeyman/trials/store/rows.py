"""One row per trial: what the index holds, what a run lists, and what tables are made of. No tokens in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

Layout = Literal["batch", "hot", "cold"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


@dataclass(frozen=True)
class TrialRow:
    """A stored trial.

    Attributes:
        key: its name in the run, unique: ``trial_id#attempt``, in a batch preceded by ``batch::``.
        trial_id, attempt: which trial, and which attempt of it (from 1).
        batch: directory of the batch below the run, "" outside the batch layout.
        task_id, world_id, family, split, harness: what was attempted, under which loop.
        sample: index within its group. temperature: 0 is greedy.
        stop_reason, outcome, cause: how it ended (``trials.outcome``); "" while it is open.
        reward, passed, cost_usd: None where there is no valid one.
        n_tokens, n_sampled, n_calls: tokens, sampled tokens, and turns (sampled or demonstrated).
        is_done: False for a trial that was never closed; what was acknowledged of it is readable.
        layout, place, position: where its tokens lie: directory or file, below the run or as a URL, and row in it.
    """

    key: str
    trial_id: str
    attempt: int
    batch: str
    task_id: str
    world_id: str
    family: str
    split: str
    harness: str
    sample: int
    temperature: float
    stop_reason: str
    outcome: str
    cause: str
    reward: float | None
    passed: bool | None
    cost_usd: float | None
    n_tokens: int
    n_sampled: int
    n_calls: int
    is_done: bool
    layout: Layout
    place: str
    position: int


ROW_FIELDS = tuple(field.name for field in fields(TrialRow))


def key_of(trial_id: str, attempt: int, batch: str = "") -> str:
    """The unique name of a trial within its run."""
    return f"{batch}::{trial_id}#{attempt}" if batch else f"{trial_id}#{attempt}"


def row_of(
    record: Mapping[str, Any], layout: Layout, place: str, *, batch: str = "", position: int = 0, is_done: bool = True
) -> TrialRow:
    """The row of a trial's record (current schema). What the record lacks is empty, 0 or None."""
    trial_id, attempt = str(record["trial_id"]), int(record.get("attempt", 1))

    def text(name: str) -> str:
        return str(record.get(name) or "")

    def number(name: str) -> float | None:
        value = record.get(name)
        return None if value is None else float(value)

    passed = record.get("passed")
    n_calls = record.get("n_calls")
    return TrialRow(
        key=key_of(trial_id, attempt, batch),
        trial_id=trial_id,
        attempt=attempt,
        batch=batch,
        task_id=text("task_id"),
        world_id=text("world_id"),
        family=text("family"),
        split=text("split"),
        harness=text("harness"),
        sample=int(record.get("sample") or 0),
        temperature=float(record.get("temperature", 1.0)),
        stop_reason=text("stop_reason"),
        outcome=text("outcome"),
        cause=text("cause"),
        reward=number("reward"),
        passed=None if passed is None else bool(passed),
        cost_usd=number("cost_usd"),
        n_tokens=int(record.get("n_tokens") or 0),
        n_sampled=int(record.get("n_sampled") or 0),
        n_calls=len(record.get("turns") or ()) if n_calls is None else int(n_calls),
        is_done=is_done,
        layout=layout,
        place=place,
        position=position,
    )
