"""The judge behind an endpoint, as the one that grades imported rubric tasks (``tasks.judge.Judge``)."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from urllib.parse import urlsplit

from journeyman.engines.spec import parse_model
from journeyman.errors import InputError
from journeyman.tasks.judge import JudgeAnswer, JudgeQuestion
from journeyman.trials.judge import Criterion, Judge, JudgeSettings
from journeyman.trials.judge.rubric import messages

MET_AT = 0.5
"""Score from which a criterion counts as met."""


KEY_VARIABLE = "OPENAI_API_KEY"
"""Holds the key where no variable was named; a service may want none."""


class RubricJudge:
    """Asks one criterion at a time. A context manager: leaving it closes the judge's connections.

    Args:
        judge: whom; its deadlines, retries and keys are its own.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def __enter__(self) -> RubricJudge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the judge's connections."""
        self._judge.close()

    def report(self) -> dict[str, object]:
        """Who judged, and the counts of ``JudgeTally``."""
        return {"model": self._judge.settings.model, **self._judge.tally.report()}

    def judge(self, question: JudgeQuestion) -> JudgeAnswer:
        """Raises JudgeFailed when there is no valid judgement."""
        work = f"Final answer:\n{question.answer or '(none)'}"
        work += "".join(f"\n\nFile {json.dumps(name)}:\n{text}" for name, text in question.files.items())
        found = self._judge.ask(messages(Criterion("criterion", question.criterion), question.instruction, work))
        return JudgeAnswer(found.score >= MET_AT, found.reason)


def judge_settings(word: str, key_variables: Sequence[str] = ()) -> JudgeSettings:
    """The judge behind a service.

    Args:
        word: ``openai:URL#NAME``.
        key_variables: environment variables that hold its keys; none: ``OPENAI_API_KEY`` where that is set.

    Raises:
        InputError: it is no service, or its URL holds a password: the plan of a run keeps the word.
    """
    scheme = word.partition(":")[0]
    if scheme != "openai":
        allowed = "openai:URL#NAME, e.g. openai:https://host/v1#judge-model"
        raise InputError("--judge", f"{word!r} is no service", allowed=allowed)
    spec = parse_model(word)
    if "@" in urlsplit(spec.place).netloc:
        raise InputError("--judge", "holds a password", hint="put it into a variable and name that with --judge-key")
    names = tuple(key_variables) or ((KEY_VARIABLE,) if os.environ.get(KEY_VARIABLE) else ())
    return JudgeSettings(spec.place, spec.name, names)


def open_judge(word: str, key_variables: Sequence[str] = ()) -> RubricJudge:
    """The same, ready to be asked. Raises InputError; EnvironmentMissing: a variable that was named is not set."""
    return RubricJudge(Judge(judge_settings(word, key_variables)))
