"""A workbook as a tree: sheets, rows, cells, then what lies over and behind them; see docs/diff.md for the kinds."""

from __future__ import annotations

from typing import Any

from ..errors import UnreadableDocument
from ..node import Document, Node
from .address import cell_address, letters, quoted
from .book import Book, Sheet, load
from .caches import number_text
from .cells import Cell
from .dates import iso_of
from .legacy import read_legacy
from .package import Package, child, local
from .styles import is_date

KINDS = {"n": "number", "s": "text", "b": "boolean", "e": "error", "d": "date"}


def read(data: bytes, name: str) -> Document:
    """The typed tree of a workbook: xlsx and xlsm in full; xls, xlsb and ods as stored values.

    Raises:
        UnreadableDocument: or a subclass; names the part that is damaged or missing.
    """
    if not data.startswith(b"PK") or name.lower().endswith((".xlsb", ".ods")):
        return read_legacy(data, name)
    book = load(data, name)
    nodes = [sheet_node(book, sheet) for sheet in book.sheets]
    nodes += [_name_node(key, formula, key[0] in book.hidden_names) for key, formula in book.names.items()]
    return Document("xlsx", name, tuple(nodes), metadata(book), tuple(_warnings(book)))


def sheet_node(book: Book, sheet: Sheet) -> Node:
    """One sheet with its rows, then comments, charts, images, shapes, tables, rules and links."""
    rows: dict[int, list[Node]] = {}
    for (row, column), cell in sorted(sheet.cells.items()):
        node = cell_node(book, sheet, row, column, cell)
        if node is not None:
            rows.setdefault(row, []).append(node)
    where = quoted(sheet.name)
    children = [
        Node("row", f"{where}!{row}:{row}", "", {"hidden": True} if row in sheet.hidden_rows else {}, tuple(cells))
        for row, cells in rows.items()
    ]
    return Node("sheet", f"sheet:{sheet.name}", "", _sheet_attributes(sheet), (*children, *_extras(sheet)))


def cell_node(book: Book, sheet: Sheet, row: int, column: int, cell: Cell) -> Node | None:
    """One cell, or None for one without value, formula and style."""
    style = dict(book.styles[cell.style]) if 0 < cell.style < len(book.styles) else {}
    number_format = style.pop("number_format", "")
    if cell.value is None and not cell.formula and not style and not number_format:
        return None
    attributes: dict[str, Any] = {}
    text = cell_text(cell, number_format, book.epoch)
    if cell.kind:
        is_day = cell.kind == "n" and is_date(number_format) and text != number_text(float(cell.value or 0))
        attributes["type"] = "date" if is_day else KINDS[cell.kind]
    if cell.kind in ("n", "b"):
        attributes["value"] = cell.value
    if cell.formula:
        attributes["formula"] = f"={cell.formula}"
    if cell.array:
        attributes["array"] = cell.array
    if number_format:
        attributes["number_format"] = number_format
    if style:
        attributes["style"] = style
    return Node("cell", cell_address(sheet.name, row, column), text, attributes)


def cell_text(cell: Cell, number_format: str, epoch: int) -> str:
    """The stored value as text: shortest digits, TRUE and FALSE, dates in ISO 8601."""
    if cell.kind == "n":
        number = float(cell.value or 0)
        return (iso_of(number, epoch) if is_date(number_format) else "") or number_text(number)
    if cell.kind == "b":
        return "TRUE" if cell.value else "FALSE"
    return "" if cell.value is None else str(cell.value)


def _sheet_attributes(sheet: Sheet) -> dict[str, Any]:
    bottom, right = sheet.extent
    found: dict[str, Any] = {"name": sheet.name}
    if bottom:
        found["used"] = f"A1:{letters(right)}{bottom}"
    if sheet.state != "visible":
        found["state"] = sheet.state
    if sheet.hidden_rows:
        found["hidden_rows"] = sorted(sheet.hidden_rows)
    hidden = [_columns(first, last) for first, last, _, is_hidden, _ in sheet.columns if is_hidden]
    if hidden:
        found["hidden_columns"] = hidden
    widths = {_columns(first, last): width for first, last, width, _, _ in sheet.columns if width is not None}
    if widths:
        found["widths"] = widths
    if sheet.custom_heights:
        found["heights"] = {str(row): height for row, height in sheet.heights.items() if row in sheet.custom_heights}
    if sheet.merged:
        found["merged"] = list(sheet.merged)
    if sheet.panes:
        found["frozen_at"] = sheet.panes
    if sheet.filtered:
        found["filtered"] = sheet.filtered
    if sheet.settings:
        found["settings"] = dict(sheet.settings)
    return found


