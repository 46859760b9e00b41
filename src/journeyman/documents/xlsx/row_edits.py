"""Rows and columns inserted, deleted, hidden: everything that names a place of the sheet moves along."""

from __future__ import annotations

from typing import Any

from ..editing import Change
from ..errors import BadEdit
from .address import Area, cell_of, letters
from .package import child, children, local
from .shift import Shift
from .workbench import Workbench

Named = tuple[str, str]

FORMULAS = ("f", "formula", "formula1", "formula2", "calculatedColumnFormula", "totalsRowFormula")


def insert_lines(bench: Workbench, change: Change) -> list[Named]:
    """``insert_rows`` ``Sheet!5:6`` inserts two rows before row 5; columns likewise."""
    area, first, last, is_rows = _lines(bench, change)
    _apply(bench, Shift(area.sheet, is_rows, first, last - first + 1), change.address)
    return [(str(area), "")]


def delete_lines(bench: Workbench, change: Change) -> list[Named]:
    """``delete_rows`` ``Sheet!5:6``; what reads only deleted cells becomes ``#REF!``."""
    area, first, last, is_rows = _lines(bench, change)
    _apply(bench, Shift(area.sheet, is_rows, first, first - last - 1), change.address)
    return [(f"sheet:{area.sheet}", f"sheet:{area.sheet}")]


def _lines(bench: Workbench, change: Change) -> tuple[Area, int, int, bool]:
    area, _ = bench.area(change.address)
    wants_rows = change.op.endswith("rows")
    if (wants_rows and not area.is_rows) or (not wants_rows and not area.is_columns):
        form = "Sheet!5:6" if wants_rows else "Sheet!B:C"
        raise BadEdit(bench.name, f"{change.op} needs {form}", place=change.address)
    return (area, area.top, area.bottom, True) if wants_rows else (area, area.left, area.right, False)


def _apply(bench: Workbench, shift: Shift, place: str) -> None:
    _, part = bench.sheet(shift.sheet, place)
    _refuse_tables(bench, part, shift, place)
    for name, other in bench.sheets():
        if other in bench.package and local(bench.root(other)) == "worksheet":
            bench.expand_shared(other)
            _formulas(bench, other, name, shift)
    _move_cells(bench, part, shift)
    _move_ranges(bench, part, shift)
    _names(bench, shift)
    _charts(bench, shift)
    for relation in bench.package.relations(part):
        if relation.is_external or relation.target not in bench.package:
            continue
        if relation.kind == "table":
            _move_table(bench, relation.target, shift)
        elif relation.kind in ("comments", "threadedComment"):
            _move_comments(bench, relation.target, shift)
        elif relation.kind == "drawing":
            _move_anchors(bench, relation.target, shift)
        elif relation.kind == "vmlDrawing":
            _move_notes(bench, relation.target, shift)


def _refuse_tables(bench: Workbench, part: str, shift: Shift, place: str) -> None:
    for relation in bench.package.relations(part):
        if relation.kind != "table" or relation.target not in bench.package:
            continue
        from .address import area_of

        table = bench.root(relation.target)
        area = area_of(table.get("ref"), shift.sheet)
        if not shift.is_rows and area.left < shift.at <= area.right:
            raise BadEdit(bench.name, f"columns inside the table {table.get('displayName')}", place=place)
        end = shift.at - shift.count if shift.count < 0 else 0
        first = area.top if shift.is_rows else area.left
        if shift.count < 0 and shift.at <= first < end:
            what = "the header" if shift.is_rows else "a column"
            raise BadEdit(bench.name, f"would delete {what} of the table {table.get('displayName')}", place=place)


def _formulas(bench: Workbench, part: str, home: str, shift: Shift) -> None:
    """Formulas of cells and rules of one sheet."""
    for one in bench.root(part).iter():
        if local(one) in FORMULAS and one.text:
            moved = shift.formula(one.text, home)
            if moved != one.text:
                one.text = moved
                bench.touch(part)


