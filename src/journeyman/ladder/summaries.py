"""Figures of a batch of trial summaries (``trials.store``): plain means for the training log, scores for the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from journeyman.digest import sha256_json
from journeyman.evals.behaviour import CallRecord, TrialRecord
from journeyman.evals.score import Difference, Score
from journeyman.evals.tally import GradedTrial, difference_of, score_of
from journeyman.ladder.report.sections import Gains, Scores

Summary = dict[str, Any]


def reward_facts(summaries: Sequence[Summary]) -> dict[str, Any]:
    """Plain batch figures of one RL step; trials without a valid reward are counted and left out of the means."""
    graded = [s for s in summaries if s["reward"] is not None]
    n = max(1, len(graded))
    calls = [call for s in graded for turn in s["turns"] for call in turn["calls"]]
    return {
        "mean_reward": sum(s["reward"] for s in graded) / n,
        "pass_1": sum(bool(s["passed"]) for s in graded) / n,
        "n_trials": len(summaries),
        "n_graded": len(graded),
        "turns_per_trial": sum(len(s["turns"]) for s in graded) / n,
        "errors_per_trial": sum(call["status"] != "ok" for call in calls) / n,
        "sampled_tokens": sum(s["n_sampled"] for s in summaries),
    }


def graded_trials(summaries: Sequence[Summary]) -> list[GradedTrial]:
    """The trials as evaluation counts them."""
    return [
        GradedTrial(
            s["task_id"],
            s["world_id"],
            s["family"],
            s["outcome"],
            s["reward"],
            s["passed"],
        )
        for s in summaries
    ]


def scores(summaries: Sequence[Summary], boundary: str, confidence: float) -> Scores:
    """Both score kinds of one batch, intervals clustered by world."""
    trials = graded_trials(summaries)

    def one(kind: str) -> Score:
        return score_of(trials, kind, boundary=boundary, confidence=confidence)

    return Scores(mean_reward=one("mean_reward"), pass_1=one("pass@1"))


def gains(
    before: Sequence[Summary], after: Sequence[Summary], *, a: str, b: str, confidence: float, seed: int = 0
) -> Gains:
    """Paired differences after - before in both kinds, over common tasks, clustered by world."""
    first, second = graded_trials(before), graded_trials(after)
    mean = difference_of(first, second, "mean_reward", a=a, b=b, seed=seed, confidence=confidence)
    passed = difference_of(first, second, "pass@1", a=a, b=b, seed=seed, confidence=confidence)
    return Gains(mean_reward=mean, pass_1=passed)


def spoken(difference: Difference) -> str:
    """A difference with its interval in words, also when there is none."""
    if difference.value is None:
        return "not measurable"
    if difference.low is None or difference.high is None:
        return f"{difference.value:+.3f} (no interval)"
    return f"{difference.value:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"


def behaviour_records(summaries: Sequence[Summary]) -> list[TrialRecord]:
    """The trials as the behaviour metrics read them."""
    return [
        TrialRecord(
            s["outcome"],
            s["stop_reason"],
            len(s["turns"]),
            s["n_sampled"],
            tuple(
                CallRecord(call["tool"], sha256_json(call["arguments"]), call["status"])
                for turn in s["turns"]
                for call in turn["calls"]
            ),
        )
        for s in summaries
    ]
