"""G3: nothing, empty files, the instruction handed back, the world's file handed back: each scores exactly 0.

Each check's label (does a deliverable in which nothing was done fail or pass it?) is held against what happened.
"""

from __future__ import annotations

from collections.abc import Iterator

from journeyman.worlds.gates.protocol import Case, Evidence, Gate, Subject, unless_scored
from journeyman.worlds.variants.hostile import echo

UNTOUCHED = "G3:untouched"


def cases(subject: Subject) -> Iterator[Case]:
    """What somebody hands in who did nothing."""
    bound = subject.bound
    yield Case("no-op", None)
    yield Case("G3:no files", {})
    yield Case("G3:empty", dict.fromkeys(bound.deliverables, b""))
    yield Case("G3:echo", echo(bound))
    if bound.originals:
        world = subject.office.files
        suffixes = {name.rpartition(".")[2]: name for name in bound.deliverables}
        handed = {
            suffixes[path.rpartition(".")[2]]: world[path]
            for path in bound.originals
            if path.rpartition(".")[2] in suffixes
        }
        right = subject.golden
        yield Case(UNTOUCHED, {**{name: b"" for name in right if name not in handed}, **handed})


def judge(subject: Subject, evidence: Evidence) -> Iterator[str]:
    """All of them at 0."""
    for name in ("no-op", *(f"G3:{one}" for one, _ in evidence.of("G3"))):
        verdict = evidence.verdicts.get(name)
        if problem := unless_scored(name, verdict):
            yield problem
        elif verdict is not None and verdict.reward != 0.0:
            yield f"{name.removeprefix('G3:')} scores {verdict.reward}: inaction is rewarded"
    untouched = evidence.verdicts.get(UNTOUCHED)
    if untouched is not None and untouched.kind == "scored":
        labels = {check.id: check.no_op for check in subject.bound.checks}
        for result in untouched.checks:
            happened = "pass" if result.score >= 1.0 else "fail"
            if labels.get(result.id) != happened:
                label = labels.get(result.id)
                yield f"check {result.id} is labelled no_op {label}, an untouched file makes it {happened}"


GATE = Gate("G3", "inaction scores 0", judge, cases)