def _move_cells(bench: Workbench, part: str, shift: Shift) -> None:
    data = child(bench.root(part), "sheetData")
    for row in list(bench.rows(part).values()):
        number = int(row.get("r"))
        new_row = shift.point(number) if shift.is_rows else number
        if new_row is None:
            data.remove(row)
            continue
        row.set("r", str(new_row))
        row.attrib.pop("spans", None)
        for cell in list(row):
            _, column = cell_of(cell.get("r"))
            new_column = column if shift.is_rows else shift.point(column)
            if new_column is None:
                row.remove(cell)
                continue
            cell.set("r", f"{letters(new_column)}{new_row}")
            formula = child(cell, "f")
            if formula is not None and formula.get("ref"):
                formula.set("ref", shift.reference(formula.get("ref")) or cell.get("r"))
    bench.forget_rows(part)
    bench.touch(part)


def _move_ranges(bench: Workbench, part: str, shift: Shift) -> None:
    """Merged cells, rules, links, filters, breaks and column widths."""
    root = bench.root(part)
    data = child(root, "sheetData")
    for one in list(root.iter()):
        if not isinstance(one.tag, str) or one is data or local(one) in ("c", "row", "f", "v", "is", "t"):
            continue
        for key in ("ref", "sqref"):
            if one.get(key):
                moved = shift.references(one.get(key))
                if moved:
                    one.set(key, moved)
                elif local(one) != "dimension" and one.getparent() is not None:
                    one.getparent().remove(one)
        if local(one) == "sqref" and one.text:
            one.text = shift.references(one.text)
    for word in ("mergeCells", "dataValidations", "hyperlinks"):
        holder = child(root, word)
        if holder is not None and len(holder) == 0:
            root.remove(holder)
        elif holder is not None and holder.get("count"):
            holder.set("count", str(len(holder)))
    for one in children(root, "conditionalFormatting"):
        if not one.get("sqref"):
            root.remove(one)
    if not shift.is_rows and (columns := child(root, "cols")) is not None:
        for one in list(columns):
            span = shift.span(int(one.get("min")), int(one.get("max")))
            if span is None:
                columns.remove(one)
            else:
                one.set("min", str(span[0]))
                one.set("max", str(span[1]))
        if len(columns) == 0:
            root.remove(columns)
    word = "rowBreaks" if shift.is_rows else "colBreaks"
    for one in children(child(root, word), "brk"):
        one.set("id", str(shift.point(int(one.get("id") or 1)) or shift.at))


def _names(bench: Workbench, shift: Shift) -> None:
    names = [name for name, _ in bench.sheets()]
    for one in children(child(bench.root(bench.main), "definedNames"), "definedName"):
        scope = one.get("localSheetId")
        home = names[int(scope)] if scope and int(scope) < len(names) else ""
        moved = shift.formula(one.text or "", home)
        if moved != one.text:
            one.text = moved
            bench.touch(bench.main)


def _charts(bench: Workbench, shift: Shift) -> None:
    for part in list(bench.package):
        if "/charts/" not in part or not part.endswith(".xml") or "/_rels/" in part:
            continue
        for one in bench.root(part).iter():
            if local(one) == "f" and one.text:
                moved = shift.formula(one.text, "")
                if moved != one.text:
                    one.text = moved
                    bench.touch(part)


def _move_table(bench: Workbench, part: str, shift: Shift) -> None:
    root = bench.root(part)
    for one in [root, *children(root, "autoFilter")]:
        if one.get("ref"):
            one.set("ref", shift.reference(one.get("ref")) or one.get("ref"))
    bench.touch(part)


def _move_comments(bench: Workbench, part: str, shift: Shift) -> None:
    for one in list(bench.root(part).iter()):
        if local(one) in ("comment", "threadedComment") and one.get("ref"):
            moved = shift.reference(one.get("ref"))
            if moved:
                one.set("ref", moved)
            else:
                one.getparent().remove(one)
    bench.touch(part)


