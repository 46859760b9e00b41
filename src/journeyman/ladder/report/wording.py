"""How the report writes counts, durations, sizes, gates and the state of the whole run."""

from __future__ import annotations

from journeyman.evals.wording import NOT_AVAILABLE
from journeyman.ladder.report.figures import Gate
from journeyman.ladder.report.model import Report

NARROW_SPACE = "\u202f"

MARKS = {"passed": "✓", "failed": "✗", "skipped": "–", "running": "…"}
"""A sign for each status; always printed with the word."""


def count(value: float | None) -> str:
    """An integer with narrow spaces between thousands."""
    return NOT_AVAILABLE if value is None else f"{value:,.0f}".replace(",", NARROW_SPACE)


def compact(value: float | None) -> str:
    """A number of any size with four significant digits."""
    if value is None:
        return NOT_AVAILABLE
    return count(value) if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"


def duration(seconds: float | None) -> str:
    """``4.9 s``, ``1 m 23 s`` or ``2 h 5 m``."""
    if seconds is None:
        return NOT_AVAILABLE
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    large, small, units = (whole // 60, whole % 60, "ms") if whole < 3600 else (whole // 3600, whole % 3600 // 60, "hm")
    return f"{large} {units[0]}" + (f" {small} {units[1]}" if small else "")


def size(megabytes: float | None) -> str:
    """``812 MB`` or ``2.3 GB``."""
    if megabytes is None:
        return NOT_AVAILABLE
    return f"{megabytes:.0f} MB" if megabytes < 1000 else f"{megabytes / 1000:.1f} GB"


def gate_text(gate: Gate) -> str:
    """``0.682 > 0``: what was measured against the condition."""
    return f"{compact(gate.value)} {gate.comparison} {compact(gate.threshold)}"


def gate_word(gate: Gate) -> str:
    """``holds``, ``does not hold`` or ``not judged``."""
    return {True: "holds", False: "does not hold", None: "not judged"}[gate.passed]


def verdict_sentence(report: Report) -> str:
    """One sentence on where the run stands."""
    passed = sum(step.status == "passed" for step in report.steps)
    failed = [step for step in report.steps if step.status == "failed"]
    if failed:
        return f"Failed at step {failed[0].number}, {failed[0].name}; {passed} of 7 steps passed."
    if report.status == "passed":
        return "All seven steps passed."
    return f"Not finished: {passed} of 7 steps passed so far. Running, no test yet."


def yes(value: bool) -> str:
    """``yes`` or ``no``."""
    return "yes" if value else "no"
