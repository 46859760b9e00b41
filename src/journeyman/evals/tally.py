"""From graded Trials to Scores and Differences: who is counted, in which unit, and with which interval.

Only ``solved``, ``failed`` and ``malformed_deliverable`` Trials are statements about the policy. Everything else is
left out of every denominator and counted in ``Score.excluded``. A task without enough graded Trials is dropped and
counted too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from journeyman.evals.clustered import Estimate, Floats, clustered_mean
from journeyman.evals.paired import paired_difference, sign_flip, verdict_word
from journeyman.evals.passk import pass_at_k, pass_hat_k
from journeyman.evals.power import detectable
from journeyman.evals.proportion import newcombe, wilson
from journeyman.evals.score import Difference, Score

if TYPE_CHECKING:
    from journeyman.trials.outcome import OutcomeClass

GRADED: frozenset[str] = frozenset({"solved", "failed", "malformed_deliverable"})

_NO_SPREAD = 1e-12
"""A clustered standard error below this is rounding: all worlds agree, and the t interval would have no width."""


@dataclass(frozen=True)
class GradedTrial:
    """What evaluation needs of one Trial.

    Attributes:
        task_id, world_id, family: where it belongs; worlds are the clusters.
        outcome: its outcome class (``trials/outcome.py``).
        reward: in [0, 1] when graded (0 for a malformed deliverable), else None.
        passed: whether the verdict is passed when graded (False for a malformed deliverable), else None.

    Raises:
        ValueError: the fields contradict one another.
    """

    task_id: str
    world_id: str
    family: str
    outcome: OutcomeClass
    reward: float | None
    passed: bool | None

    def __post_init__(self) -> None:
        if self.outcome in GRADED:
            if self.reward is None or self.passed is None or not 0 <= self.reward <= 1:
                raise ValueError(f"{self.task_id}: graded, but reward is {self.reward} and passed {self.passed}")
            if self.passed != (self.outcome == "solved"):
                raise ValueError(f"{self.task_id}: {self.outcome}, but passed is {self.passed}")
            if self.outcome == "malformed_deliverable" and self.reward:
                raise ValueError(f"{self.task_id}: a malformed deliverable has reward 0, got {self.reward}")
        elif self.reward is not None or self.passed is not None:
            raise ValueError(f"{self.task_id}: {self.outcome} is never a reward, got {self.reward}")


@dataclass(frozen=True)
class TaskValues:
    """One value per task of one kind: ``values`` float64 [n] beside task and world ids in the same order."""

    kind: str
    task_ids: tuple[str, ...]
    world_ids: tuple[str, ...]
    values: Floats
    n_trials: int
    excluded: dict[str, int]
    n_dropped: int


def task_values(trials: Sequence[GradedTrial], kind: str) -> TaskValues:
    """The value of each task under ``kind``: ``mean_reward``, ``pass@k`` or ``pass^k``.

    Tasks come in order of first appearance; those with fewer than k graded Trials are dropped and counted.
    """
    graded: defaultdict[str, list[GradedTrial]] = defaultdict(list)
    worlds: dict[str, str] = {}
    for trial in trials:
        worlds.setdefault(trial.task_id, trial.world_id)
        if trial.outcome in GRADED:
            graded[trial.task_id].append(trial)
    least = _trials_needed(kind)
    kept = [task for task in worlds if len(graded[task]) >= least]
    return TaskValues(
        kind=kind,
        task_ids=tuple(kept),
        world_ids=tuple(worlds[task] for task in kept),
        values=np.array([_value(graded[task], kind) for task in kept], dtype=np.float64),
        n_trials=sum(len(graded[task]) for task in kept),
        excluded=dict(sorted(Counter(t.outcome for t in trials if t.outcome not in GRADED).items())),
        n_dropped=len(worlds) - len(kept),
    )


def score_of(trials: Sequence[GradedTrial], kind: str, *, boundary: str = "", confidence: float = 0.95) -> Score:
    """Score of one kind with its interval clustered by world.

    The interval is t over worlds (evaluation reference, 3.1). When every world has the same score it would have no
    width; then it is the Wilson interval with the number of worlds as n, which is conservative (3.3).
    """
    found = task_values(trials, kind)
    estimate = clustered_mean(found.values, found.world_ids, confidence=confidence)
    low, high, interval = estimate.low, estimate.high, estimate.interval
    if _has_no_spread(estimate) and estimate.mean is not None:
        low, high = wilson(min(1.0, max(0.0, estimate.mean)), estimate.n_worlds, confidence=confidence)
        low, high = min(low, estimate.mean), max(high, estimate.mean)
        interval = f"{100 * confidence:g} % Wilson over worlds: all worlds have the same score"
    return Score(
        kind=kind,
        value=estimate.mean,
        n_tasks=estimate.n,
        n_trials=found.n_trials,
        n_worlds=estimate.n_worlds,
        low=low,
        high=high,
        interval=interval,
        boundary=boundary,
        excluded=found.excluded,
        n_tasks_dropped=found.n_dropped,
    )


def difference_of(
    trials_a: Sequence[GradedTrial],
    trials_b: Sequence[GradedTrial],
    kind: str,
    *,
    a: str,
    b: str,
    seed: int = 0,
    confidence: float = 0.95,
) -> Difference:
    """Paired difference B - A over the tasks both sides have, clustered by world.

    Args:
        trials_a, trials_b: Trials of both sides; tasks are paired by id.
        a, b: names of the sides, for printing.
        seed: of the sampled sign flips (more than 14 worlds).
    """
    side_a, side_b = task_values(trials_a, kind), task_values(trials_b, kind)
    of_b = dict(zip(side_b.task_ids, side_b.values, strict=True))
    common = [i for i, task in enumerate(side_a.task_ids) if task in of_b]
    worlds = [side_a.world_ids[i] for i in common]
    values_a = side_a.values[common]
    values_b = np.array([of_b[side_a.task_ids[i]] for i in common], dtype=np.float64)
    estimate = paired_difference(values_a, values_b, worlds, confidence=confidence)
    low, high, interval = estimate.low, estimate.high, estimate.interval
    if _has_no_spread(estimate):
        mean_a, mean_b = (min(1.0, max(0.0, float(v.mean()))) for v in (values_a, values_b))
        low, high = newcombe(mean_a, mean_b, estimate.n_worlds, confidence=confidence)
        interval = f"{100 * confidence:g} % Newcombe over worlds: all worlds have the same difference"
    flips = sign_flip(values_b - values_a, worlds, seed=seed)
    return Difference(
        kind=kind,
        a=a,
        b=b,
        value=estimate.mean,
        low=low,
        high=high,
        interval=interval,
        n_tasks=estimate.n,
        n_worlds=estimate.n_worlds,
        n_tasks_unpaired=len(side_a.task_ids) + len(side_b.task_ids) - 2 * len(common),
        p=flips.p if flips else None,
        p_method=("cluster sign-flip, " + ("exact" if flips.exact else "10,000 flips")) if flips else "",
        mde=detectable(estimate.se_cluster) if estimate.se_cluster else None,
        word=verdict_word(estimate.mean, low, high),
    )


def by_family(trials: Sequence[GradedTrial]) -> dict[str, list[GradedTrial]]:
    """The Trials of each task family, families in alphabetical order."""
    groups: defaultdict[str, list[GradedTrial]] = defaultdict(list)
    for trial in trials:
        groups[trial.family].append(trial)
    return dict(sorted(groups.items()))


def sensitivity(trials: Sequence[GradedTrial], kind: str) -> tuple[float | None, float | None]:
    """The score with every broken Trial counted as failed, and as solved; cancelled ones stay out."""
    bounds = []
    for reward in (0.0, 1.0):
        filled = [
            GradedTrial(t.task_id, t.world_id, t.family, "solved" if reward else "failed", reward, bool(reward))
            if t.outcome in ("system_error", "verifier_error")
            else t
            for t in trials
        ]
        bounds.append(score_of(filled, kind).value)
    return bounds[0], bounds[1]


def _has_no_spread(estimate: Estimate) -> bool:
    return estimate.se_cluster is not None and estimate.se_cluster < _NO_SPREAD


def _trials_needed(kind: str) -> int:
    if kind == "mean_reward":
        return 1
    if kind.startswith(("pass@", "pass^")):
        return int(kind[5:])
    raise ValueError(f'"{kind}" is not computed from independent trials; allowed: mean_reward, pass@k, pass^k')


def _value(trials: Sequence[GradedTrial], kind: str) -> float:
    if kind == "mean_reward":
        return sum(trial.reward or 0.0 for trial in trials) / len(trials)
    passed = sum(bool(trial.passed) for trial in trials)
    return (pass_at_k if kind.startswith("pass@") else pass_hat_k)(len(trials), passed, int(kind[5:]))
