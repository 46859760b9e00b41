"""The record of a step: everything worth watching while a run goes on, as one flat mapping of paths to numbers.

Behaviour counts come from the trials' facts; idle shares are counted over the time since the record before.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from journeyman.train.guards.figures import StepFigures
from journeyman.train.loop.protocol import FinishedTrial, Measured, SourceGauges
from journeyman.train.loop.settling import SettledGroup
from journeyman.train.loop.stepping import FreshGap
from journeyman.train.protocol import StepMetrics

SHORT_QUANTILE = 0.25
"""Groups whose tokens lie below this quantile of all submitted so far, and solved by most, count as short and easy."""


@dataclass(frozen=True)
class Clocks:
    """Seconds since the record before.

    Attributes:
        wall_s: passed.
        trainer_busy_s: in which the trainer worked (steps, pushes, checkpoints).
        rollout_busy_s: in which some turn was under way in the engine.
    """

    wall_s: float
    trainer_busy_s: float
    rollout_busy_s: float

    @property
    def trainer_idle_share(self) -> float:
        """Share of the time in which the trainer waited."""
        return max(0.0, 1 - self.trainer_busy_s / self.wall_s) if self.wall_s > 0 else 0.0

    @property
    def rollout_idle_share(self) -> float:
        """Share of the time in which the engine had nothing to sample."""
        return max(0.0, 1 - self.rollout_busy_s / self.wall_s) if self.wall_s > 0 else 0.0


def record_of(
    groups: Sequence[SettledGroup],
    metrics: StepMetrics,
    version: int,
    *,
    clocks: Clocks,
    gauges: SourceGauges,
    counts: Mapping[str, int],
    gap: FreshGap | None,
    in_flight: Sequence[int] = (),
    in_queue: Sequence[int] = (),
) -> dict[str, Any]:
    """The record of a step.

    Args:
        groups: that the step trained on.
        metrics: of the step.
        version: completed steps before it.
        clocks, gauges: since the record before, and now.
        counts: of the ledger.
        gap: engine and trainer under the same weights; None where nothing could tell.
        in_flight, in_queue: staleness of what runs and of what waits, steps.
    """
    trials = [trial for group in groups for trial in group.trials]
    valid = [trial for trial in trials if trial.reward is not None]
    ages = [max(0, version - group.oldest) for group in groups]
    mean = _mean(trial.reward for trial in valid)
    return {
        "reward/mean": mean,
        "reward/finished": mean,
        "reward/passed": _mean(float(bool(trial.passed)) for trial in valid),
        **shadowed(valid),
        "reward/difficulty": _mean(group.difficulty for group in groups),
        "policy/loss": metrics.loss,
        "policy/entropy": metrics.entropy,
        "policy/grad_norm": metrics.grad_norm,
        "policy/dropped_share": metrics.dropped_share,
        "policy/gap_mean": gap.mean if gap is not None else None,
        "policy/gap_q99": gap.q99 if gap is not None else None,
        "policy/gap_tokens": gap.tokens if gap is not None else 0,
        "policy/gap_recomputed_mean": gap.recomputed_mean if gap is not None else None,
        "policy/moved_mean": metrics.logprob_gap_mean,
        "policy/moved_q99": metrics.logprob_gap_q99,
        "policy/mixed_share": _mean(float(_is_mixed(trial)) for trial in valid),
        "staleness/trained_mean": _mean(ages),
        "staleness/trained_max": max(ages, default=0),
        "staleness/in_flight_mean": _mean(in_flight),
        "staleness/in_flight_max": max(in_flight, default=0),
        "staleness/in_queue_mean": _mean(in_queue),
        "staleness/in_queue_max": max(in_queue, default=0),
        "time/wall_s": clocks.wall_s,
        "trainer/idle_share": clocks.trainer_idle_share,
        "rollout/idle_share": clocks.rollout_idle_share,
        "rollout/trials_running": gauges.trials_running,
        "rollout/kv_share": gauges.kv_tokens / gauges.kv_capacity if gauges.kv_capacity else 0.0,
        "rollout/preemptions": gauges.preemptions,
        "rollout/sampled_tokens": gauges.sampled_tokens,
        "rollout/prefilled_tokens": gauges.prefilled_tokens,
        "rollout/cpu_s": gauges.cpu_s,
        "tokens/trained": metrics.tokens,
        "tokens/sampled": sum(trial.num_sampled for trial in trials),
        "tokens/context": sum(len(trial.ids) for trial in trials),
        "usd/trials": sum(float(trial.facts.get("usd") or 0.0) for trial in trials),
        "groups/live": metrics.live_groups,
        **behaviour(trials),
        **counts,
    }


def behaviour(trials: Sequence[FinishedTrial]) -> dict[str, float]:
    """How the policy acts: per trial, over all trials that were graded or broke."""
    n = max(1, len(trials))
    stops = Counter(str(trial.facts.get("stop_reason", "")) for trial in trials)
    causes = Counter(trial.cause for trial in trials if trial.reward is None)
    return {
        "behaviour/tokens_per_trial": _mean(trial.num_sampled for trial in trials),
        "behaviour/calls_per_trial": sum(float(t.facts.get("calls") or 0) for t in trials) / n,
        "behaviour/tool_errors_per_trial": sum(float(t.facts.get("errors") or 0) for t in trials) / n,
        "behaviour/malformed_per_trial": sum(float(t.facts.get("malformed") or 0) for t in trials) / n,
        "behaviour/answered_share": stops["answered"] / n,
        "behaviour/truncated_share": sum(c for stop, c in stops.items() if stop.startswith("limit.")) / n,
        **{f"trials/error/{cause}": count for cause, count in sorted(causes.items())},
    }


def figures_of(step: int, record: Mapping[str, Any], groups: Sequence[SettledGroup], measured: Measured | None) -> Any:
    """The figures that guards look at.

    Args:
        step: completed steps, the recorded one included.
        record: of the step.
        groups: that the step trained on.
        measured: an evaluation that ended since the step before, or None.
    """
    trials = [trial for group in groups for trial in group.valid]
    mean = record["reward/mean"]
    rewarded = [trial for trial in trials if trial.reward is not None and trial.reward > mean]
    defects = [float(bool(t.facts.get("malformed")) or bool(t.facts.get("errors"))) for t in rewarded]
    shadow = record.get("reward/shadow")
    proxy = shadow if shadow is not None else measured.mean_reward if measured is not None else None
    return StepFigures(
        step=step,
        reward=record["reward/finished"],
        entropy=record["policy/entropy"],
        gap_mean=record["policy/gap_mean"],
        gap_q99=record["policy/gap_q99"],
        grad_norm=record["policy/grad_norm"],
        length=record["behaviour/tokens_per_trial"],
        defects=_mean(defects) if defects else None,
        proxy=proxy,
        proxy_reward=record.get("reward/shadowed"),
        pass_k=measured.pass_k if measured is not None else None,
        pass_k_error=measured.pass_k_error if measured is not None else None,
        pass_1=measured.pass_1 if measured is not None else None,
        short_share=record.get("buffer/short_share"),
    )


def shadowed(trials: Sequence[FinishedTrial]) -> dict[str, float | None]:
    """``reward/shadow``: what held-back verifiers gave; ``reward/shadowed``: the reward of the trials they graded."""
    return _shadow(_pairs(trials))


def _pairs(trials: Sequence[FinishedTrial]) -> list[tuple[float, float]]:
    """Held-back and rewarding verdict of the trials that have both."""
    return [
        (float(t.facts["shadow_reward"]), t.reward)
        for t in trials
        if t.facts.get("shadow_reward") is not None and t.reward is not None
    ]


def _shadow(pairs: Sequence[tuple[float, float]]) -> dict[str, float | None]:
    held_back, rewarding = ([pair[i] for pair in pairs] for i in (0, 1))
    return {
        "reward/shadow": _mean(held_back) if pairs else None,
        "reward/shadowed": _mean(rewarding) if pairs else None,
    }


class SinceStep:
    """Rewards of all trials that finished since the record before, those of Groups without variance too."""

    def __init__(self) -> None:
        self._rewards: list[float] = []
        self._pairs: list[tuple[float, float]] = []

    def add(self, group: SettledGroup) -> None:
        """Take the valid trials of a Group in."""
        self._rewards += [trial.reward for trial in group.valid if trial.reward is not None]
        self._pairs += _pairs(group.valid)

    def figures(self) -> dict[str, float | None]:
        """What they change in the record; begins anew."""
        rewards, pairs = self._rewards, self._pairs
        self._rewards, self._pairs = [], []
        return {"reward/finished": _mean(rewards), **_shadow(pairs)} if rewards else {}


def short_share(groups: Sequence[SettledGroup], seen_tokens: Sequence[int]) -> float:
    """Share of the Groups that are short and easy: the easy-first bias of a buffer, beside a collapse alarm.

    Args:
        groups: queued or trained now.
        seen_tokens: tokens of all Groups that finished so far.
    """
    if not groups or not seen_tokens:
        return 0.0
    limit = float(np.quantile(seen_tokens, SHORT_QUANTILE))
    return sum(group.tokens <= limit and group.difficulty < 0.5 for group in groups) / len(groups)


def _is_mixed(trial: FinishedTrial) -> bool:
    sampled = trial.versions[trial.mask.astype(bool)]
    return bool(len(sampled)) and int(sampled.min()) != int(sampled.max())


def _mean(values: Iterable[Any]) -> float:
    found = [float(value) for value in values if value is not None and not math.isnan(float(value))]
    return sum(found) / len(found) if found else 0.0
