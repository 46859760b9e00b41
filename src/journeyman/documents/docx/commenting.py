"""Adding a comment to a paragraph or to words of it, and removing one."""

from __future__ import annotations

from typing import Any

from ..container import relationships_part
from ..opc import Package
from .names import W, local, w
from .text import isolate, plain_run, remove

TYPES_PART = "[Content_Types].xml"
COMMENTS_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.comments+xml"
RELATION_TYPE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/comments"
TYPES_NS = "http://schemas.openxmlformats.org/package/2006/content-types"
RELATIONS_NS = "http://schemas.openxmlformats.org/package/2006/relationships"
RANGES = ("commentRangeStart", "commentRangeEnd", "commentReference")


def comments_part(package: Package, main: str, roots: dict[str, Any]) -> tuple[str, set[str]]:
    """The part that holds comments, made when there is none; and the names of parts that changed by making it."""
    from lxml import etree

    found = package.related(main, "comments")
    if found:
        roots.setdefault(found[0], package.xml(found[0]))
        return found[0], {found[0]}
    part = f"{main.rpartition('/')[0]}/comments.xml".lstrip("/")
    roots[part] = etree.Element(w("comments"), nsmap={"w": W})
    types = roots.setdefault(TYPES_PART, package.xml(TYPES_PART))
    override = etree.SubElement(types, f"{{{TYPES_NS}}}Override")
    override.set("PartName", f"/{part}")
    override.set("ContentType", COMMENTS_TYPE)
    holder = relationships_part(main)
    if holder not in roots:
        exists = package.part_name(holder) is not None
        roots[holder] = package.xml(holder) if exists else etree.Element(f"{{{RELATIONS_NS}}}Relationships")
    used = {one.get("Id") for one in roots[holder]}
    relation = etree.SubElement(roots[holder], f"{{{RELATIONS_NS}}}Relationship")
    relation.set("Id", next(f"rId{number}" for number in range(1, len(used) + 2) if f"rId{number}" not in used))
    relation.set("Type", RELATION_TYPE)
    relation.set("Target", "comments.xml")
    return part, {part, TYPES_PART, holder}


def add_comment(comments: Any, paragraph: Any, span: tuple[int, int] | None, text: str, facts: dict[str, str]) -> Any:
    """Add a comment and its anchor; returns its element.

    Args:
        comments: root of the comments part.
        paragraph: what it is about.
        span: characters of the accepted text, None for the whole paragraph.
        text: one paragraph per line.
        facts: ``author``, ``initials`` and, if wanted, ``date``.

    Raises:
        ValueError: the span lies in a formula.
    """
    from lxml import etree

    runs = isolate(paragraph, *span) if span is not None else []
    used = [int(one.get(w("id"))) for one in comments if (one.get(w("id")) or "").isdigit()]
    number = str(max(used, default=-1) + 1)
    start, end = etree.Element(w("commentRangeStart")), etree.Element(w("commentRangeEnd"))
    reference = etree.Element(w("r"))
    etree.SubElement(reference, w("commentReference")).set(w("id"), number)
    for element in (start, end):
        element.set(w("id"), number)
    if runs:
        _outermost(runs[0], paragraph).addprevious(start)
        _outermost(runs[-1], paragraph).addnext(end)
    else:
        paragraph.insert(1 if paragraph.find(w("pPr")) is not None else 0, start)
        paragraph.append(end)
    end.addnext(reference)
    comment = etree.SubElement(comments, w("comment"))
    for key, fact in {"id": number, **facts}.items():
        comment.set(w(key), fact)
    for line in text.split("\n"):
        own = etree.SubElement(comment, w("p"))
        own.append(plain_run(own, line))
    return comment


def delete_comment(comment: Any, roots: dict[str, Any]) -> set[str]:
    """Remove a comment with its anchors; returns the parts that held anchors."""
    number, touched = comment.get(w("id")), set()
    for part, root in roots.items():
        for element in [one for one in root.iter(*(w(name) for name in RANGES)) if one.get(w("id")) == number]:
            run = element.getparent()
            remove(element)
            touched.add(part)
            if local(run) == "r" and all(local(one) == "rPr" for one in run):
                remove(run)
    remove(comment)
    return touched


def _outermost(run: Any, paragraph: Any) -> Any:
    """The ancestor that stands directly in the paragraph."""
    while run.getparent() is not paragraph:
        run = run.getparent()
    return run
