"""What an answer of the service says: a judgement, or why it is none."""

from __future__ import annotations

import json
from dataclasses import dataclass

from journeyman.trials.judge.tries import Answer


@dataclass(frozen=True)
class Judgement:
    """One answer.

    Attributes:
        score: in [0, 1].
        reason: the judge's words.
        model: as the service named it.
        tries: requests it took.
        elapsed_s: wall-clock, waits included.
        tokens: of the answered try (input, output), or None where the service does not say.
    """

    score: float
    reason: str
    model: str
    tries: int
    elapsed_s: float
    tokens: tuple[int, int] | None


class BadAnswer(ValueError):
    """An answer of status 200 that is no judgement; it counts as a failed try."""


def kind_of(answer: Answer) -> str:
    """The kind of a failed try, as the tally counts it."""
    if answer.status == 0:
        return "silence" if answer.text.startswith("no answer") else "connection"
    return "garbage" if answer.status == 200 else str(answer.status)


def code_of(answer: Answer) -> str:
    """The service's error code, or ""."""
    try:
        error = json.loads(answer.text)["error"]
        return str(error.get("code") or error.get("type") or "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""


def read_judgement(answer: Answer, model: str, tries: int, elapsed_s: float) -> Judgement:
    """The judgement in an answer. Raises BadAnswer, which says what is wrong with it."""
    if answer.status != 200:
        where = f"status {answer.status}: " if answer.status else ""
        raise BadAnswer(f"{where}{answer.text[:300]}")
    try:
        body = json.loads(answer.text)
        text = body["choices"][0]["message"]["content"]
        start, end = text.index("{"), text.rindex("}") + 1  # some put prose or a fence around it
        given = json.loads(text[start:end])
        score = given["score"]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise BadAnswer(f"no judgement in the answer ({type(error).__name__}): {answer.text[:200]}") from error
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise BadAnswer(f"score {str(score)[:80]!r} is not a number from 0 to 1")
    reason, named = str(given.get("reason") or "")[:2000], str(body.get("model") or model)
    return Judgement(float(score), reason, named, tries, elapsed_s, _tokens(body.get("usage")))


def _tokens(usage: object) -> tuple[int, int] | None:
    if not isinstance(usage, dict):
        return None
    sent, given = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return (sent, given) if isinstance(sent, int) and isinstance(given, int) else None
