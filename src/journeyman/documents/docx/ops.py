"""The ops on Word documents, one function each; see ``edits`` for their fields."""

from __future__ import annotations

from typing import Any

from ..editing import Change
from ..errors import BadEdit
from ..node import nearest_of
from . import structure, tracking
from .blocks import Place, within
from .commenting import add_comment, comments_part, delete_comment
from .edits import Done, Op, Session, paragraphs_below
from .names import local, w
from .text import accepted_text, occurrences, remove, replace_text, set_text


def set_op(session: Session, change: Change, place: Place) -> Done:
    """Set the text of a paragraph, cell, note or comment."""
    text, before = change.text("text", session.name), session.before(place)
    name = local(place.element)
    if name == "p":
        set_text(place.element, text)
    elif name in ("tc", "comment", "hdr", "ftr", "txbxContent"):
        structure.set_cell(place.element, text)
    elif name in ("footnote", "endnote"):
        _set_note(place.element, text)
    else:
        raise ValueError("only paragraphs, cells, headers, footers, notes, comments and text boxes have a text to set")
    return Done(place.element, place.part, before, _tracked_note(place.element))


def _set_note(element: Any, text: str) -> None:
    first, *others = within(element, "p")
    set_text(first, text)
    for other in others:
        remove(other)


def replace_op(session: Session, change: Change, place: Place) -> Done:
    """Replace words below a place; without an address in every story."""
    old, new = change.text("old", session.name), change.text("new", session.name)
    if not old:
        raise ValueError("'old' is empty")
    left = change.values.get("count", 10**9)
    if not isinstance(left, int) or left < 1:
        raise ValueError(f"'count' must be a whole number from 1, got {left!r}")
    before, total = session.before(place), 0
    scopes = [(place.part, place.element)] if change.address else list(session.reading.roots.items())
    for part, scope in scopes:
        for paragraph in paragraphs_below(scope):
            done = replace_text(paragraph, old, new, left - total) if left > total else 0
            total += done
            if done:
                session.touched.add(part)
    if not total:
        near = nearest_of(old, accepted_text(place.element).split()) if local(place.element) == "p" else []
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{old!r} does not occur there{hint}")
    return Done(place.element, place.part, before, f"{total} replaced" if total > 1 else "")


def insert_op(session: Session, change: Change, place: Place) -> Done:
    """Insert a paragraph or a row."""
    where = change.values.get("where", "after")
    if where not in ("after", "before"):
        raise ValueError(f"'where' is {where!r}; allowed: after, before")
    name = local(place.element)
    if name == "tr":
        values = change.values.get("values")
        if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
            raise ValueError("a row needs 'values', a list of texts")
        added = structure.new_row(place.element, values)
    elif name in ("p", "tbl", "body", "tc", "hdr", "ftr"):
        style = _style_id(session, change) if "style" in change.values else None
        model = place.element if name == "p" else None
        added = structure.new_paragraph(model, change.text("text", session.name), style)
    else:
        raise ValueError("paragraphs are inserted beside paragraphs and tables, rows beside rows")
    session.touched.add(place.part)
    if name in ("body", "tc", "hdr", "ftr"):
        last = place.element[-1] if len(place.element) else None
        place.element.insert(len(place.element) - (last is not None and local(last) == "sectPr"), added)
    elif where == "after":
        place.element.addnext(added)
    else:
        place.element.addprevious(added)
    return Done(added, place.part, None)


def delete_op(session: Session, change: Change, place: Place) -> Done:
    """Delete a paragraph, row, table or comment."""
    before = session.before(place)
    if local(place.element) == "comment":
        session.touched |= delete_comment(place.element, session.reading.roots)
    else:
        structure.delete(place.element)
    return Done(None, place.part, before)


def style_op(session: Session, change: Change, place: Place) -> Done:
    """Set the style of a paragraph."""
    from lxml import etree

    if local(place.element) != "p":
        raise ValueError("only paragraphs have a paragraph style")
    style_id = _style_id(session, change)
    properties = place.element.find(w("pPr"))
    if properties is None:
        properties = etree.Element(w("pPr"))
        place.element.insert(0, properties)
    element = properties.find(w("pStyle"))
    before = None if element is None else element.get(w("val"))
    if element is None:
        element = etree.Element(w("pStyle"))
        properties.insert(0, element)
    element.set(w("val"), style_id)
    return Done(place.element, place.part, session.before(place), f"style {before or 'none'} -> {style_id}")


