"""G9: neither answer nor canary nor seed stands where the agent can read it without doing the work."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from journeyman.worlds.gates.protocol import Evidence, Gate, Subject
from journeyman.worlds.variants.leaves import is_number, leaves

MIN_DIGITS = 4
"""Shorter numbers occur everywhere by chance."""

MIN_SEED_DIGITS = 5


def judge(subject: Subject, evidence: Evidence) -> Iterator[str]:
    """Instruction, file names, metadata and contents."""
    bound, office = subject.bound, subject.office
    asked = _flat(bound.ask)
    for path, value in leaves(bound.answer):
        for form in _forms(value):
            if form in bound.instruction and form not in asked:
                yield f"{form}, of the answer at {'.'.join(map(str, path))}, stands in the instruction"
            if any(form in name for name in office.files):
                yield f"{form}, of the answer, stands in a file name"
    for text in bound.secrets:
        if text and text in bound.instruction:
            yield f"{text[:60]!r} stands in the instruction"
    yield from world_leaks(subject.seed, office)
    for what, secret in _tokens(subject.seed, office.canary):
        if secret.decode() in bound.instruction:
            yield f"the {what} stands in the instruction"


def world_leaks(seed: int, office: Any) -> Iterator[str]:
    """Canary or seed in the files of a world; judged once per world."""
    known = _JUDGED.get((office.id, office.canary, seed))
    if known is None:
        known = _JUDGED[office.id, office.canary, seed] = tuple(_scan(seed, office))
        while len(_JUDGED) > 8:
            _JUDGED.pop(next(iter(_JUDGED)))
    yield from known


_JUDGED: dict[tuple[str, str, int], tuple[str, ...]] = {}


def _scan(seed: int, office: Any) -> Iterator[str]:
    secrets = list(_tokens(seed, office.canary))
    for path, data in {**office.files, **office.apps}.items():
        parts = [(path, data), (f"the name {path}", path.encode())]
        if data[:2] == b"PK" and zipfile.is_zipfile(BytesIO(data)):
            with zipfile.ZipFile(BytesIO(data)) as container:
                parts += [(f"{path}/{name}", container.read(name)) for name in container.namelist()]
        for place, content in parts:
            for what, secret in secrets:
                if secret in content:
                    yield f"the {what} stands in {place}"


def _tokens(seed: int, canary: str) -> Iterator[tuple[str, bytes]]:
    yield "canary", canary.encode()
    yield "canary", canary.replace("-", "").encode()
    if len(str(abs(seed))) >= MIN_SEED_DIGITS:
        yield "seed", str(abs(seed)).encode()


def _forms(value: Any) -> list[str]:
    """How a value of the answer would be written, where it is long enough not to occur by chance."""
    if is_number(value):
        whole = f"{abs(value):.0f}"
        if len(whole) < MIN_DIGITS or (float(value).is_integer() and 1990 <= value <= 2100):
            return []
        return [whole, f"{abs(value):,.0f}", f"{abs(value):.2f}", f"{abs(value):,.2f}"]
    return []


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(_flat(one) for one in value.values())
    if isinstance(value, list | tuple):
        return " ".join(_flat(one) for one in value)
    return f"{value} {value:,}" if is_number(value) else str(value)


GATE = Gate("G9", "nothing leaks", judge)
