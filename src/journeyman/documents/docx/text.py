"""Changing the text of a paragraph by character position, so that each character keeps the format it stands in."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from .inline import Piece, content_of
from .names import W14, XML_SPACE, local, w

OWN_ELEMENT = {"\t": "tab", "\n": "br", "\f": "br"}
TRACKED_IN_RUN = {"rPrChange", "ins", "del", "moveFrom", "moveTo"}


def pieces_of(paragraph: Any) -> list[tuple[int, int, Piece]]:
    """Start, end and piece of the accepted text, in order."""
    found, at = [], 0
    for piece in content_of(paragraph, {}).pieces:
        if piece.deleted is None:
            found.append((at, at + len(piece.text), piece))
            at += len(piece.text)
    return found


def accepted_text(paragraph: Any) -> str:
    """The paragraph's text with tracked changes accepted."""
    return "".join(piece.text for _, _, piece in pieces_of(paragraph))


def text_elements(text: str) -> list[Any]:
    """Elements of a run that spell ``text``; tabs, line feeds and form feeds are elements of their own."""
    from lxml import etree

    elements: list[Any] = []
    plain = ""
    for character in [*text, ""]:
        if character and character not in OWN_ELEMENT:
            plain += character
            continue
        if plain:
            element = etree.Element(w("t"))
            element.text, plain = plain, ""
            element.set(XML_SPACE, "preserve")
            elements.append(element)
        if character:
            element = etree.Element(w(OWN_ELEMENT[character]))
            if character == "\f":
                element.set(w("type"), "page")
            elements.append(element)
    return elements


def splice(paragraph: Any, start: int, end: int, new: str) -> None:
    """Replace the characters ``start:end`` of the accepted text; the new text takes the format of the first of them.

    Raises:
        ValueError: the place lies in a formula.
    """
    pieces = pieces_of(paragraph)
    covered = [(a, b, piece) for a, b, piece in pieces if a < end and b > start]
    if not covered:
        covered = _neighbour(pieces, start)
    if not covered:
        if new:
            paragraph.append(plain_run(paragraph, new))
        return
    if any(piece.run is None for _, _, piece in covered):
        raise ValueError("it stands in a formula")
    for number, (a, b, piece) in enumerate(covered):
        kept = piece.text[: max(0, start - a)], piece.text[max(0, end - a) :] if end < b else ""
        _replace(piece, kept[0] + (new if number == 0 else "") + kept[1])


def set_text(paragraph: Any, text: str) -> None:
    """Make ``text`` the accepted text; what is the same at the beginning and at the end keeps its elements."""
    old = accepted_text(paragraph)
    start = next((at for at, (a, b) in enumerate(zip(old, text, strict=False)) if a != b), min(len(old), len(text)))
    rest = min(len(old), len(text)) - start
    same = zip(reversed(old), reversed(text), strict=False)
    tail = min(rest, next((at for at, (a, b) in enumerate(same) if a != b), rest))
    splice(paragraph, start, len(old) - tail, text[start : len(text) - tail])


def replace_text(paragraph: Any, old: str, new: str, limit: int) -> int:
    """Replace up to ``limit`` occurrences from the start; returns how many. Raises ValueError as ``splice``."""
    places = list(occurrences(accepted_text(paragraph), old))[:limit]
    for start in reversed(places):
        splice(paragraph, start, start + len(old), new)
    return len(places)


def occurrences(text: str, wanted: str) -> Iterator[int]:
    """Positions of non-overlapping occurrences."""
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + len(wanted))


def isolate(paragraph: Any, start: int, end: int) -> list[Any]:
    """Split runs so that the accepted characters ``start:end`` fill whole runs; returns these runs in order.

    Raises:
        ValueError: the place lies in a formula.
    """
    for cut in (end, start):
        for a, b, piece in pieces_of(paragraph):
            if piece.run is None and a < end and b > start:
                raise ValueError("it stands in a formula")
            if a < cut < b:
                _split_text(piece, cut - a)
        for a, b, piece in pieces_of(paragraph):
            if a == cut and a < b and piece.run is not None:
                _split_run(piece.run, piece.element)
                break
    runs: list[Any] = []
    for a, b, piece in pieces_of(paragraph):
        if a >= start and b <= end and a < b and piece.run not in runs:
            runs.append(piece.run)
    return runs


def plain_run(paragraph: Any, text: str) -> Any:
    """A run of this text in the format of the paragraph's end."""
    from lxml import etree

    run = etree.Element(w("r"))
    mark = paragraph.find(f"{w('pPr')}/{w('rPr')}")
    if mark is not None:
        run.append(clean_format(mark))
    run.extend(text_elements(text))
    return run


def clean_format(properties: Any) -> Any:
    """A copy of run properties without records of tracked changes."""
    copy = deepcopy(properties)
    copy.tail = None
    for child in [one for one in copy if local(one) in TRACKED_IN_RUN]:
        copy.remove(child)
    return copy


def forget_ids(element: Any) -> Any:
    """Remove paragraph ids below a copied element: an id names one paragraph."""
    for one in element.iter(w("p"), w("tr")):
        for name in ("paraId", "textId"):
            one.attrib.pop(f"{{{W14}}}{name}", None)
    return element


def remove(element: Any) -> None:
    """Take an element out of its parent; text between elements carries no meaning here."""
    element.getparent().remove(element)


def _neighbour(pieces: list[tuple[int, int, Piece]], at: int) -> list[tuple[int, int, Piece]]:
    """The piece that ends at a position, else the one that begins there."""
    usable = [one for one in pieces if one[2].run is not None]
    before = [one for one in usable if one[1] == at]
    return before[-1:] or [one for one in usable if one[0] == at][:1]


def _replace(piece: Piece, text: str) -> None:
    element, parent = piece.element, piece.element.getparent()
    if local(element) == "t" and not any(character in OWN_ELEMENT for character in text) and text:
        element.text = text
        element.set(XML_SPACE, "preserve")
        return
    if text == piece.text:
        return
    at = parent.index(element)
    parent.remove(element)
    for offset, new in enumerate(text_elements(text)):
        parent.insert(at + offset, new)


def _split_text(piece: Piece, at: int) -> None:
    parent = piece.element.getparent()
    index = parent.index(piece.element)
    second = text_elements(piece.text[at:])
    _replace(piece, piece.text[:at])
    for offset, element in enumerate(second, start=1):
        parent.insert(index + offset, element)


def _split_run(run: Any, element: Any) -> None:
    """Move ``element`` and what follows it into a run of its own, unless the run begins with it."""
    from lxml import etree

    top = element
    while top.getparent() is not run:
        top = top.getparent()
    at = run.index(top)
    if all(local(one) == "rPr" for one in run[:at]):
        return
    second = etree.Element(run.tag)
    properties = run.find(w("rPr"))
    if properties is not None:
        second.append(deepcopy(properties))
    second.extend(list(run[at:]))
    run.addnext(second)
    second.tail = None