def accept_op(session: Session, change: Change, place: Place) -> Done:
    """Accept tracked changes."""
    return _settle(session, change, place, accept=True)


def reject_op(session: Session, change: Change, place: Place) -> Done:
    """Reject tracked changes."""
    return _settle(session, change, place, accept=False)


def _settle(session: Session, change: Change, place: Place, accept: bool) -> Done:
    before, is_one = session.before(place), change.address.startswith("change:")
    scopes = {place.part: place.element} if change.address else session.reading.roots
    total = 0
    for part, scope in scopes.items():
        found = [scope] if is_one else tracking.changes_below(scope)
        for one in found:
            tracking.settle(one, accept)
        if found:
            session.touched.add(part)
            tracking.drop_move_ranges(session.reading.roots[part])
        total += len(found)
    if not total:
        raise ValueError("there is no tracked change")
    return Done(None if is_one else place.element, place.part, before, "" if is_one else f"{total} tracked changes")


def redline_op(session: Session, change: Change, place: Place) -> Done:
    """Replace words as a tracked change."""
    if local(place.element) != "p":
        raise ValueError("a redline applies to one paragraph")
    text = accepted_text(place.element)
    start, end = _span(text, change.values.get("old"), "old") or (0, len(text))
    new = change.text("new", session.name)
    if text[start:end] == new:
        raise ValueError("old and new text are the same")
    made = tracking.redline(place.element, start, end, new, _facts(session, change), session.next_id())
    ids = ", ".join(f"change:{one.get(w('id'))}" for one in made)
    return Done(place.element, place.part, text, f"tracked as {ids}")


def comment_op(session: Session, change: Change, place: Place) -> Done:
    """Comment on a paragraph or on words of it."""
    if local(place.element) != "p" or place.part != session.reading.main:
        raise ValueError("a comment is on one paragraph of the body")
    span = _span(accepted_text(place.element), change.values.get("quoted"), "quoted")
    facts = _facts(session, change)
    facts["initials"] = "".join(word[0] for word in facts["author"].split())[:3].upper()
    text = change.text("text", session.name)
    part, touched = comments_part(session.reading.walk.package, session.reading.main, session.reading.roots)
    session.touched |= touched
    made = add_comment(session.reading.roots[part], place.element, span, text, facts)
    return Done(made, part, None)


def _span(text: str, words: Any, key: str) -> tuple[int, int] | None:
    if words is None:
        return None
    found = list(occurrences(text, words)) if isinstance(words, str) and words else []
    if len(found) != 1:
        raise ValueError(f"{key} {words!r} occurs {len(found)} times there, it must occur once")
    return found[0], found[0] + len(words)


def _facts(session: Session, change: Change) -> dict[str, str]:
    author = change.text("author", session.name)
    if not author.strip():
        raise ValueError("'author' is empty")
    return {"author": author} | ({"date": change.text("date", session.name)} if "date" in change.values else {})


def _style_id(session: Session, change: Change) -> str:
    wanted, styles = change.text("style", session.name), session.reading.walk.styles
    found = styles.id_of(wanted)
    if found is None:
        near = nearest_of(wanted, list(styles.names.values()))
        remedy = f"nearest: {', '.join(near)}" if near else "see the styles in the file"
        raise BadEdit(session.name, f"no style {wanted!r}", place=change.address, remedy=remedy)
    return found


def _tracked_note(element: Any) -> str:
    deleted = any(True for _ in element.iter(w("del"), w("moveFrom")))
    return "text deleted as a tracked change is still in the file" if deleted else ""


OPS: dict[str, Op] = {
    "set": set_op,
    "replace": replace_op,
    "insert": insert_op,
    "delete": delete_op,
    "style": style_op,
    "accept": accept_op,
    "reject": reject_op,
    "redline": redline_op,
    "comment": comment_op,
}
"""Op -> function."""
