"""What a finished Group is worth: errors leave before the baseline, then it is ready or filtered with a reason.

A broken trial never becomes a reward of 0, and it does not take its Group with it unless too few are left.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from journeyman.errors import InputError
from journeyman.tokens.segments import of_json
from journeyman.train.advantages import group_advantages
from journeyman.train.loop.protocol import FinishedTrial, GroupOrder
from journeyman.train.protocol import TrainRow
from journeyman.train.switches import Switches, kept_rows, length_penalties

COLUMNS = ("ids", "logprobs", "topk_ids", "topk_logprobs", "routed_experts")
"""Of a ``TrainRow``, with an entry per token, beside its mask."""


@dataclass(frozen=True)
class GroupRule:
    """When a Group counts.

    Attributes:
        min_valid: trials with a valid reward below which a Group is filtered; None: half of them, at least 2.
        keep_uniform: a Group whose rewards are all equal is kept, though it has no gradient.
    """

    min_valid: int | None = None
    keep_uniform: bool = False

    def needed(self, trials: int) -> int:
        """Valid trials a Group of that size needs."""
        return max(2, math.ceil(trials / 2)) if self.min_valid is None else self.min_valid


@dataclass(frozen=True)
class SettledGroup:
    """A Group whose trials have all ended.

    Attributes:
        order: what was asked for.
        trials: all of them, in order of sample.
        oldest, newest: versions of its sampled tokens.
        reason: why it is filtered, or "" when it is ready.
        difficulty: 1 - mean of the valid rewards; NaN without any.
    """

    order: GroupOrder
    trials: tuple[FinishedTrial, ...]
    oldest: int
    newest: int
    reason: str
    difficulty: float
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def valid(self) -> list[FinishedTrial]:
        """Trials with a valid reward."""
        return [trial for trial in self.trials if trial.reward is not None]

    @property
    def tokens(self) -> int:
        """Sampled tokens of its valid trials."""
        return sum(trial.num_sampled for trial in self.valid)


def settle(order: GroupOrder, trials: Sequence[FinishedTrial], rule: GroupRule) -> SettledGroup:
    """Judge a Group.

    Raises:
        InputError: a trial is missing or there twice, or a reward is not finite.
    """
    ordered = tuple(sorted(trials, key=lambda trial: trial.sample))
    if [trial.sample for trial in ordered] != list(range(order.trials)):
        raise InputError(f"group {order.position}", f"has samples {[t.sample for t in ordered]}", allowed="each once")
    valid = [trial for trial in ordered if trial.reward is not None]
    rewards = np.array([trial.reward for trial in valid], dtype=np.float64)
    if not np.isfinite(rewards).all():
        raise InputError(f"group {order.position}", f"has rewards {rewards.tolist()}", allowed="finite numbers")
    errors = Counter(trial.cause for trial in ordered if trial.reward is None)
    reason = ""
    if len(valid) < rule.needed(order.trials):
        reason = "too_few_valid"
    elif not any(trial.num_sampled for trial in valid):
        reason = "nothing_sampled"
    elif np.ptp(rewards) == 0 and not rule.keep_uniform:
        reason = "zero_variance"
    oldest = min((trial.oldest(order.version) for trial in ordered), default=order.version)
    newest = max((int(t.versions.max(initial=order.version)) for t in ordered), default=order.version)
    difficulty = float(1 - rewards.mean()) if len(rewards) else math.nan
    return SettledGroup(order, ordered, oldest, newest, reason, difficulty, errors)


def rows_of(groups: Sequence[SettledGroup], advantage: str, switches: Switches | None = None) -> list[TrainRow]:
    """The training rows of a step: the valid trials of each Group against their own baseline.

    A trial that sampled nothing (or was cut before its first token) is in the baseline but has no row; neither has one
    that ``switches.overlong`` leaves out. One whose context was edited has a row for each segment.
    """
    switches = switches or Switches()
    rows: list[TrainRow] = []
    for number, group in enumerate(groups):
        valid = group.valid
        rewards, of_group = [float(trial.reward or 0.0) for trial in valid], [0] * len(valid)
        generated = [trial.num_sampled for trial in valid]
        given = [_given_later(trial) for trial in valid]
        penalties = length_penalties(rewards, of_group, generated, given, switches.length_penalty)
        advantages = group_advantages(advantage, rewards, of_group, penalties=penalties)
        found = [
            (row, str(trial.facts.get("stop_reason", "")).startswith("limit."))
            for trial, a in zip(valid, advantages, strict=True)
            for row in parts_of(trial, advantage=float(a), prompt=number)
        ]
        rows += kept_rows([row for row, _ in found], [cut for _, cut in found], switches)
    return rows


def parts_of(trial: FinishedTrial, *, advantage: float, prompt: int) -> list[TrainRow]:
    """The rows of a trial, without those that sampled nothing: one, or one for each segment of a context that was
    edited, each as the model saw it; a token that several segments show is trained on where it was sampled."""
    whole = row_of(trial, advantage=advantage, prompt=prompt)
    segments = of_json(trial.facts.get("segments"))
    if len(segments) == 1:
        return [whole] if trial.num_sampled else []
    rows = []
    ends = [*(segment.start for segment in segments[1:]), len(trial.ids)]
    for segment, end in zip(segments, ends, strict=True):
        shown = np.concatenate([np.arange(a, b) for a, b in (*segment.shared, (segment.start, end))])
        mask = np.where(shown >= segment.start, trial.mask[shown], 0).astype(np.uint8)
        columns = {name: column[shown] for name in COLUMNS if (column := getattr(whole, name)) is not None}
        if mask.any():
            rows.append(replace(whole, **{**columns, "mask": mask}))
    return rows


def row_of(trial: FinishedTrial, *, advantage: float = 0.0, prompt: int = 0, with_experts: bool = True) -> TrainRow:
    """A trial as the trainer sees it, with all that the engine recorded of its tokens."""
    topk: dict[str, NDArray[Any]] = {}
    if trial.topk_ids is not None and trial.topk_logprobs is not None:
        sampled = np.flatnonzero(trial.mask)
        for name, column in (("topk_ids", trial.topk_ids), ("topk_logprobs", trial.topk_logprobs)):
            topk[name] = np.zeros((len(trial.ids), column.shape[1]), column.dtype)
            topk[name][sampled] = column
    experts = trial.routed_experts if with_experts else None
    return TrainRow(trial.ids, trial.mask, trial.logprobs, advantage, prompt, routed_experts=experts, **topk)


def _given_later(trial: FinishedTrial) -> int:
    """Tokens given to a trial after its prompt: tool results and the like."""
    sampled = np.flatnonzero(trial.mask)
    return len(trial.ids) - int(sampled[0]) - len(sampled) if len(sampled) else 0