def _columns(first: int, last: int) -> str:
    return letters(first) if first == last else f"{letters(first)}:{letters(last)}"


def _extras(sheet: Sheet) -> list[Node]:
    where = quoted(sheet.name)
    found = []
    for place, comments in sheet.comments.items():
        for number, comment in enumerate(comments, start=1):
            tail = "comment" if number == 1 else f"comment:{number}"
            author = {"author": comment["author"]} if comment["author"] else {}
            found.append(Node("comment", f"{where}!{place}/{tail}", comment["text"], author))
    counts: dict[str, int] = {}
    for one in sheet.floating:
        counts[one.kind] = counts.get(one.kind, 0) + 1
        facts = {
            "anchor": one.anchor,
            **{key: value for key, value in one.facts.items() if key not in ("text", "title")},
        }
        text = one.facts.get("text") or one.facts.get("title") or ""
        found.append(Node(one.kind, f"{where}!{one.kind}:{counts[one.kind]}", text, facts))
    found += [
        Node("table", f"{where}!{t['range']}/table", name, {"columns": t["columns"]})
        for name, t in sheet.tables.items()
    ]
    found += [Node("link", f"{where}!{place}/link", target) for place, target in sheet.links.items()]
    for word, rules in (("validation", sheet.validations), ("format", sheet.formats)):
        seen: dict[str, int] = {}
        for rule in rules:
            seen[rule["range"]] = number = seen.get(rule["range"], 0) + 1
            facts = {key: value for key, value in rule.items() if key != "range"}
            tail = word if number == 1 else f"{word}:{number}"
            found.append(Node(word, f"{where}!{rule['range']}/{tail}", "", facts))
    return found


def _name_node(key: tuple[str, str], formula: str, is_hidden: bool) -> Node:
    name, scope = key
    attributes = {"scope": scope} if scope else {}
    where = f"name:{quoted(scope)}!{name}" if scope else f"name:{name}"
    return Node("name", where, f"={formula}", {**attributes, "hidden": True} if is_hidden else attributes)


def metadata(book: Book) -> dict[str, Any]:
    """Epoch, default font and document properties."""
    found: dict[str, Any] = {"epoch": book.epoch}
    if book.default_font:
        found["default_font"] = {key: book.default_font[key] for key in ("font", "size") if key in book.default_font}
    return {**found, **properties(book.package)}


def properties(package: Package) -> dict[str, str]:
    """Title, creator, dates, application: what the file says about itself."""
    found: dict[str, str] = {}
    for relation in package.relations(""):
        if relation.kind not in ("core-properties", "extended-properties") or relation.target not in package:
            continue
        try:
            root = package.xml(relation.target)
        except UnreadableDocument:
            continue
        for one in root:
            if one.text and len(one) == 0 and local(one) in _PROPERTIES:
                found[local(one)] = one.text.strip()
    return found


_PROPERTIES = ("title", "subject", "creator", "lastModifiedBy", "created", "modified", "keywords", "description",
               "category", "Application", "Company")  # fmt: skip


def _warnings(book: Book) -> list[str]:
    found = []
    empty = [
        cell_address(sheet.name, row, column)
        for sheet in book.sheets
        for (row, column), cell in sheet.cells.items()
        if cell.formula and not cell.kind
    ]
    if empty:
        found.append(f"{len(empty)} formulas were never calculated, the first is {empty[0]}; recalculate the workbook")
    hidden = [sheet.name for sheet in book.sheets if sheet.state != "visible"]
    if hidden:
        found.append(f"hidden sheets: {', '.join(hidden)}")
    for sheet in book.sheets:
        columns = [_columns(first, last) for first, last, _, is_hidden, _ in sheet.columns if is_hidden]
        if sheet.hidden_rows or columns:
            parts = [f"{len(sheet.hidden_rows)} rows"] if sheet.hidden_rows else []
            parts += [f"columns {', '.join(columns)}"] if columns else []
            found.append(f"{quoted(sheet.name)} hides {' and '.join(parts)}")
    kinds = {relation.kind for relation in book.package.relations(book.workbook_part)}
    if "externalLink" in kinds:
        found.append("formulas read other workbooks; their values are those stored in this file")
    if "vbaProject" in kinds:
        found.append("the workbook holds macros; they are kept and never run")
    calculation = child(book.package.xml(book.workbook_part), "calcPr")
    if calculation is not None and calculation.get("calcMode") == "manual":
        found.append("calculation is manual: stored values may be stale")
    return found
