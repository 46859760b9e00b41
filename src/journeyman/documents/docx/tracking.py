"""Tracked changes: accept, reject, and make a change as one (redline)."""

from __future__ import annotations

from typing import Any

from .names import DELETED, INSERTED, KIND_OF_CHANGE, XML_SPACE, local, w
from .text import clean_format, forget_ids, isolate, pieces_of, plain_run, remove, text_elements

MARKS = {"rPr", "trPr"}
"""Properties in which an empty ``ins`` or ``del`` says that the mark or the row is tracked."""
KEPT_IN_SECTION = {"headerReference", "footerReference"}
MOVE_RANGES = ("moveFromRangeStart", "moveFromRangeEnd", "moveToRangeStart", "moveToRangeEnd")


def changes_below(element: Any) -> list[Any]:
    """Tracked changes in an element, itself included, innermost first."""
    found = [one for one in element.iter() if local(one) in KIND_OF_CHANGE]
    return list(reversed(found))


def settle(change: Any, accept: bool) -> None:
    """Accept or reject one tracked change. A change that went with another one is left alone."""
    parent, name = change.getparent(), local(change)
    if parent is None:
        return
    if name not in INSERTED | DELETED:
        _settle_format(change, accept)
    elif local(parent) in MARKS:
        _settle_mark(change, accept == (name in INSERTED))
    elif accept == (name in INSERTED):
        _unwrap(change)
    else:
        remove(change)


def drop_move_ranges(root: Any) -> None:
    """Remove the brackets around moved text when no moved text is left."""
    if not any(True for _ in root.iter(w("moveFrom"), w("moveTo"))):
        for element in list(root.iter(*(w(name) for name in MOVE_RANGES))):
            remove(element)


def redline(paragraph: Any, start: int, end: int, new: str, facts: dict[str, str], first_id: int) -> list[Any]:
    """Replace accepted characters ``start:end`` as a tracked change; returns its elements.

    Args:
        paragraph: where.
        start, end: of the accepted text; equal for an insertion.
        new: the text to insert, may be empty.
        facts: ``author`` and, if wanted, ``date`` of the change.
        first_id: id of the first element, the next ones follow.

    Raises:
        ValueError: the place lies in a formula or in text that is itself tracked.
    """
    runs = isolate(paragraph, start, end) if end > start else []
    for run in runs:
        if any(local(one) in INSERTED | DELETED for one in run.iterancestors()):
            raise ValueError("part of it is a tracked change; accept or reject that first")
    made: list[Any] = []
    for run in runs:
        wrapper = _wrapper("del", facts, first_id + len(made))
        run.addprevious(wrapper)
        wrapper.append(run)
        run.tail = None
        _rename(run, "t", "delText")
        _rename(run, "instrText", "delInstrText")
        made.append(wrapper)
    if new:
        wrapper = _wrapper("ins", facts, first_id + len(made))
        _place(paragraph, start, wrapper, runs)
        model = runs[0] if runs else _format_at(paragraph, start)
        wrapper.append(_run_like(model, paragraph, new))
        made.append(wrapper)
    return made


def _wrapper(name: str, facts: dict[str, str], number: int) -> Any:
    from lxml import etree

    element = etree.Element(w(name))
    element.set(w("id"), str(number))
    for key, text in facts.items():
        element.set(w(key), text)
    return element


def _place(paragraph: Any, at: int, wrapper: Any, deleted: list[Any]) -> None:
    if deleted:
        deleted[-1].getparent().addnext(wrapper)
        return
    pieces = pieces_of(paragraph)
    if at < sum(b - a for a, b, _ in pieces):
        run = isolate(paragraph, at, at + 1)[0]
        if any(local(one) in INSERTED for one in run.iterancestors()):
            raise ValueError("the place lies in a tracked change; accept or reject that first")
        run.addprevious(wrapper)
        return
    paragraph.append(wrapper)


def _format_at(paragraph: Any, at: int) -> Any:
    runs = [piece.run for a, _, piece in pieces_of(paragraph) if piece.run is not None and a < max(at, 1)]
    return runs[-1] if runs else None


def _run_like(model: Any, paragraph: Any, text: str) -> Any:
    from lxml import etree

    if model is None:
        return plain_run(paragraph, text)
    run = etree.Element(w("r"))
    properties = model.find(w("rPr"))
    if properties is not None:
        run.append(clean_format(properties))
    run.extend(text_elements(text))
    return run


def _rename(element: Any, old: str, new: str) -> None:
    for one in list(element.iter(w(old))):
        one.tag = w(new)
        one.set(XML_SPACE, "preserve")


def _unwrap(change: Any) -> None:
    _rename(change, "delText", "t")
    _rename(change, "delInstrText", "instrText")
    for child in list(change):
        change.addprevious(child)
    remove(change)


def _settle_mark(change: Any, stays: bool) -> None:
    """A tracked row or end of paragraph: it stays without its record, or goes."""
    properties = change.getparent()
    owner = properties.getparent()
    remove(change)
    if stays:
        return
    if local(properties) == "trPr":
        remove(owner)
    elif local(owner) == "pPr" and owner.getparent() is not None:
        _join(owner.getparent())


def _join(paragraph: Any) -> None:
    """Let a paragraph run on into the next, whose properties the whole takes; an empty last one goes."""
    following = paragraph.getnext()
    if following is None or following.tag != w("p"):
        siblings = [one for one in paragraph.getparent() if one.tag == w("p")]
        if not pieces_of(paragraph) and len(siblings) > 1 and paragraph.find(f"{w('pPr')}/{w('sectPr')}") is None:
            remove(paragraph)
        return
    at = 1 if following.find(w("pPr")) is not None else 0
    for offset, child in enumerate([one for one in paragraph if local(one) != "pPr"]):
        following.insert(at + offset, child)
    remove(forget_ids(paragraph))


def _settle_format(change: Any, accept: bool) -> None:
    properties = change.getparent()
    remove(change)
    if accept or not local(change).endswith("PrChange"):
        return
    kept = (
        KEPT_IN_SECTION if local(properties) == "sectPr" else {"rPr", "sectPr"} if local(properties) == "pPr" else set()
    )
    for child in [one for one in properties if local(one) not in kept]:
        properties.remove(child)
    first = len(properties) if local(properties) == "sectPr" else 0  # references stand before everything else
    for at, child in enumerate(list(change[0]) if len(change) else [], start=first):
        properties.insert(at, child)
