"""Inserting and deleting paragraphs, rows and tables, and setting whole cells."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from .blocks import within
from .names import local, w
from .text import clean_format, forget_ids, plain_run, remove, set_text
from .text import pieces_of as pieces_of_paragraph

BLOCKS = ("p", "tbl")


def new_paragraph(model: Any, text: str, style_id: str | None) -> Any:
    """A paragraph of this text like ``model`` or, with a style, in that style without any other format."""
    from lxml import etree

    paragraph = etree.Element(w("p"))
    properties = model.find(w("pPr")) if model is not None and local(model) == "p" else None
    if style_id is not None:
        style = etree.SubElement(etree.SubElement(paragraph, w("pPr")), w("pStyle"))
        style.set(w("val"), style_id)
    elif properties is not None:
        copy = deepcopy(properties)
        for child in [one for one in copy if local(one) in ("sectPr", "pPrChange", "rPr")]:
            copy.remove(child)
        paragraph.append(copy)
    run = plain_run(paragraph, text)
    if style_id is None and properties is not None:
        formats = [piece.run.find(w("rPr")) for _, _, piece in pieces_of_paragraph(model) if piece.run is not None]
        if formats and formats[0] is not None:
            run.insert(0, clean_format(formats[0]))
    paragraph.append(run)
    return paragraph


def new_row(model: Any, values: list[str]) -> Any:
    """A copy of a row with these texts in its cells, from the left; cells without a value are empty.

    Raises:
        ValueError: more values than cells.
    """
    row = forget_ids(deepcopy(model))
    row.tail = None
    cells = within(row, "tc")
    if len(values) > len(cells):
        raise ValueError(f"{len(values)} values for {len(cells)} cells")
    for name in ("ins", "del"):
        for record in row.findall(f"{w('trPr')}/{w(name)}"):
            remove(record)
    for number, cell in enumerate(cells):
        for table in [one for one in cell if local(one) == "tbl"]:
            remove(table)
        set_cell(cell, values[number] if number < len(values) else "")
    return row


def set_cell(cell: Any, text: str) -> None:
    """Make ``text`` the cell's text, one paragraph per line; nested tables stay."""
    from lxml import etree

    paragraphs = within(cell, "p")
    if not paragraphs:
        paragraphs = [etree.SubElement(cell, w("p"))]
    lines = text.split("\n")
    for surplus in paragraphs[len(lines) :]:
        following = surplus.getnext()
        if surplus.getprevious() is not None and local(surplus.getprevious()) == "tbl" and following is None:
            set_text(surplus, "")  # a cell must not end with a table
        else:
            remove(surplus)
    for paragraph, line in zip(paragraphs, lines, strict=False):
        set_text(paragraph, line)
    for line in lines[len(paragraphs) :]:
        added = new_paragraph(paragraphs[-1], line, None)
        paragraphs[-1].addnext(added)
        paragraphs.append(added)


def delete(element: Any) -> None:
    """Remove a paragraph, row, table or text box.

    Raises:
        ValueError: the file would be invalid without it, or something else would go with it.
    """
    name, holder = local(element), element.getparent()
    if name == "p":
        if element.find(f"{w('pPr')}/{w('sectPr')}") is not None:
            raise ValueError("it holds the end of a section; set its text to nothing instead")
        if local(holder) != "body" and len([one for one in holder if local(one) == "p"]) == 1:
            raise ValueError("what holds it needs one paragraph; set its text to nothing instead")
    elif name == "tr":
        if len(within(holder, "tr")) == 1:
            raise ValueError("it is the last row; delete the table instead")
    elif name != "tbl":
        raise ValueError("only paragraphs, rows, tables and comments are deleted")
    _keep_range_ends(element)
    remove(element)


def _keep_range_ends(element: Any) -> None:
    """Move range brackets whose other half lies outside to the next block, so that no range is left open."""
    names = {"commentRangeStart", "commentRangeEnd", "bookmarkStart", "bookmarkEnd"}
    inside = [one for one in element.iter() if local(one) in names]
    halves: dict[tuple[str, str | None], list[Any]] = {}
    for one in inside:
        halves.setdefault((local(one).removesuffix("Start").removesuffix("End"), one.get(w("id"))), []).append(one)
    neighbour = element.getnext() if element.getnext() is not None else element.getprevious()
    while neighbour is not None and local(neighbour) != "p":
        neighbour = next(iter(neighbour.iter(w("p"))), None)
    for group in halves.values():
        if len(group) == 1 and neighbour is not None:
            at = 1 if neighbour.find(w("pPr")) is not None else 0
            neighbour.insert(at if element.getnext() is not None else len(neighbour), group[0])
