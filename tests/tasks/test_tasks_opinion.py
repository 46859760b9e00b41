"""A judge beside a program: at most a fifth, never a gate, left out and said so without one, never a 0 by failing."""

from __future__ import annotations

import json

import pytest
from task_directories import CHECK, MakeTask, answer

from journeyman.sandbox.protocol import AgentEnvironment, Provider
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.judge import JudgeAnswer, JudgeQuestion
from journeyman.tasks.task import Task
from journeyman.tasks.verdict import Verdict
from journeyman.tasks.verify import BatchVerifier

GATED = CHECK.replace('"checks": [check]', '"checks": [check, {"id": "g", "kind": "gate", "score": float(good)}]')


class Reader:
    """Says yes to what stands in the answer; raises where the criterion asks for it."""

    def __init__(self) -> None:
        self.asked = 0

    def judge(self, question: JudgeQuestion) -> JudgeAnswer:
        self.asked += 1
        if question.criterion == "silence":
            raise ConnectionError("no route")
        return JudgeAnswer(question.criterion in question.answer, "read it")


def graded(
    task: Task, provider: Provider, environment: AgentEnvironment, judge: Reader | None, value: object = "412"
) -> Verdict:
    with BatchVerifier(provider, environment, "opinion", judge=judge) as verifier:
        return verifier.grade([GradeItem("t", task, answer(value))])[0]


def with_rubric(task: Task, *criteria: str, weight: float = 0.1, checks_weight: float = 0.8) -> Task:
    rows = [{"id": str(n), "criterion": text, "weight": weight} for n, text in enumerate(criteria)]
    rubric = {"criteria": rows, "scoring": "beside_checks", "scoring_values": {"checks_weight": checks_weight}}
    (task.tests / "rubric.json").write_text(json.dumps(rubric))
    return task


def test_the_judge_adds_its_share_and_the_program_keeps_the_word_passed(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    task = with_rubric(make_task(), "412", "kindly")
    verdict = graded(task, provider, environment, Reader())
    assert (verdict.reward, verdict.passed) == (0.9, True)
    assert [(check.id, check.score) for check in verdict.checks] == [
        ("answer", 1.0),
        ("rubric:0", 1.0),
        ("rubric:1", 0),
    ]
    wrong = graded(task, provider, environment, Reader(), "kindly 412")
    assert (wrong.reward, wrong.passed) == (0.2, False)


def test_without_a_judge_its_weight_is_left_out_and_the_verdict_says_so(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    verdict = graded(with_rubric(make_task(), "412", "kindly"), provider, environment, None)
    assert (verdict.kind, verdict.reward, verdict.passed) == ("scored", 1.0, True)
    assert verdict.explain == "no judge: 2 criteria, 0.2 of a weight of 1, left out"


def test_a_judge_that_fails_leaves_no_number(make_task: MakeTask, provider: Provider, environment: AgentEnvironment):
    verdict = graded(with_rubric(make_task(), "412", "silence"), provider, environment, Reader())
    assert (verdict.kind, verdict.reward, verdict.error) == ("verifier_error", None, "JudgeFailed")


def test_nobody_is_asked_about_what_a_gate_refuses(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    judge = Reader()
    task = with_rubric(make_task(check=GATED), "412")
    assert graded(task, provider, environment, judge, "7").reward == 0.0
    assert judge.asked == 0


@pytest.mark.parametrize("values", [{"weight": 0.3}, {"weight": -0.1}, {"checks_weight": 0.0}])
def test_more_than_a_fifth_is_no_reward(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment, values: dict[str, float]
):
    verdict = graded(with_rubric(make_task(), "412", **values), provider, environment, Reader())
    assert (verdict.kind, verdict.error) == ("verifier_error", "EvaluationUnknown")
