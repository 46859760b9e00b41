"""A tree as a new workbook: values, formulas with their values, looks, names, comments, hidden and merged parts.

What a tree holds beside that (charts, images, shapes, tables, rules, links) is refused by name, never dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from io import BytesIO
from typing import Any

from ..errors import BadEdit, Unsupported
from ..node import Document, Node
from .address import area_of, cell_of, column_of
from .cell_edits import with_prefixes
from .package import Package, child, children

WRITTEN = ("sheet", "row", "cell", "comment", "name")
"""Kinds of nodes that are written."""

UNDERLINES = {"single": 1, "double": 2, "singleAccounting": 33, "doubleAccounting": 34}
BORDERS = ("none", "thin", "medium", "dashed", "dotted", "thick", "double", "hair", "mediumDashed", "dashDot",
           "mediumDashDot", "dashDotDot", "mediumDashDotDot", "slantDashDot")  # fmt: skip
"""Line styles by their number in the writer."""

PLAIN = {
    "bold": "bold", "italic": "italic", "strike": "font_strikeout", "size": "font_size", "font": "font_name",
    "wrap": "text_wrap", "indent": "indent", "shrink": "shrink", "number_format": "num_format",
}  # fmt: skip
"""Style keys whose value the writer takes as it is -> its word."""

MADE = datetime(2000, 1, 1)
"""Creation date of a workbook whose tree names none, so that the same tree gives the same bytes."""


class _Exact(float):
    """A float that the writer cannot round to 16 digits."""

    def __format__(self, spec: str) -> str:
        return repr(float(self)) if spec == ".16G" else super().__format__(spec)


def write(document: Document) -> bytes:
    """The file; reading it gives the tree's sheets, rows, cells, comments and names again.

    Raises:
        Unsupported: a node or a look that is not written; names it. BadEdit: a value that a cell cannot hold.
    """
    import xlsxwriter

    sheets = [node for node in document.nodes if node.kind == "sheet"]
    refused = next((node for node in document.walk() if node.kind not in WRITTEN), None)
    if refused is not None:
        raise Unsupported(document.name, f"a {refused.kind} is not written", place=refused.address,
                          remedy="edit the file that holds it, or leave it out")  # fmt: skip
    if not sheets:
        raise BadEdit(document.name, "a workbook needs a sheet", remedy="add a sheet node")
    out = BytesIO()
    options = {"in_memory": True, "date_1904": document.metadata.get("epoch") == 1904, "use_future_functions": False}
    book = xlsxwriter.Workbook(out, {**options, **_default_font(document.metadata)})
    try:
        looks = _Looks(book, document.name)
        for node in sheets:
            _write_sheet(book, node, looks, document.name)
        for node in document.nodes:
            if node.kind == "name":
                book.define_name(node.address.removeprefix("name:"), node.text)
        book.set_properties(_properties(document.metadata))
        book.close()
    except xlsxwriter.exceptions.XlsxWriterException as error:
        raise BadEdit(document.name, str(error), remedy="change the tree") from error
    return _exact_lines(out.getvalue(), sheets, document.name)


def _default_font(metadata: Mapping[str, Any]) -> dict[str, Any]:
    font = metadata.get("default_font") or {}
    if not font:
        return {}
    return {"default_format_properties": {"font_name": font.get("font", "Calibri"), "font_size": font.get("size", 11)}}


def _properties(metadata: Mapping[str, Any]) -> dict[str, Any]:
    words = {"title": "title", "subject": "subject", "creator": "author", "keywords": "keywords",
             "description": "comments", "category": "category", "Company": "company"}  # fmt: skip
    found: dict[str, Any] = {new: metadata[old] for old, new in words.items() if metadata.get(old)}
    try:
        found["created"] = datetime.fromisoformat(str(metadata["created"]).removesuffix("Z"))
    except (KeyError, ValueError):
        found["created"] = MADE
    return found


def _write_sheet(book: Any, node: Node, looks: _Looks, name: str) -> None:
    facts = node.attributes
    sheet = book.add_worksheet(str(facts["name"]))
    if facts.get("state") == "hidden":
        sheet.hide()
    elif facts.get("state") == "veryHidden":
        sheet.very_hidden()
    for row in facts.get("hidden_rows", ()):
        sheet.set_row(row - 1, None, None, {"hidden": True})
    for row, height in facts.get("heights", {}).items():
        options = {"hidden": True} if int(row) in facts.get("hidden_rows", ()) else {}
        sheet.set_row(int(row) - 1, height, None, options)
    hidden = set(facts.get("hidden_columns", ()))
    for columns in [*facts.get("widths", {}), *(one for one in hidden if one not in facts.get("widths", {}))]:
        first, _, last = columns.partition(":")
        width = facts.get("widths", {}).get(columns)
        options = {"hidden": True} if columns in hidden else {}
        sheet.set_column(column_of(first) - 1, column_of(last or first) - 1, width, None, options)
    if facts.get("frozen_at"):
        row, column = cell_of(facts["frozen_at"])
        sheet.freeze_panes(row - 1, column - 1)
    if facts.get("settings"):  # a filter among them
        raise Unsupported(name, f"{', '.join(facts['settings'])} of a sheet is not written", place=node.address)
    for reference in facts.get("merged", ()):
        area = area_of(reference, "")
        sheet.merge_range(area.top - 1, area.left - 1, area.bottom - 1, area.right - 1, "")
    for part in node.children:
        if part.kind == "comment":
            place = part.address.rpartition("!")[2].partition("/")[0]
            sheet.write_comment(place, part.text, {"author": part.attributes.get("author", "")})
        for cell in part.children:
            _write_cell(sheet, cell, looks, name)


def _write_cell(sheet: Any, cell: Node, looks: _Looks, name: str) -> None:
    row, column = (number - 1 for number in cell_of(cell.address.rpartition("!")[2]))
    look = looks.of(cell)
    facts = cell.attributes
    value = facts.get("value", cell.text)
    if "formula" in facts:
        formula = with_prefixes(str(facts["formula"])[1:].replace("_xlfn.", ""))
        stored = "" if not facts.get("type") else float(value) if facts["type"] in ("number", "date") else value
        if "array" in facts:
            area = area_of(facts["array"], "")
            sheet.write_array_formula(
                area.top - 1, area.left - 1, area.bottom - 1, area.right - 1, f"={formula}", look, stored
            )
        else:
            sheet.write_formula(row, column, f"={formula}", look, stored)
    elif isinstance(value, bool):
        sheet.write_boolean(row, column, value, look)
    elif isinstance(value, int | float):
        sheet.write_number(row, column, _Exact(value), look)
    elif facts.get("type") == "error":
        raise Unsupported(name, f"the error value {value} without a formula is not written", place=cell.address)
    elif not value:
        sheet.write_blank(row, column, None, look)
    elif len(value) > 32_767:
        raise BadEdit(name, f"{len(value)} characters, a cell holds 32767", place=cell.address)
    else:
        sheet.write_string(row, column, value, look)


class _Looks:
    """Formats of one workbook by style, so that equal styles share one."""

    def __init__(self, book: Any, name: str) -> None:
        self._book, self._name = book, name
        self._known: dict[str, Any] = {}

    def of(self, cell: Node) -> Any:
        """The format of a cell, or None for the default."""
        style = dict(cell.attributes.get("style") or {})
        if "number_format" in cell.attributes:
            style["number_format"] = cell.attributes["number_format"]
        if not style:
            return None
        key = repr(sorted(style.items()))
        if key not in self._known:
            found: dict[str, Any] = {}
            for word, value in style.items():
                found |= self._translated(word, value, cell.address)
            self._known[key] = self._book.add_format(found)
        return self._known[key]

    def _translated(self, word: str, value: Any, place: str) -> dict[str, Any]:
        if word in PLAIN:
            return {PLAIN[word]: value}
        if word == "underline":
            return {"underline": UNDERLINES[value]}
        if word == "script":
            return {"font_script": 1 if value == "superscript" else 2}
        if word == "align":
            return {"align": value}
        if word == "valign":
            return {
                "valign": {"center": "vcenter", "justify": "vjustify", "distributed": "vdistributed"}.get(value, value)
            }
        if word == "rotation":
            return {"rotation": 270 if value == 255 else value if value <= 90 else 90 - value}
        if word in ("unlocked", "formula_hidden"):
            return {"locked": False} if word == "unlocked" else {"hidden": True}
        if word in ("color", "fill") and str(value).startswith("#") and len(value) == 7:
            return {"font_color": value} if word == "color" else {"pattern": 1, "fg_color": value}
        kind, _, color = str(value).partition(" ")
        if (
            word.startswith("border_")
            and kind in BORDERS
            and (not color or (color.startswith("#") and len(color) == 7))
        ):
            side = word.removeprefix("border_")
            return {side: BORDERS.index(kind), **({f"{side}_color": color} if color else {})}
        raise Unsupported(self._name, f"the look {word}={value!r} is not written", place=place)


def _exact_lines(data: bytes, sheets: list[Node], name: str) -> bytes:
    """Put back widths and heights that the writer rounded to its font's pixels."""
    if not any(node.attributes.get("widths") or node.attributes.get("heights") for node in sheets):
        return data
    package = Package(data, name)
    for number, node in enumerate(sheets, start=1):
        part = f"xl/worksheets/sheet{number}.xml"
        root = package.xml(part)
        for columns, width in node.attributes.get("widths", {}).items():
            first = str(column_of(columns.partition(":")[0]))
            for one in children(child(root, "cols"), "col"):
                if one.get("min") == first:
                    one.set("width", repr(float(width)))
        for row, height in node.attributes.get("heights", {}).items():
            for one in children(child(root, "sheetData"), "row"):
                if one.get("r") == row:
                    one.set("ht", repr(float(height)))
        package.replace_xml(part, root)
    return package.to_bytes()