def _move_anchors(bench: Workbench, part: str, shift: Shift) -> None:
    word = "row" if shift.is_rows else "col"
    for anchor in bench.root(part):
        ends = [child(anchor, "from", word), child(anchor, "to", word)]
        if anchor.get("editAs") == "absolute" or any(one is None for one in ends):
            ends = ends[:1] if ends[0] is not None and anchor.get("editAs") != "absolute" else []
        for one in ends:
            position = int(one.text or 0) + 1
            one.text = str((shift.point(position) or shift.at) - 1)
    bench.touch(part)


def _move_notes(bench: Workbench, part: str, shift: Shift) -> None:
    """The boxes of old-style comments name their cell by row and column from 0."""
    word = "Row" if shift.is_rows else "Column"
    for one in list(bench.root(part).iter()):
        if local(one) == word and (one.text or "").strip().isdigit():
            moved: Any = shift.point(int(one.text) + 1)
            if moved is None:
                shape = one.getparent().getparent()
                shape.getparent().remove(shape)
            else:
                one.text = str(moved - 1)
    bench.touch(part)


def change_hidden(bench: Workbench, change: Change) -> list[Named]:
    """``hide`` and ``show``: rows, columns or a sheet."""
    is_hidden = change.op == "hide"
    if change.address.startswith("sheet:"):
        return _hide_sheet(bench, change.address, is_hidden)
    area, part = bench.area(change.address)
    root = bench.root(part)
    if area.is_rows:
        for number in range(area.top, area.bottom + 1):
            if number not in bench.rows(part):
                cell = bench.cell(part, number, 1)
                cell.getparent().remove(cell)
            _switch(bench.rows(part)[number], is_hidden)
    elif area.is_columns:
        _hide_columns(root, area, is_hidden)
    else:
        raise BadEdit(bench.name, f"{change.op} needs rows, columns or a sheet", place=change.address)
    bench.touch(part)
    return [(f"sheet:{area.sheet}", f"sheet:{area.sheet}")]


def _switch(element: Any, is_hidden: bool) -> None:
    if is_hidden:
        element.set("hidden", "1")
    else:
        element.attrib.pop("hidden", None)


def _hide_columns(root: Any, area: Area, is_hidden: bool) -> None:
    from copy import deepcopy

    from lxml import etree

    space = f"{root.tag.rpartition('}')[0]}}}"
    columns = child(root, "cols")
    if columns is None:
        columns = etree.Element(f"{space}cols")
        root.insert(list(root).index(child(root, "sheetData")), columns)
    covered: set[int] = set()
    for one in list(columns):
        first, last = int(one.get("min")), int(one.get("max"))
        left, right = (first, min(last, area.left - 1)), (max(first, area.right + 1), last)
        pieces = [left, (max(first, area.left), min(last, area.right)), right]
        for n, (low, high) in enumerate(pieces):
            if low <= high:
                piece = deepcopy(one)
                piece.set("min", str(low))
                piece.set("max", str(high))
                if n == 1:
                    _switch(piece, is_hidden)
                    covered |= set(range(low, high + 1))
                one.addprevious(piece)
        columns.remove(one)
    for column in range(area.left, area.right + 1):
        if column not in covered and is_hidden:
            etree.SubElement(columns, f"{space}col", min=str(column), max=str(column), width="9.140625", hidden="1")
    columns[:] = sorted(columns, key=lambda one: int(one.get("min")))
    if len(columns) == 0:
        root.remove(columns)


def _hide_sheet(bench: Workbench, address: str, is_hidden: bool) -> list[Named]:
    name, _ = bench.sheet(address.removeprefix("sheet:"), address)
    rows = bench.sheet_rows()
    row = next(one for one in rows if one.get("name") == name)
    if is_hidden and not [one for one in rows if one is not row and one.get("state", "visible") == "visible"]:
        raise BadEdit(bench.name, "the only visible sheet cannot be hidden", place=address)
    if is_hidden:
        row.set("state", "hidden")
    else:
        row.attrib.pop("state", None)
    bench.touch(bench.main)
    return [(f"sheet:{name}", f"sheet:{name}")]
