"""Gold spans: passages copied word for word, each with the place it was copied from."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from .answers import backs, cited_path, cited_place
from .bundle import Bundle
from .comparing import normal, number_of
from .outcome import Outcome
from .tables import at_path

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")


def spans(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Each wanted passage is quoted, neither more nor less of it, from a place that holds it.

    Params: ``file``; ``path``: of a list of objects with ``no``, ``file``, ``place`` and ``text``; ``spans``: [{``no``,
    ``text``, ``places``: accepted [{``path``, ``locator``}]}]; ``least``: token F1 between passage and quotation,
    default 0.92; numbers must be the same whatever it is; ``extra``: ``fail`` (default) or ``ignored``, of numbers that
    were not asked for; ``credit``: ``all`` or ``share``.
    """
    value = at_path(bundle.json(params["file"]), params.get("path", "spans"))
    given = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    wanted = params["spans"]
    findings = []
    for span in wanted:
        found = [one for one in given if number_of(one.get("no")) == span["no"]]
        if len(found) != 1:
            findings.append(f"no. {span['no']} stands there {len(found)} times")
        elif problem := _problem(found[0], span, params.get("least", LEAST)):
            findings.append(f"no. {span['no']} {problem}")
    right = len(wanted) - len(findings)
    score = 1.0 if not findings else right / len(wanted) if params.get("credit") == "share" else 0.0
    strange = len(given) - sum(number_of(one.get("no")) in {span["no"] for span in wanted} for one in given)
    if strange and params.get("extra", "fail") == "fail":
        findings.append(f"{strange} passages were not asked for")
        score = 0.0
    return Outcome.of(score, f"{right} of {len(wanted)} spans", findings)


LEAST = 0.92
"""Token F1 that leaves room for a header of the page or a broken word, and for no further sentence."""


def _problem(given: dict[str, Any], span: dict[str, Any], least: float) -> str:
    """What is wrong with one quotation; empty for nothing."""
    cited = cited_path(given.get("file")), cited_place(given.get("place"))
    if not any(backs(cited, place, "file") for place in span["places"]):
        return "is quoted from another file"
    if not any(backs(cited, place, "place") for place in span["places"]):
        return "names a place that does not hold it"
    gold, quoted = words_of(span["text"]), words_of(given.get("text"))
    if {one: n for one, n in gold.items() if one[0].isdigit()} != {o: n for o, n in quoted.items() if o[0].isdigit()}:
        return "has other numbers than the passage"
    overlap = f1(gold, quoted)
    return "" if overlap >= least else f"overlaps with the passage to {overlap:.2f}, {least} is needed"


def words_of(text: Any) -> Counter[str]:
    """Words and numbers of a passage, each with how often it occurs; a word broken at the end of a line is joined."""
    joined = re.sub(r"(?<=[a-z])-\s*\n\s*(?=[a-z])", "", str(text or ""))
    return Counter(_WORD.findall(normal(joined)))


def f1(gold: Counter[str], quoted: Counter[str]) -> float:
    """Harmonic mean of how much of the passage is quoted and how much of the quotation is the passage."""
    total = sum(gold.values()) + sum(quoted.values())
    return 2 * sum((gold & quoted).values()) / total if total else 0.0
