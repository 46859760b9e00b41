"""Adding, deleting, moving and duplicating slides: the parts, relationships and content types that belong to one."""

from __future__ import annotations

import re
from copy import deepcopy
from posixpath import dirname, relpath
from typing import TYPE_CHECKING, Any

from ..container import relationships_part
from .names import A, P, R, a, local, number, p, r
from .text import set_body

if TYPE_CHECKING:
    from .edits import Session

RELATIONS_NS = "http://schemas.openxmlformats.org/package/2006/relationships"
SLIDE_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.slide+xml"
OWN_PARTS = {"notesSlide", "chart", "diagramData", "diagramDrawing", "package", "chartUserShapes", "chartStyle"}
"""Types of relationships to parts that belong to one slide alone, so that a copy of the slide needs copies of them."""
OWN_PARTS |= {"chartColorStyle", "themeOverride", "comments", "tags"}
MIN_SLIDE_ID = 256
EMPTY_SLIDE = (
    f'<p:sld xmlns:a="{A}" xmlns:r="{R}" xmlns:p="{P}"><p:cSld><p:spTree><p:nvGrpSpPr><p:cNvPr id="1" name=""/>'
    "<p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/></p:spTree></p:cSld>"
    "<p:clrMapOvr><a:masterClrMapping/></p:clrMapOvr></p:sld>"
)
COPIED_PLACEHOLDERS = ("title", "ctrTitle", "subTitle", "body", "obj")


def add_slide(session: Session, layout: str, title: str, text: str, at: int) -> int:
    """Add a slide of a layout with these texts at a position from 0; returns its id.

    Raises:
        ValueError: no layout of this name, or the layout has no place for a text.
    """
    from lxml import etree

    part = _layout_part(session, layout)
    slide = session.new_part("ppt/slides/slide", ".xml", SLIDE_TYPE)
    root = etree.fromstring(EMPTY_SLIDE)
    tree = root.find(f"{p('cSld')}/{p('spTree')}")
    left = {"title": title, "text": text}
    for model in session.root(part).iter(p("sp")):
        placeholder = next(model.iter(p("ph")), None)
        if placeholder is None or (placeholder.get("type") or "obj") not in COPIED_PLACEHOLDERS:
            continue
        role = "title" if placeholder.get("type") in ("title", "ctrTitle") else "text"
        tree.append(_placeholder(model, placeholder, len(tree), left.pop(role, "")))
    if any(left.values()):
        raise ValueError(f"the layout {layout!r} has no place for {', '.join(key for key, one in left.items() if one)}")
    session.put(slide, root)
    relations = etree.Element(f"{{{RELATIONS_NS}}}Relationships", nsmap={None: RELATIONS_NS})
    _relate(relations, f"{R}/slideLayout", _relative(slide, part))
    session.put(relationships_part(slide), relations)
    return _list_slide(session, slide, at)


def duplicate_slide(session: Session, slide: str, at: int) -> int:
    """Add a copy of a slide, with copies of its notes and charts, at a position from 0; returns its id."""
    return _list_slide(session, _copy_part(session, slide, {}), at)


def delete_slide(session: Session, index: int, part: str) -> None:
    """Remove the slide at an index, whose part this is, with its notes; parts that other slides may use stay."""
    root = session.root(session.main)
    entry = list(root.iter(p("sldId")))[index]
    slide_id, relation_id = entry.get("id"), entry.get(r("id"))
    entry.getparent().remove(entry)
    for other in [one for one in root.iter() if local(one) == "sldId" and one.get("id") == slide_id]:
        other.getparent().remove(other)  # sections list slides as well
    holder = relationships_part(session.main)
    for relation in [one for one in session.root(holder) if one.get("Id") == relation_id]:
        relation.getparent().remove(relation)
    session.touch(session.main, holder)
    for gone in [part, *session.package.related(part, "notesSlide")]:
        session.drop(gone)


def move_slide(session: Session, index: int, to: int) -> None:
    """Move the slide at an index to a position from 0."""
    entry = list(session.root(session.main).iter(p("sldId")))[index]
    holder = entry.getparent()
    holder.remove(entry)
    holder.insert(to, entry)
    session.touch(session.main)


