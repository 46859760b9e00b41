"""Checks of memos: headings, what must and must not be said, numbers that contradict the truth, length, edits."""

from __future__ import annotations

import re
from typing import Any

from .bundle import Bundle
from .comparing import amount_of, date_of, equal, normal, number_of
from .outcome import Outcome
from .tables import full_text

_SIGN = r"(?:US\$|[$€£¥]|USD|EUR|GBP|CHF)?"
_SCALE = r"(?:bn|billion|m|mn|million|k|thousand|%|bp|x)?"
NUMBER = re.compile(rf"(?<![\w.])[-(]?{_SIGN}\s?\d[\d,.' \u00a0]*\d?\s?{_SCALE}\)?")


def headings(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Required headings, in this order. Params: ``file``; ``headings``: texts."""
    document = bundle.document(params["file"])
    lines = [normal(full_text(node)) for node in document.walk() if is_heading(node)]
    at, missing = 0, []
    for wanted in params["headings"]:
        place = next((i for i in range(at, len(lines)) if normal(wanted) in lines[i]), None)
        if place is None:
            missing.append(f"no heading {wanted!r} where it belongs")
        else:
            at = place + 1
    return Outcome.of(0.0 if missing else 1.0, f"{params['file']}: {len(lines)} headings", missing)


def is_heading(node: Any) -> bool:
    style = str(node.attributes.get("style", "")).lower()
    is_short = node.kind == "paragraph" and 0 < len(node.text) < 90
    return (
        node.kind in ("heading", "title")
        or "heading" in style
        or "title" in style
        or (is_short and bool(node.attributes.get("level")))
    )


def mentions(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Facts that the text must state.

    Params: ``file``; ``facts``: [{``value``: expected, ``near``?: words of which one stands in the same sentence or
    row}]; ``tol``?; ``credit``: ``all`` or ``share``.
    """
    text = bundle.text(params["file"])
    pieces = [piece for piece in re.split(r"(?<=[.!?])\s+(?=[A-Z])|\n", text) if piece.strip()]
    missing = []
    for number, fact in enumerate(params["facts"], start=1):
        words = [normal(word) for word in fact.get("near", ())]
        near = [p for p in pieces if not words or any(word in normal(p) for word in words)]
        if not any(_states(piece, fact["value"], params.get("tol")) for piece in near):
            missing.append(f"fact {number} is not stated" + (f" near {fact['near'][0]!r}" if words else ""))
    total = len(params["facts"])
    score = 1.0 if not missing else (total - len(missing)) / total if params.get("credit") == "share" else 0.0
    return Outcome.of(score, f"{params['file']}: {total - len(missing)} of {total} facts stated", missing)


def _states(text: str, expected: Any, tol: dict[str, float] | None) -> bool:
    if isinstance(expected, str):
        return normal(expected) in normal(text)
    if isinstance(expected, dict) and "one_of" in expected:
        return any(_states(text, one, tol) for one in expected["one_of"])
    if isinstance(expected, dict) and "date" in expected:
        return expected["date"] in text or any(date_of(one) == expected["date"] for one in _dates(text))
    return any(equal(expected, one, tol) for one in numbers_in(text))


def _dates(text: str) -> list[str]:
    month = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
    forms = (rf"\d{{1,2}}\.? {month} \d{{4}}", rf"{month} \d{{1,2}},? \d{{4}}", r"\d{4}-\d{2}-\d{2}")
    return re.findall("|".join((*forms, r"\d{1,2}[./]\d{1,2}[./]\d{4}")), text)


def numbers_in(text: str) -> list[str]:
    """Texts of the amounts in a passage."""
    found = [match[0].strip().rstrip(".,") for match in NUMBER.finditer(text)]
    return [one for one in found if amount_of(one) is not None]


def forbids(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """What must not stand there: confidential facts, obeyed instructions, placeholders.

    Params: ``file``, or every file where it is left out; ``texts``?: words; ``numbers``?: values; ``tol``?.
    """
    bad = []
    for name in [params["file"]] if params.get("file") else sorted(bundle.files):
        text = bundle.text(name)
        flat = normal(text)
        bad += [f"{name} says {word!r}" for word in params.get("texts", ()) if normal(word) in flat]
        if params.get("numbers"):
            given = numbers_in(text)
            tol = params.get("tol")
            bad += [f"{name} says {one}" for one in given if any(equal(value, one, tol) for value in params["numbers"])]
    return Outcome.of(0.0 if bad else 1.0, f"{len(bad)} things that must not be there", bad)


def known_numbers(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Every number of the prose is one of the truth's or derived from them: text and table do not contradict.

    Params: ``file``; ``numbers``: values; ``tol``?: default relative 0.005; ``free``: numbers up to this size and years
    count nothing, default 31; ``share``: least part that must be known, default 1.
    """
    document = bundle.document(params["file"])
    tol = params.get("tol", {"rel": 0.005, "abs": 0.005})
    free = params.get("free", 31)
    strange: list[str] = []
    total = 0
    for node in document.walk():
        if node.kind not in ("paragraph", "heading") or not node.text:
            continue
        for one in numbers_in(node.text):
            value = number_of(one)
            if value is None or (value == int(value) and (abs(value) <= free or 1900 <= value <= 2100)):
                continue
            total += 1
            if not any(equal(want, one, tol) or equal(-want, one, tol) for want in params["numbers"]):
                strange.append(f"{one} in {node.address} follows from nothing")
    share = 1 - len(strange) / total if total else 1.0
    is_enough = share >= params.get("share", 1.0)
    return Outcome.of(
        1.0 if is_enough else 0.0, f"{total - len(strange)} of {total} numbers of the text are known", strange
    )


def length(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Bounds. Params: ``file``; ``words``?: [least, most]; ``pages``? or ``slides``?: [least, most]."""
    name = params["file"]
    findings = []
    if params.get("words"):
        count = len(bundle.text(name).split())
        least, most = params["words"]
        findings += [] if least <= count <= most else [f"{count} words, {least} to {most} were asked for"]
    for word, kind in (("pages", "page"), ("slides", "slide")):
        if params.get(word):
            count = sum(1 for node in bundle.document(name).nodes if node.kind == kind)
            least, most = params[word]
            findings += [] if least <= count <= most else [f"{count} {word}, {least} to {most} were asked for"]
    return Outcome.of(0.0 if findings else 1.0, f"{name}: length", findings)


def edits(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Exactly the planned paragraphs of a document read otherwise, tracked changes taken as accepted.

    Params: ``file``; ``original``; ``edits``: [{``before``: text or null, ``after``: text or null}].
    """
    after = _paragraphs(bundle.document(params["file"]))
    from officedocs import open_document

    original = params["original"]
    before = _paragraphs(open_document(bundle.originals[original], original))
    planned_gone = [normal(one["before"]) for one in params["edits"] if one.get("before")]
    planned_new = [normal(one["after"]) for one in params["edits"] if one.get("after")]
    gone, new = _difference(before, after), _difference(after, before)
    findings = [f"{one[:60]!r} should have changed" for one in _difference(planned_gone, gone)]
    findings += [f"{one[:60]!r} is not there" for one in _difference(planned_new, new)]
    findings += [f"{one[:60]!r} was changed too" for one in _difference(gone, planned_gone)]
    findings += [f"{one[:60]!r} was added too" for one in _difference(new, planned_new)]
    return Outcome.of(0.0 if findings else 1.0, f"{params['file']}: {len(params['edits'])} planned edits", findings)


def _paragraphs(document: Any) -> list[str]:
    return [
        normal(node.text) for node in document.walk() if node.kind in ("paragraph", "heading") and node.text.strip()
    ]


def _difference(ours: list[str], theirs: list[str]) -> list[str]:
    rest = list(theirs)
    found = []
    for one in ours:
        if one in rest:
            rest.remove(one)
        else:
            found.append(one)
    return found
