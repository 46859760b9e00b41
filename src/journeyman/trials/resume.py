"""Going on where a killed owner stopped: what is closed stays, what was open is closed as cancelled, the rest runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from journeyman.trials.executors.dispatch import Job
from journeyman.trials.outcome import OUTCOMES
from journeyman.trials.record import TrialRequest
from journeyman.trials.store.events import read_events, segments_told
from journeyman.trials.store.hot import HotTrial
from journeyman.trials.store.owner import Owner
from journeyman.trials.store.rows import TrialRow
from journeyman.trials.store.run import open_run


def jobs_of(requests: Sequence[TrialRequest], owner: Owner | None, max_attempts: int) -> list[Job]:
    """One job per request, with the attempts it may still have.

    An attempt that was cancelled (by the operator, or because its owner was killed) is kept and uses up no try.

    Args:
        owner: of the run; None for a run that stores nothing: every request gets all its attempts.
    """
    if owner is None:
        return [Job(request, tries=max_attempts) for request in requests]
    close_orphans(owner)
    with open_run(owner.run) as run:
        rows = run.trials()
    by_trial: dict[str, list[TrialRow]] = {}
    for row in rows:
        if not row.batch:
            by_trial.setdefault(row.trial_id, []).append(row)
    return [_job(request, by_trial.get(request.trial_id, []), max_attempts) for request in requests]


def _job(request: TrialRequest, rows: Sequence[TrialRow], max_attempts: int) -> Job:
    if not rows:
        return Job(request, tries=max_attempts)
    last = max(rows, key=lambda row: row.attempt)
    used = sum(row.outcome != "cancelled" for row in rows)
    is_over = last.outcome != "cancelled" and not OUTCOMES.get(last.cause, OUTCOMES["unclassified"]).retry
    return Job(request, first=last.attempt + 1, tries=0 if is_over else max_attempts - used)


def close_orphans(owner: Owner) -> list[str]:
    """Close every attempt that nobody writes any more as ``cancelled``; returns their keys.

    The caller owns the run, so nobody else writes there.
    """
    with open_run(owner.run) as run:
        orphans = [row for row in run.trials(include_open=True) if not row.is_done]
    keys = []
    for row in orphans:
        with HotTrial(owner.run, row.trial_id, row.attempt) as hot:
            facts = opening_of(hot)
            hot.event("ended", stop_reason="error", error=["Cancelled", "the owner of the run was killed"])
            record = {
                **facts,
                "stop_reason": "error",
                "outcome": "cancelled",
                "cause": "cancelled",
                "reward": None,
                "passed": None,
                "masked": True,
                "error": ["Cancelled", "the owner of the run was killed"],
                "verdict": None,
                "turns": [],
                "deliverables": {},
                "segments": segments_told(read_events((hot.directory / "events.jsonl").read_bytes()).events),
            }
            keys.append(owner.admit(hot.close(record)))
    return keys


def opening_of(hot: HotTrial) -> dict[str, object]:
    """What the first event of a trial says of its request; empty when it was never written."""
    path = hot.directory / "events.jsonl"
    try:
        first = json.loads(path.read_bytes().split(b"\n", 1)[0])
    except (OSError, ValueError):
        return {}
    names = ("task_id", "world_id", "family", "split", "harness", "sample", "temperature")
    return {name: first[name] for name in names if name in first}


def final_rows(rows: Iterable[TrialRow]) -> dict[str, TrialRow]:
    """The one row of each trial that counts: its last attempt."""
    last: dict[str, TrialRow] = {}
    for row in rows:
        if row.trial_id not in last or row.attempt > last[row.trial_id].attempt:
            last[row.trial_id] = row
    return last