def _layout_part(session: Session, layout: str) -> str:
    names: dict[str, str] = {}
    for master in session.package.related(session.main, "slideMaster"):
        for part in session.package.related(master, "slideLayout"):
            content = session.root(part).find(p("cSld"))
            names.setdefault(part if content is None else content.get("name") or part, part)
    if layout not in names:
        raise ValueError(f"no layout {layout!r}; layouts: {', '.join(names)}")
    return names[layout]


def _placeholder(model: Any, placeholder: Any, number_of: int, text: str) -> Any:
    from lxml import etree

    shape = etree.fromstring(
        f'<p:sp xmlns:a="{A}" xmlns:p="{P}"><p:nvSpPr><p:cNvPr id="{number_of + 1}" name=""/><p:cNvSpPr/><p:nvPr/>'
        "</p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/><a:lstStyle/><a:p/></p:txBody></p:sp>"
    )
    name = next(model.iter(p("cNvPr"))).get("name") or "Placeholder"
    shape.find(f"{p('nvSpPr')}/{p('cNvPr')}").set("name", name)
    own = deepcopy(placeholder)
    own.tail = None
    shape.find(f"{p('nvSpPr')}/{p('nvPr')}").append(own)
    set_body(shape.find(p("txBody")), text)
    return shape


def _list_slide(session: Session, slide: str, at: int) -> int:
    from lxml import etree

    root, holder = session.root(session.main), relationships_part(session.main)
    relation = _relate(session.root(holder), f"{R}/slide", _relative(session.main, slide))
    entries = root.find(p("sldIdLst"))
    if entries is None:
        entries = etree.Element(p("sldIdLst"))
        masters = [one for one in root if local(one) in ("sldMasterIdLst", "notesMasterIdLst", "handoutMasterIdLst")]
        root.insert(root.index(masters[-1]) + 1 if masters else 0, entries)
    used = [number(one.get("id")) or 0 for one in entries]
    entry = etree.Element(p("sldId"))
    slide_id = max([MIN_SLIDE_ID - 1, *used]) + 1
    entry.set("id", str(slide_id))
    entry.set(r("id"), relation)
    entries.insert(at, entry)
    session.touch(session.main, holder)
    return slide_id


def _copy_part(session: Session, part: str, copies: dict[str, str]) -> str:
    """Copy a part and what belongs to it alone; references back to a copied part lead to its copy."""
    from lxml import etree

    stem, suffix = re.fullmatch(r"(.*?)\d*(\.\w+)", part).groups()  # type: ignore[union-attr]
    copy = copies[part] = session.new_part(stem, suffix, session.content_type(part))
    root = session.edited_root(part)
    session.put(copy, session.package.parts[part] if root is None else deepcopy(root))
    holder = relationships_part(part)
    if session.package.part_name(holder) is None:
        return copy
    relations = etree.Element(f"{{{RELATIONS_NS}}}Relationships", nsmap={None: RELATIONS_NS})
    known = session.package.relationships(part)
    for element in session.package.xml(holder):
        relation = known.get(element.get("Id") or "")
        target = None if relation is None or relation.external else session.package.part_name(relation.target)
        if relation is not None and target is not None:
            if target not in copies and relation.type in OWN_PARTS:
                _copy_part(session, target, copies)
            element.set("Target", _relative(copy, copies.get(target, target)))
        relations.append(element)
    session.put(relationships_part(copy), relations)
    return copy


def _relate(relations: Any, kind: str, target: str) -> str:
    from lxml import etree

    used = {one.get("Id") for one in relations}
    element = etree.SubElement(relations, f"{{{RELATIONS_NS}}}Relationship")
    free = next(f"rId{at}" for at in range(1, len(used) + 2) if f"rId{at}" not in used)
    for key, text in (("Id", free), ("Type", kind), ("Target", target)):
        element.set(key, text)
    return free


def _relative(part: str, target: str) -> str:
    return relpath(target, dirname(part) or ".")


def text_bodies(root: Any) -> list[Any]:
    """All bodies of text below an element, in order."""
    if local(root) in ("txBody", "t"):
        return [root]
    return [one for one in root.iter() if one.tag in (p("txBody"), a("txBody"))]
