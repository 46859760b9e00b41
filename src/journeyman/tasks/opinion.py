"""A judge's opinion beside a program's verdict: criteria that no program can check, for at most a fifth of the reward.

``tests/rubric.json`` with ``scoring = "beside_checks"`` lies beside ``tests/check.py``. The judge is asked only about
deliverables whose gates hold. It is never a gate itself, and ``passed`` stays the program's word. Without a judge its
weight is left out and the verdict says so; a judge that fails leaves no number, never a 0.
"""

from __future__ import annotations

from dataclasses import replace

from journeyman.sandbox.protocol import AgentEnvironment, Provider
from journeyman.tasks.artifacts import Artifacts, declared_artifacts
from journeyman.tasks.errors import EvaluationUnknown, VerifierFault
from journeyman.tasks.judge import Judge, answers_of
from journeyman.tasks.rubric import FILE, Rubric, read_rubric
from journeyman.tasks.task import Task
from journeyman.tasks.verdict import CheckResult, Verdict, plain_text, verifier_error

SCORING = "beside_checks"
"""Name of this way of scoring; ``scoring_values["checks_weight"]`` is what the program's scored checks weigh."""

MAX_SHARE = 0.2
"""Most that the criteria may weigh of everything."""

PREFIX = "rubric:"
"""Begins the id of every criterion among the checks of a verdict."""


def with_opinion(
    verdict: Verdict,
    task: Task,
    artifacts: Artifacts | None,
    judge: Judge | None,
    provider: Provider,
    environment: AgentEnvironment,
    *,
    label: str = "verifier",
    waive: frozenset[str] = frozenset(),
) -> Verdict:
    """The verdict with the judge's part: ``(checks * reward + sum(w * met)) / (checks + sum(w))``.

    Args:
        verdict: the program's; anything but ``scored`` with every gate held comes back as it is.
        judge: None: its weight is left out.
    """
    if verdict.kind != "scored" or not (task.tests / FILE).is_file():
        return verdict
    if any(check.kind == "gate" and check.score < 1.0 for check in verdict.checks):
        return verdict
    try:
        rubric = read_rubric(task.tests)
        own, judged = _weights(rubric)
        if judge is None:
            words = f"no judge: {len(rubric.criteria)} criteria, {judged:g} of a weight of {own + judged:g}, left out"
            return replace(verdict, explain=words)
        shown = declared_artifacts(artifacts, task.deliverables)
        found = answers_of(task, rubric, judge, shown, provider, environment, label=label, waive=waive)
    except VerifierFault as fault:
        return verifier_error(fault)
    gained = sum(criterion.weight * answer.is_met for criterion, answer in found)
    assert verdict.reward is not None
    reward = round((own * verdict.reward + gained) / (own + judged), 9)
    extra = tuple(
        CheckResult(f"{PREFIX}{c.id}", "scored", float(a.is_met), plain_text(f"{c.criterion}: {a.rationale}"))
        for c, a in found
    )
    return replace(verdict, reward=reward, checks=(*verdict.checks, *extra))


def _weights(rubric: Rubric) -> tuple[float, float]:
    """Of the checks and of the criteria. Raises EvaluationUnknown for what cannot be weighed."""
    own = rubric.scoring_values.get("checks_weight")
    judged = sum(criterion.weight for criterion in rubric.criteria)
    if rubric.scoring != SCORING or isinstance(own, bool) or not isinstance(own, int | float) or own <= 0:
        raise EvaluationUnknown(f"{FILE} beside a check is scored by {rubric.scoring!r}; known: {SCORING}")
    if any(criterion.weight <= 0 for criterion in rubric.criteria) or judged / (own + judged) > MAX_SHARE + 1e-9:
        share = judged / (own + judged)
        raise EvaluationUnknown(f"criteria weigh {share:.0%} of the reward, at most {MAX_SHARE:.0%} are allowed")
    return float(own), judged
