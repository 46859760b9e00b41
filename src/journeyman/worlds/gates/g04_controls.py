"""G4: whoever falls for a trap, takes another entity or an old version fails the check that is named, and the task."""

from __future__ import annotations

from collections.abc import Iterator

from journeyman.tasks.verdict import Verdict
from journeyman.worlds.gates.protocol import Case, Evidence, Gate, Subject, unless_scored
from journeyman.worlds.template import Wrong

LEAST = 4
CEILING = 0.5
TYPED = "typed numbers"
BY_FORMULA = ("xlsx.formulas", "xlsx.follows", "xlsx.formula_share")


def cases(subject: Subject) -> Iterator[Case]:
    """One deliverable per control, and one with numbers typed where formulas were asked for."""
    for wrong in subject.bound.wrong:
        yield Case(f"G4:{wrong.name}", subject.write(wrong.answer))
    if any(check.fn in BY_FORMULA for check in subject.bound.checks):
        yield Case(f"G4:{TYPED}", subject.write(subject.bound.answer, "typed"))


def judge(subject: Subject, evidence: Evidence) -> Iterator[str]:
    """Enough of them, one for each trap, each failing where it says."""
    bound = subject.bound
    if len(bound.wrong) < LEAST:
        yield f"{len(bound.wrong)} negative controls, {LEAST} are needed"
    for trap in sorted(set(bound.traps) - {wrong.trap for wrong in bound.wrong}):
        yield f"trap {trap} has no negative control"
    names = [wrong.name for wrong in bound.wrong]
    if len(set(names)) != len(names):
        yield "two negative controls have one name"
    for wrong in bound.wrong:
        yield from problems_of(wrong, evidence.verdicts.get(f"G4:{wrong.name}"))
    typed = evidence.verdicts.get(f"G4:{TYPED}")
    if typed is not None and typed.passed:
        yield "typed numbers pass where formulas were asked for"


def problems_of(wrong: Wrong, verdict: Verdict | None) -> Iterator[str]:
    """What is wrong with one control's verdict: it passes, scores too much, or does not fail the check it names."""
    if problem := unless_scored(f"control {wrong.name}", verdict):
        yield problem
        return
    assert verdict is not None
    if verdict.passed or (verdict.reward or 0.0) > CEILING:
        yield f"control {wrong.name} scores {verdict.reward}, at most {CEILING} is allowed"
    scores = {check.id: check.score for check in verdict.checks}
    if verdict.kind == "scored" and scores.get(wrong.fails, 1.0) >= 1.0:
        yield f"control {wrong.name} does not fail {wrong.fails}"


GATE = Gate("G4", "negative controls fail their check", judge, cases)
