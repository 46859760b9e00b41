"""The ops on presentations, one function each; see ``edits`` for their fields."""

from __future__ import annotations

from typing import Any

from ..editing import Change
from .charts import set_in_workbook, set_points
from .edits import Done, Op, Session, frame_of, state
from .names import EMU_PER_POINT, a, c, local, p
from .shapes import Place, position_of
from .slides import add_slide, delete_slide, duplicate_slide, move_slide, text_bodies
from .text import replace_text, set_body

FRAME = (("x_pt", "off", "x"), ("y_pt", "off", "y"), ("width_pt", "ext", "cx"), ("height_pt", "ext", "cy"))


def set_op(session: Session, change: Change, place: Place | None) -> Done:
    """Set a text, a series' values, or whether a slide is hidden."""
    if place is None:
        raise ValueError("it needs an address")
    before = state(session.document.find(change.address))
    note = ""
    if place.kind == "series":
        note = _set_series(session, change, place)
    elif place.kind == "slide":
        hidden = change.values.get("hidden")
        if not isinstance(hidden, bool):
            raise ValueError("of a slide 'hidden' is set, true or false")
        before = {"hidden": place.element.get("show") in ("0", "false")}
        note = f"hidden: {before['hidden']} -> {hidden}"
        place.element.attrib.pop("show", None)
        if hidden:
            place.element.set("show", "0")
    else:
        set_body(_body(place), change.text("text", session.document.name))
        if place.kind == "entry":
            note = "the diagram's stored drawing shows the old text until a program lays it out again"
    session.touch(place.part)
    return Done(*_where(session, change, place), before, note)


def replace_op(session: Session, change: Change, place: Place | None) -> Done:
    """Replace words below a place, or on all slides and their notes."""
    name = session.document.name
    old, new = change.text("old", name), change.text("new", name)
    limit = change.values.get("count", 10**9)
    if not old or not isinstance(limit, int) or limit < 1:
        raise ValueError("it needs 'old' and, if given, a 'count' from 1")
    before = None if place is None else state(session.document.find(change.address))
    scopes = _scopes(session) if place is None else [(place.part, place.element)]
    if place is not None and place.kind == "slide":
        scopes += [
            (one, root) for one, root in _scopes(session) if one in session.package.related(place.part, "notesSlide")
        ]
    total = 0
    for part, scope in scopes:
        for body in text_bodies(scope):
            for paragraph in body.findall(a("p")):
                done = replace_text(paragraph, old, new, limit - total) if total < limit else 0
                total += done
                if done:
                    session.touch(part)
    if not total:
        raise ValueError(f"{old!r} does not occur there")
    slide_id, rest = (None, None) if place is None else _where(session, change, place)
    return Done(slide_id, rest, before, f"{total} replaced")


def place_op(session: Session, change: Change, place: Place | None) -> Done:
    """Set position and size of a shape."""
    from lxml import etree

    if place is None or local(place.element) not in ("sp", "pic", "grpSp", "graphicFrame", "cxnSp"):
        raise ValueError("only shapes have a position")
    values = {key: change.values[key] for key, _, _ in FRAME if key in change.values}
    if not values or not all(isinstance(one, int | float) and not isinstance(one, bool) for one in values.values()):
        raise ValueError(f"give numbers for some of {', '.join(key for key, _, _ in FRAME)}")
    before = frame_of(session.document.find(change.address))
    frame = position_of(place.element)
    if frame is None:
        if len(values) < len(FRAME):
            raise ValueError("its position is that of the layout; give all four numbers")
        holder = place.element.find(p("spPr"))
        if holder is None:
            raise ValueError("it has no properties to hold a position")
        frame = etree.Element(a("xfrm"))
        holder.insert(0, frame)
        etree.SubElement(frame, a("off"))
        etree.SubElement(frame, a("ext"))
    for key, name, attribute in FRAME:
        if key in values:
            frame.find(a(name)).set(attribute, str(round(values[key] * EMU_PER_POINT)))
    session.touch(place.part)
    return Done(*_where(session, change, place), before)


def insert_op(session: Session, change: Change, place: Place | None) -> Done:
    """Insert a slide."""
    at = len(session.reading.slides)
    if place is not None:
        at = _index(session, place) + _after(change)
    texts = [change.values.get(key, "") for key in ("title", "text")]
    if not all(isinstance(one, str) for one in texts):
        raise ValueError("'title' and 'text' are texts")
    layout = change.text("layout", session.document.name)
    return Done(add_slide(session, layout, texts[0], texts[1], at), "", None)


