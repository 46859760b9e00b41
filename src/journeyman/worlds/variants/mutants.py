"""Wrong deliverables made from the right answer by operators that know nothing of the task.

A mutant changes what the answer says: a number, a word, a date, a row. Operators that cannot act on an answer make
nothing; the draw goes on until there are as many different mutants as were asked for, or nothing is left to draw.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

from journeyman.digest import sha256_json
from journeyman.worlds.template import Answer, Bound
from journeyman.worlds.variants.leaves import Path, at, changed, is_number, leaves, lists

COUNT = 20
"""Mutants per task."""

Mutation = Callable[[Answer, random.Random], Answer | None]


def _numbers(answer: Answer) -> list[tuple[Path, Any]]:
    return [(path, value) for path, value in leaves(answer) if is_number(value) and value]


def _pick(rng: random.Random, found: list[Any]) -> Any:
    return found[rng.randrange(len(found))] if found else None


def _number(change: Callable[[float, random.Random], float]) -> Mutation:
    def mutate(answer: Answer, rng: random.Random) -> Answer | None:
        found = _pick(rng, _numbers(answer))
        if found is None:
            return None
        path, value = found
        new = change(float(value), rng)
        new = round(new) if isinstance(value, int) else round(new, 6)
        return None if abs(new - value) <= max(0.02, 0.002 * abs(value)) else dict(changed(answer, path, new))

    return mutate


def _transposed(value: float, rng: random.Random) -> float:
    """Two neighbouring digits the other way round."""
    digits = list(f"{abs(value):.2f}" if value % 1 else f"{abs(value):.0f}")
    places = [i for i in range(len(digits) - 1) if digits[i].isdigit() and digits[i + 1].isdigit()]
    places = [i for i in places if digits[i] != digits[i + 1]]
    if not places:
        return value
    i = places[rng.randrange(len(places))]
    digits[i], digits[i + 1] = digits[i + 1], digits[i]
    return float("".join(digits)) * (1 if value >= 0 else -1)


def swap(answer: Answer, rng: random.Random) -> Answer | None:
    """Two numbers in each other's place."""
    numbers = _numbers(answer)
    pairs = [(a, b) for a in numbers[:40] for b in numbers[:40] if abs(a[1] - b[1]) > 0.01 * max(1, abs(a[1]))]
    found = _pick(rng, pairs)
    if found is None:
        return None
    (one, first), (other, second) = found
    return dict(changed(changed(answer, one, second), other, first))


def reword(answer: Answer, rng: random.Random) -> Answer | None:
    """A word replaced by another word of the same column, or by nonsense where there is no other."""
    words = [(path, value) for path, value in leaves(answer) if isinstance(value, str) and value and not _is_day(value)]
    found = _pick(rng, words)
    if found is None:
        return None
    path, value = found
    like = sorted({other for where, other in words if where[-1] == path[-1] and other != value})
    return dict(changed(answer, path, like[rng.randrange(len(like))] if like else f"{value} II"))


def blank(answer: Answer, rng: random.Random) -> Answer | None:
    """A value left out."""
    found = _pick(rng, [path for path, value in leaves(answer) if value not in (None, "")])
    return None if found is None else dict(changed(answer, found, None))


def flip(answer: Answer, rng: random.Random) -> Answer | None:
    """Yes for no."""
    flags = [(path, value) for path, value in leaves(answer) if isinstance(value, bool)]
    found = _pick(rng, flags)
    return None if found is None else dict(changed(answer, found[0], not found[1]))


def _is_day(value: Any) -> bool:
    try:
        return isinstance(value, str) and len(value) == 10 and bool(date.fromisoformat(value))
    except ValueError:
        return False


def other_day(answer: Answer, rng: random.Random) -> Answer | None:
    """A date that is off by a day, a month or a year."""
    found = _pick(rng, [(path, value) for path, value in leaves(answer) if _is_day(value)])
    if found is None:
        return None
    day = date.fromisoformat(found[1]) + timedelta(days=rng.choice([-1, 1, 30, 365]))
    return dict(changed(answer, found[0], day.isoformat()))


def _rows(answer: Answer) -> list[tuple[Path, list[Any]]]:
    return [(path, value) for path, value in lists(answer) if value and isinstance(value[0], dict | list)] or [
        (path, value) for path, value in lists(answer) if value
    ]


def drop_row(answer: Answer, rng: random.Random) -> Answer | None:
    """A row or a member left out."""
    found = _pick(rng, _rows(answer))
    if found is None:
        return None
    path, rows = found
    gone = rng.randrange(len(rows))
    return dict(changed(answer, path, [one for index, one in enumerate(rows) if index != gone]))


def add_row(answer: Answer, rng: random.Random) -> Answer | None:
    """A row that does not belong: like another, under another name."""
    found = _pick(rng, _rows(answer))
    if found is None:
        return None
    path, rows = found
    new = copy.deepcopy(rows[rng.randrange(len(rows))])
    named = next(((where, value) for where, value in leaves(new) if isinstance(value, str) and value), None)
    if named is None:
        return None
    where, value = named
    new = changed(new, where, f"{value} (new)") if where else f"{value} (new)"
    return dict(changed(answer, path, [*rows, new]))


def shift_rows(answer: Answer, rng: random.Random) -> Answer | None:
    """The values of one column moved down by a row: every key with its neighbour's value."""
    found = _pick(rng, [(path, rows) for path, rows in _rows(answer) if len(rows) > 1 and isinstance(rows[0], dict)])
    if found is None:
        return None
    path, rows = found
    keys = [key for key, value in rows[0].items() if is_number(value) or isinstance(value, str)]
    if len(keys) < 2:
        return None
    key = keys[rng.randrange(1, len(keys))]
    made = copy.deepcopy(at(answer, path))
    for index, row in enumerate(made):
        row[key] = rows[index - 1].get(key)
    return dict(changed(answer, path, made)) if made != rows else None


OPERATORS: dict[str, Mutation] = {
    "off by a few per cent": _number(lambda value, rng: value * (1 + rng.choice([-1, 1]) * rng.uniform(0.01, 0.06))),
    "thousand times": _number(lambda value, rng: value * 1000),
    "a thousandth": _number(lambda value, rng: value / 1000),
    "sign": _number(lambda value, rng: -value),
    "one more": _number(lambda value, rng: value + max(1.0, 10 ** (len(str(int(abs(value)))) - 2))),
    "digits transposed": _number(_transposed),
    "doubled": _number(lambda value, rng: value * 2),
    "zero": _number(lambda value, rng: 0.0),
    "swapped": swap,
    "other word": reword,
    "left out": blank,
    "flipped": flip,
    "other day": other_day,
    "row left out": drop_row,
    "row added": add_row,
    "column shifted": shift_rows,
}
"""Name -> operator."""


def mutants(bound: Bound, rng: random.Random, count: int = COUNT) -> list[tuple[str, Answer]]:
    """Different wrong answers, operators in turn.

    Args:
        rng: the stream of this task's mutants.
    """
    found: list[tuple[str, Answer]] = []
    seen = {sha256_json(bound.answer)}
    names = list(OPERATORS)
    for turn in range(count * 8):
        if len(found) == count:
            break
        name = names[turn % len(names)]
        made = OPERATORS[name](bound.answer, rng)
        if made is None or (digest := sha256_json(made)) in seen:
            continue
        seen.add(digest)
        found.append((name, made))
    return found
