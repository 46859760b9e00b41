"""What can break while a trial is graded. Each is a system fault with cause ``verifier_failed``: never a reward.

``Verdict.error`` holds the class name, so reports count by type.
"""

from __future__ import annotations

from typing import ClassVar

from journeyman.errors import SystemFault


class VerifierFault(SystemFault):
    """Base: the verifier gave no valid reward. The deliverable was not judged."""

    cause: ClassVar[str] = "verifier_failed"


class VerifierMissing(VerifierFault):
    """The task directory lost its tests between loading and grading, or they cannot be read."""


class VerifierCrashed(VerifierFault):
    """The check raised something other than ``MalformedDeliverable``, or the test script failed by its status."""


class VerifierTimeout(VerifierFault):
    """The verifier did not end by its deadline; its whole process tree was killed."""


class VerifierKilled(VerifierFault):
    """The verifier process ended without an answer: out of memory, killed by a signal, or it left by ``os._exit``."""


class VerifierSandboxLost(VerifierFault):
    """The sandbox the verifier ran in could not be made or died, also when it was tried again in fresh ones."""


class RewardFileMissing(VerifierFault):
    """The verifier ended without writing a reward."""


class RewardFileEmpty(VerifierFault):
    """The reward file holds nothing."""


class RewardInvalid(VerifierFault):
    """The reward is not one finite number in [0, 1]: a text, a boolean, NaN, an infinity or a value out of range."""


class JudgeMissing(VerifierFault):
    """The task is graded by a judge and none is configured."""


class JudgeFailed(VerifierFault):
    """The judge gave no answer, or one that is neither yes nor no."""


class EvaluationUnknown(VerifierFault):
    """The rubric asks for an evaluation or a way of scoring that does not exist here."""
