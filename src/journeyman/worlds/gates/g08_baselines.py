"""G8: the first number of the best hit does not solve it, nor does the newest file alone."""

from __future__ import annotations

from collections.abc import Iterator

from journeyman.worlds.gates.protocol import Case, Evidence, Gate, Subject, unless_scored
from journeyman.worlds.variants.baselines import first_number, newest_file

CEILING = 0.3


def cases(subject: Subject) -> Iterator[Case]:
    """Both baselines; the first is the ladder's naive solver."""
    bound, texts = subject.bound, subject.texts
    ranked = texts.ranked(bound.instruction)
    yield Case("naive", subject.write(first_number(bound, texts, ranked)))
    newest = sorted(texts.by_path, reverse=True)
    yield Case("G8:newest file", subject.write(newest_file(bound, texts, ranked, newest)))


def judge(subject: Subject, evidence: Evidence) -> Iterator[str]:
    """They fail, from difficulty 1 on."""
    if subject.bound.knobs.level < 1:
        return
    for name in ("naive", "G8:newest file"):
        verdict = evidence.verdicts.get(name)
        if problem := unless_scored(name, verdict):
            yield problem
        elif verdict is not None and (verdict.passed or (verdict.reward or 0.0) > CEILING):
            yield f"{name.removeprefix('G8:')} scores {verdict.reward}, at most {CEILING} is allowed"


GATE = Gate("G8", "trivial solvers fail", judge, cases)
