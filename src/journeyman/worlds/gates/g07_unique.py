"""G7: one answer: by the truth no ties (``bind`` asks for exactly one row) and no second value under the same fact; by
two calculation engines the same values in every workbook of the right deliverable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from journeyman.worlds.gates.opinions import engine_findings
from journeyman.worlds.gates.protocol import Evidence, Gate, Subject
from journeyman.worlds.variants.leaves import is_number, leaves
from journeyman.worlds.verify.inside.worldverify.comparing import normal


def judge(subject: Subject, evidence: Evidence) -> Iterator[str]:
    """No control is right by chance, no fact reads in two ways without a trap that says so, the engines agree."""
    bound = subject.bound
    for wrong in bound.wrong:
        if wrong.answer == bound.answer:
            yield f"the wrong answer {wrong.name} is the right one: two readings"
    for path, value in leaves(bound.answer):
        if is_number(value) and value != value:
            yield f"{'.'.join(map(str, path))} is not a number"
    surfaces: dict[str, set[str]] = defaultdict(set)
    facts = set(bound.facts)
    for rendering in subject.office.renderings:
        if rendering.fact_id in facts:
            surfaces[rendering.fact_id].add("".join(c for c in normal(rendering.surface) if c.isalnum()))
    for fact, found in surfaces.items():
        words = {one for one in found if not any(c.isdigit() for c in one)}
        if len(words) > 1 and not bound.traps:
            yield f"fact {fact} reads in {len(words)} ways: {', '.join(sorted(words))[:120]}"
    yield from engine_findings(subject.golden)


GATE = Gate("G7", "one answer", judge)
