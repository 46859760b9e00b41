"""G2: the truth's own deliverable scores 1, and so does one made from the files with the agent's tools.

What the solution needs must be readable: every fact is rendered, and every trap that matters can be discovered.
"""

from __future__ import annotations

from collections.abc import Iterator

from journeyman.worlds.gates.protocol import Case, Evidence, Gate, Subject, failing, unless_scored

TRUTH, FILES = "oracle", "G2:from files"


def cases(subject: Subject) -> Iterator[Case]:
    """The oracle from the truth; the one from files is added by whoever has tools."""
    yield Case(TRUTH, subject.golden)


def judge(subject: Subject, evidence: Evidence) -> Iterator[str]:
    """Both oracles, and whether what they need is there."""
    yield from _below_one("the oracle from the truth", TRUTH, evidence)
    if evidence.oracle is not None:
        if evidence.oracle.problem:
            yield f"the oracle from files stopped after {evidence.oracle.calls} calls: {evidence.oracle.problem[:300]}"
        else:
            yield from _below_one("the oracle from files", FILES, evidence)
    yield from unreadable(subject)


def _below_one(name: str, case: str, evidence: Evidence) -> Iterator[str]:
    verdict = evidence.verdicts.get(case)
    if problem := unless_scored(name, verdict):
        yield problem
    elif verdict is not None and (verdict.reward != 1.0 or not verdict.passed):
        yield f"{name} scores {verdict.reward}: {failing(verdict)}"


def unreadable(subject: Subject) -> Iterator[str]:
    """Facts that are rendered nowhere, files that are not there, traps that nobody can discover."""
    office, bound = subject.office, subject.bound
    wanted = set(bound.facts)
    shown = {rendering.fact_id for rendering in office.renderings if rendering.fact_id in wanted}
    for fact in bound.facts:
        if fact not in shown:
            yield f"fact {fact} can be read nowhere"
    for path in bound.reads:
        if path not in office.files and path.removeprefix("apps/") not in office.apps:
            yield f"{path} is not in the world"
    for planted in office.planted:
        if planted.trap in bound.traps and not planted.locators:
            yield f"trap {planted.trap} at {planted.site} cannot be discovered: no place disarms it"


GATE = Gate("G2", "solvable from truth and from files", judge, cases)
