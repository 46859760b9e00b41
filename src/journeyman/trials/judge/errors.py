"""A judge that gave no valid answer: a broken verifier, never a zero."""

from __future__ import annotations

from journeyman.tasks.errors import VerifierFault


class JudgeFailed(VerifierFault):
    """No valid judgement in all tries. The deliverable was not judged.

    Args:
        reason: the last failure, free of keys.
        tries: requests sent.
        elapsed_s: seconds it took, waits included.
    """

    def __init__(self, reason: str, tries: int, elapsed_s: float) -> None:
        self.reason, self.tries, self.elapsed_s = reason, tries, elapsed_s
        super().__init__(f"the judge gave no judgement in {tries} tries and {elapsed_s:.1f} s: {reason}")