def duplicate_op(session: Session, change: Change, place: Place | None) -> Done:
    """Duplicate a slide; the copy follows it."""
    if place is None or place.kind != "slide":
        raise ValueError("only slides are duplicated")
    return Done(duplicate_slide(session, place.part, _index(session, place) + 1), "", None)


def delete_op(session: Session, change: Change, place: Place | None) -> Done:
    """Delete a slide or a shape."""
    if place is None:
        raise ValueError("it needs an address")
    before = state(session.document.find(change.address))
    if place.kind == "slide":
        if len(list(session.root(session.main).iter(p("sldId")))) == 1:
            raise ValueError("it is the only slide")
        delete_slide(session, _index(session, place), place.part)
        return Done(None, None, before)
    if local(place.element) not in ("sp", "pic", "grpSp", "graphicFrame", "cxnSp"):
        raise ValueError("only slides and shapes are deleted")
    place.element.getparent().remove(place.element)
    session.touch(place.part)
    return Done(None, None, before)


def move_op(session: Session, change: Change, place: Place | None) -> Done:
    """Move a slide."""
    to, count = change.values.get("to"), len(session.reading.slides)
    if place is None or place.kind != "slide":
        raise ValueError("only slides are moved")
    if not isinstance(to, int) or not 1 <= to <= count:
        raise ValueError(f"'to' is a position from 1 to {count}, got {to!r}")
    move_slide(session, _index(session, place), to - 1)
    return Done(*_where(session, change, place), change.address, "")


def _set_series(session: Session, change: Change, place: Place) -> str:
    series, allowed = place.element, (int, float, type(None))
    values, categories, name = (change.values.get(key) for key in ("values", "categories", "name"))
    if values is None and categories is None and name is None:
        raise ValueError("give 'values', 'categories' or 'name'")
    stale: list[str] = []
    if values is not None:
        if not isinstance(values, list) or not all(isinstance(v, allowed) and not isinstance(v, bool) for v in values):
            raise ValueError("'values' is a list of numbers, null for a gap")
        _write_points(session, place, set_points(series, ("val", "yVal"), values), values, stale)
    if categories is not None:
        if not isinstance(categories, list) or not all(isinstance(one, str) for one in categories):
            raise ValueError("'categories' is a list of texts")
        _write_points(session, place, set_points(series, ("cat",), categories), categories, stale)
    if name is not None:
        _write_points(session, place, set_points(series, ("tx",), [str(name)]), [str(name)], stale)
    return f"the chart's workbook still holds the old {', '.join(stale)}" if stale else ""


def _write_points(session: Session, place: Place, reference: str | None, values: list[Any], stale: list[str]) -> None:
    root = session.root(place.part)
    external = root.find(c("externalData"))
    if external is None or reference is None:
        return
    relations = session.package.relationships(place.part)
    target = next((one.target for one in relations.values() if one.type == "package" and not one.external), None)
    part = None if target is None else session.package.part_name(target)
    if part is not None:
        current = session.changed.get(part) or session.package.parts[part]
        new = set_in_workbook(session.package, current, reference, values)
        if new is not None:
            session.put(part, new)
            return
    stale.append(reference)


def _body(place: Place) -> Any:
    if local(place.element) in ("txBody", "t"):
        return place.element
    body = place.element.find(p("txBody"))
    body = place.element.find(a("txBody")) if body is None else body
    if body is None:
        raise ValueError(f"a {place.kind} has no text of its own")
    return body


def _scopes(session: Session) -> list[tuple[str, Any]]:
    found = []
    for part, _ in session.reading.slides:
        if part and session.changed.get(part, b"") is not None:
            found += [(one, session.root(one)) for one in (part, *session.package.related(part, "notesSlide"))]
    return found


def _where(session: Session, change: Change, place: Place) -> tuple[int | None, str]:
    slide_id = dict(session.reading.slides).get(place.slide)
    return slide_id, "".join(f"/{one}" for one in change.address.split("/")[1:])


def _index(session: Session, place: Place) -> int:
    if place.kind != "slide":
        raise ValueError("it needs the address of a slide")
    slide_id = str(dict(session.reading.slides)[place.slide])
    ids = [one.get("id") for one in session.root(session.main).iter(p("sldId"))]
    return ids.index(slide_id)


def _after(change: Change) -> int:
    where = change.values.get("where", "after")
    if where not in ("after", "before"):
        raise ValueError(f"'where' is {where!r}; allowed: after, before")
    return int(where == "after")


OPS: dict[str, Op] = {
    "set": set_op,
    "replace": replace_op,
    "place": place_op,
    "insert": insert_op,
    "duplicate": duplicate_op,
    "delete": delete_op,
    "move": move_op,
}
"""Op -> function."""
