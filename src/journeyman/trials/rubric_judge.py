"""The judge behind an endpoint, as the one that grades imported rubric tasks (``tasks.judge.Judge``)."""

from __future__ import annotations

import json

from journeyman.tasks.judge import JudgeAnswer, JudgeQuestion
from journeyman.trials.judge import Criterion, Judge
from journeyman.trials.judge.rubric import messages

MET_AT = 0.5
"""Score from which a criterion counts as met."""


class RubricJudge:
    """Asks one criterion at a time.

    Args:
        judge: whom; its deadlines, retries and keys are its own.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def judge(self, question: JudgeQuestion) -> JudgeAnswer:
        """Raises JudgeFailed when there is no valid judgement."""
        work = f"Final answer:\n{question.answer or '(none)'}"
        work += "".join(f"\n\nFile {json.dumps(name)}:\n{text}" for name, text in question.files.items())
        found = self._judge.ask(messages(Criterion("criterion", question.criterion), question.instruction, work))
        return JudgeAnswer(found.score >= MET_AT, found.reason)
