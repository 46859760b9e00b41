"""The grade of a trial: exactly one of three kinds, of which only two carry a number.

``scored``: the verifier ran and gave a reward. ``malformed_deliverable``: what the policy handed in is missing or
cannot be read; reward 0, attributable to the policy, with a reason. ``verifier_error``: the verifier broke; there is no
number, and there is never a 0 in its place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from journeyman.tasks.errors import RewardInvalid, VerifierFault

VerdictKind = Literal["scored", "malformed_deliverable", "verifier_error"]

MAX_EXPLAIN_CHARS = 2_000
"""Longest text kept of one explanation: a verdict goes into every record of its trial."""


@dataclass(frozen=True)
class CheckResult:
    """One check of a verifier.

    Attributes:
        id: name within the task.
        kind: ``gate`` (multiplies the reward) or ``scored`` (adds to it).
        score: in [0, 1]; a gate has 0 or 1.
        explain: what was found, what was expected, where.
    """

    id: str
    kind: str
    score: float
    explain: str


@dataclass(frozen=True)
class Verdict:
    """How a trial was graded.

    Attributes:
        kind: one of the three kinds.
        reward: in [0, 1]; 0 when malformed; None exactly for ``verifier_error``.
        passed: whether all required checks passed; None exactly for ``verifier_error``.
        checks: the single checks, as far as the verifier reports them.
        explain: the reason, for malformed deliverables and verifier errors; what was left out of a score.
        error: class name of the ``VerifierFault``; None unless ``verifier_error``.
    """

    kind: VerdictKind
    reward: float | None
    passed: bool | None
    checks: tuple[CheckResult, ...] = ()
    explain: str = ""
    error: str | None = None

    def __post_init__(self) -> None:
        if self.kind == "verifier_error":
            valid = self.reward is None and self.passed is None and self.error is not None
        elif self.kind == "malformed_deliverable":
            valid = self.reward == 0.0 and self.passed is False and self.error is None
        else:
            number = self.reward is not None and math.isfinite(self.reward) and 0.0 <= self.reward <= 1.0
            valid = self.kind == "scored" and number and isinstance(self.passed, bool) and self.error is None
        if not valid:
            raise ValueError(f"no such verdict: {self.kind} with reward {self.reward!r}, passed {self.passed!r}")

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data; ``verdict_from_dict`` reads it back equal."""
        return {**vars(self), "checks": [dict(vars(check)) for check in self.checks]}


def scored(reward: object, passed: object, checks: object = ()) -> Verdict:
    """The verdict of a verifier that ran; ``reward`` and ``checks`` are values it returned and are not trusted.

    Args:
        passed: a bool, or None when the verifier has no opinion: then only a full reward passes.

    Raises:
        RewardInvalid: the reward is not a number in [0, 1], ``passed`` not a bool or a check not a check.
    """
    number = valid_reward(reward)
    if passed is None:
        passed = number == 1.0
    if not isinstance(passed, bool):
        raise RewardInvalid(f"passed is {passed!r}, not a boolean")
    return Verdict("scored", number, passed, _checks(checks))


def malformed(explain: str) -> Verdict:
    """Reward 0 because the deliverable is missing or unreadable."""
    return Verdict("malformed_deliverable", 0.0, False, explain=plain_text(explain))


def verifier_error(fault: VerifierFault) -> Verdict:
    """No number, because the verifier broke."""
    return Verdict("verifier_error", None, None, explain=plain_text(str(fault)), error=type(fault).__name__)


def verdict_from_dict(data: Mapping[str, Any]) -> Verdict:
    """The verdict that ``to_dict`` wrote. Raises ValueError for a combination that cannot exist."""
    return Verdict(**{**data, "checks": tuple(CheckResult(**check) for check in data["checks"])})


def valid_reward(value: object) -> float:
    """``value`` as a reward. Raises RewardInvalid unless it is a finite int or float (not a bool) in [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RewardInvalid(f"reward {plain_text(repr(value), 80)} is a {type(value).__name__}, not a number")
    if not 0 <= value <= 1:  # also refuses NaN, of which every comparison is false
        raise RewardInvalid(f"reward {plain_text(repr(value), 80)} is not a finite number in [0, 1]")
    return float(value)


def plain_text(text: str, max_chars: int = MAX_EXPLAIN_CHARS) -> str:
    """``text`` cut to ``max_chars`` and free of lone surrogates, so that it can be written as UTF-8 anywhere."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= max_chars else f"{text[:max_chars]} [{len(text) - max_chars} characters left out]"


def _checks(value: object) -> tuple[CheckResult, ...]:
    if not isinstance(value, list | tuple):
        raise RewardInvalid(f"checks is a {type(value).__name__}, not a list")
    found = []
    for check in value:
        if not isinstance(check, Mapping):
            raise RewardInvalid(f"a check is a {type(check).__name__}, not an object")
        kind = check.get("kind")
        if kind not in ("gate", "scored"):
            raise RewardInvalid(f"check {check.get('id')!r} has kind {kind!r}, not gate or scored")
        score = valid_reward(check.get("score"))
        found.append(
            CheckResult(plain_text(str(check.get("id"))), kind, score, plain_text(str(check.get("explain", ""))))
        )
    return tuple(found)
