"""Training samples in prime-rl's shape: flat token sequences with aligned arrays, as JSON lines.

A trial is one sample; one whose context was edited is a sample per segment, as the model saw it, and what two segments
share is trained on once.

Each line holds the keyword arguments of prime-rl's ``TrainingSample`` (``token_ids``, ``mask``, ``logprobs``,
``temperatures``, ``env_name``, ``advantages``), all arrays of one length. A trial without a valid reward is left out: a
system error is never a reward.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from journeyman.tokens.context import segment_columns
from journeyman.trials.store.rows import TrialRow
from journeyman.trials.store.run import Run


def sample_lines(run: Run) -> Iterator[dict[str, Any]]:
    """Samples of a run, group by group.

    The advantage is the reward minus the mean reward of its group (trials whose ids differ in the last part alone),
    on every trained token; the last attempt of a trial counts.
    """
    for rows in groups_of(run.trials()):
        rewards = [row.reward for row in rows if row.reward is not None]
        for row in rows:
            if row.reward is None:
                continue
            advantage = row.reward - sum(rewards) / len(rewards)
            segments = segment_columns(run.trajectory(row.key), run.segments(row.key))
            for columns in segments:
                if len(segments) > 1 and not columns.mask.any():
                    continue  # e.g. a turn that was drawn again
                yield {
                    "token_ids": columns.ids.tolist(),
                    "mask": [bool(value) for value in columns.mask],
                    "logprobs": [float(value) for value in columns.logprob],
                    "temperatures": [row.temperature] * len(columns.ids),
                    "env_name": row.family or row.task_id,
                    "advantages": [advantage if value else 0.0 for value in columns.mask],
                }


def groups_of(rows: Sequence[TrialRow]) -> list[list[TrialRow]]:
    """The last attempts, grouped: one group per batch and trial id without its last part, in order of keys."""
    last: dict[tuple[str, str], TrialRow] = {}
    for row in rows:
        name = (row.batch, row.trial_id)
        if name not in last or row.attempt > last[name].attempt:
            last[name] = row
    groups: dict[tuple[str, str], list[TrialRow]] = defaultdict(list)
    for (batch, trial_id), row in sorted(last.items()):
        groups[batch, trial_id.rpartition("/")[0]].append(row)
    return list(groups.values())
