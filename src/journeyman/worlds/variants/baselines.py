"""Scripted solvers that do little: the first number of the best hit, the newest file only.

They write well-formed deliverables of the right shape, so what keeps them from a reward is that they are wrong.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from journeyman.worlds.template import Answer, Bound
from journeyman.worlds.variants.leaves import is_number, mapped

NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
WORD = re.compile(r"[A-Za-z][A-Za-z'-]+|\d{4}")
K1, B = 1.2, 0.75
"""BM25's saturation and length normalisation, the usual values."""


@dataclass(frozen=True)
class Texts:
    """The readable text of a world's files, and what ranking needs.

    Attributes:
        by_path: path -> text.
        places: word -> path -> how often it occurs there.
        lengths: path -> number of words.
    """

    by_path: Mapping[str, str]
    places: Mapping[str, Mapping[str, int]]
    lengths: Mapping[str, int]

    @classmethod
    def of(cls, by_path: Mapping[str, str]) -> Texts:
        """Index texts by path."""
        places: dict[str, dict[str, int]] = {}
        lengths: dict[str, int] = {}
        for path, text in by_path.items():
            found = Counter(words(text))
            lengths[path] = found.total()
            for word, count in found.items():
                places.setdefault(word, {})[path] = count
        return cls(by_path, places, lengths)

    def ranked(self, query: str) -> list[str]:
        """Paths by BM25, best first, ties by path."""
        total = len(self.lengths) or 1
        mean = sum(self.lengths.values()) / total or 1.0
        scores = dict.fromkeys(self.lengths, 0.0)
        for word in sorted(set(words(query)) & self.places.keys()):
            spread = len(self.places[word])
            rarity = math.log(1 + (total - spread + 0.5) / (spread + 0.5))
            for path, count in self.places[word].items():
                full = K1 * (1 - B + B * self.lengths[path] / mean)
                scores[path] += rarity * count * (K1 + 1) / (count + full)
        return sorted(scores, key=lambda path: (-scores[path], path))


def words(text: str) -> list[str]:
    """Words and years in lower case."""
    return [one.lower() for one in WORD.findall(text)]


def numbers(text: str, limit: int = 400) -> list[float]:
    """The numbers of a text in order; years and single digits are left out."""
    found = []
    for match in NUMBER.finditer(text):
        value = float(match[0].replace(",", ""))
        if abs(value) > 9 and not (value.is_integer() and 1990 <= value <= 2100):
            found.append(value)
        if len(found) == limit:
            break
    return found


def first_number(bound: Bound, texts: Texts, ranked: Sequence[str]) -> Answer:
    """The right shape, every number the first one of the file that BM25 likes best, every word its own key.

    Args:
        ranked: paths by how well they fit the instruction, best first.
    """
    best = ranked[:1]
    found = numbers(texts.by_path[best[0]]) if best else []
    return filled(bound.answer, found[:1] or [0.0], bound.ask)


def newest_file(bound: Bound, texts: Texts, ranked: Sequence[str], newest: Sequence[str]) -> Answer:
    """The right shape, numbers in the order of the newest file that the search finds at all."""
    best = next((path for path in newest if path in ranked[:10]), ranked[0] if ranked else "")
    return filled(bound.answer, numbers(texts.by_path.get(best, "")) or [0.0], bound.ask)


def filled(answer: Answer, values: Sequence[float], ask: Mapping[str, Any]) -> Answer:
    """An answer of the same shape with these numbers in turn; words that were not asked with become a guess."""
    known = {str(one) for one in _said(ask)}
    state = {"next": 0}

    def put(path: Any, value: Any) -> Any:
        if is_number(value):
            state["next"] += 1
            new = values[(state["next"] - 1) % len(values)]
            return round(new) if isinstance(value, int) else new
        if isinstance(value, bool):
            return False
        if value is None or str(value) in known:
            return value
        return "unclear"

    return dict(mapped(answer, put))


def _said(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [one for key, inner in value.items() for one in (key, *_said(inner))]
    if isinstance(value, list | tuple):
        return [one for inner in value for one in _said(inner)]
    return [value]
