"""What one check found."""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_SHOWN = 4
"""Findings that an explanation lists; the rest is counted."""


@dataclass(frozen=True)
class Outcome:
    """Score in [0, 1] and why; ``facts`` are numbers that were measured on the way and are reported as such."""

    score: float
    explain: str
    facts: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, score: float, head: str, findings: list[str]) -> Outcome:
        """A score with the first findings spelled out."""
        if not findings:
            return cls(score, head)
        rest = f"; and {len(findings) - MAX_SHOWN} more" if len(findings) > MAX_SHOWN else ""
        return cls(score, f"{head}; {'; '.join(findings[:MAX_SHOWN])}{rest}")

    @classmethod
    def when(cls, is_right: bool, yes: str, no: str) -> Outcome:
        """All or nothing."""
        return cls(1.0, yes) if is_right else cls(0.0, no)
