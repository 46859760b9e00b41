"""Edits of cells: values, formulas, looks, merging."""

from __future__ import annotations

from typing import Any

from ..editing import Change
from ..errors import BadEdit
from .address import Area, area_of
from .package import child, children, local
from .restyle import restyled
from .workbench import Workbench

Named = tuple[str, str]

MAX_CELLS = 100_000
"""More cells in one change are refused: an edit of a whole sheet is a mistake."""


def change_value(bench: Workbench, change: Change) -> list[Named]:
    """``set``: one cell, or a range with a list of rows."""
    area, part = bench.area(change.address)
    rows = _wanted(bench, change, area)
    bench.expand_shared(part)
    root = bench.root(part)
    covered = [area_of(one.get("ref"), area.sheet) for one in children(child(root, "mergeCells"), "mergeCell")]
    named: list[Named] = []
    for down, line in enumerate(rows):
        for across, value in enumerate(line):
            row, column = area.top + down, area.left + across
            place = bench.address_of(area, row, column)
            _refuse_covered(bench, covered, row, column, place)
            cell = bench.cell(part, row, column)
            _leave_array(bench, part, cell, place)
            is_formula = isinstance(value, str) and value.startswith("=") and len(value) > 1
            bench.write(cell, value, _formula(bench, value, place) if is_formula else None, place)
            named.append((place, place))
    bench.touch(part)
    bench.widen_dimension(part)
    return named


def _wanted(bench: Workbench, change: Change, area: Area) -> list[list[Any]]:
    given = [key for key in ("value", "formula", "values") if key in change.values]
    if len(given) != 1:
        raise BadEdit(bench.name, "set needs one of value, formula, values", place=change.address)
    if given == ["values"]:
        rows = change.values["values"]
        height, width = area.bottom - area.top + 1, area.right - area.left + 1
        is_grid = isinstance(rows, list) and all(isinstance(row, list) for row in rows)
        if not is_grid or len(rows) != height or any(len(row) != width for row in rows):
            raise BadEdit(bench.name, f"values must be {height} rows of {width}", place=change.address)
        return list(rows)
    if not area.is_cell:
        raise BadEdit(
            bench.name, "one value for many cells", place=change.address, remedy="give values, a list of rows"
        )
    value = change.values[given[0]]
    if given == ["formula"] and not (isinstance(value, str) and value.startswith("=") and len(value) > 1):
        raise BadEdit(bench.name, f"{value!r:.80} is no formula", place=change.address, remedy='write "=A1+B1"')
    return [[value]]


def _formula(bench: Workbench, text: str, place: str) -> str:
    """The formula as files store it: newer functions carry a prefix. Raises BadEdit for one that does not parse."""
    import formualizer

    try:
        formualizer.parse(text)
    except Exception as error:
        raise BadEdit(bench.name, f"{text!r:.200} does not parse: {error}", place=place) from error
    return with_prefixes(text[1:])


PREFIXED = frozenset(
    word
    for line in (
        "XLOOKUP XMATCH FILTER SORT SORTBY UNIQUE SEQUENCE RANDARRAY LET LAMBDA IFS SWITCH CONCAT TEXTJOIN MAXIFS",
        "MINIFS IFNA DAYS XOR NUMBERVALUE FORMULATEXT SHEET SHEETS ISFORMULA BITAND BITOR BITXOR PDURATION RRI",
        "STDEV.S STDEV.P VAR.S VAR.P PERCENTILE.INC PERCENTILE.EXC QUARTILE.INC QUARTILE.EXC RANK.EQ RANK.AVG",
        "NORM.DIST NORM.INV NORM.S.DIST NORM.S.INV T.DIST T.INV CEILING.MATH FLOOR.MATH TEXTBEFORE TEXTAFTER TEXTSPLIT",
        "VSTACK HSTACK TAKE DROP CHOOSECOLS CHOOSEROWS TOCOL TOROW WRAPCOLS WRAPROWS EXPAND BYROW BYCOL MAP REDUCE",
        "SCAN MAKEARRAY",
    )
    for word in line.split()
)
"""Functions younger than the file format, which files write with ``_xlfn.`` in front."""


def with_prefixes(formula: str) -> str:
    """A formula as typed -> as stored."""
    from .formula import tokens

    return "".join(
        f"_xlfn.{token.text}" if token.kind == "function" and token.text.upper() in PREFIXED else token.text
        for token in tokens(formula)
    )


def _refuse_covered(bench: Workbench, merged: list[Area], row: int, column: int, place: str) -> None:
    for area in merged:
        if area.holds(row, column) and (row, column) != (area.top, area.left):
            raise BadEdit(bench.name, f"the cell is covered by the merged {area.local()}", place=place,
                          remedy=f"set {bench.address_of(area, area.top, area.left)}, or unmerge first")  # fmt: skip


def _leave_array(bench: Workbench, part: str, cell: Any, place: str) -> None:
    """Refuse to break an array formula; a new content of its first cell empties the others."""
    row_column = cell.get("r")
    for row in bench.rows(part).values():
        for other in row:
            formula = child(other, "f")
            if formula is None or formula.get("t") != "array":
                continue
            area = area_of(formula.get("ref") or other.get("r"), "")
            from .address import cell_of

            if not area.holds(*cell_of(row_column)):
                continue
            if other.get("r") != row_column:
                raise BadEdit(bench.name, f"part of the array formula in {other.get('r')}", place=place)
            for line in range(area.top, area.bottom + 1):
                for column in range(area.left, area.right + 1):
                    inner = bench.cell(part, line, column, is_new=False)
                    if inner is not None and inner is not cell:
                        bench.write(inner, None, None, place)
            return


def change_format(bench: Workbench, change: Change) -> list[Named]:
    """``format``: look and number format of every cell of a range."""
    area, part = bench.area(change.address)
    wanted = dict(change.values.get("style") or {})
    if "number_format" in change.values:
        wanted["number_format"] = change.values["number_format"]
    if not wanted:
        raise BadEdit(bench.name, "format needs style or number_format", place=change.address)
    if (area.bottom - area.top + 1) * (area.right - area.left + 1) > MAX_CELLS:
        raise BadEdit(bench.name, f"more than {MAX_CELLS} cells", place=change.address, remedy="name a smaller range")
    styles = next((one.target for one in bench.package.relations(bench.main) if one.kind == "styles"), "")
    if styles not in bench.package:
        raise BadEdit(bench.name, "the workbook has no styles part", place=change.address)
    named: list[Named] = []
    for row in range(area.top, area.bottom + 1):
        for column in range(area.left, area.right + 1):
            cell = bench.cell(part, row, column)
            index = restyled(bench.root(styles), int(cell.get("s") or 0), wanted, bench.name, change.address)
            cell.set("s", str(index))
            place = bench.address_of(area, row, column)
            named.append((place, place))
    bench.touch(part)
    bench.touch(styles)
    bench.widen_dimension(part)
    return named


def change_merge(bench: Workbench, change: Change) -> list[Named]:
    """``merge`` and ``unmerge``: the contents of covered cells are refused, never dropped."""
    area, part = bench.area(change.address)
    root = bench.root(part)
    merged = child(root, "mergeCells")
    rows = {one.get("ref"): one for one in children(merged, "mergeCell")}
    bench.touch(part)
    sheet = f"sheet:{area.sheet}"
    if change.op == "unmerge":
        if area.local() not in rows:
            raise BadEdit(bench.name, "not merged", place=change.address, remedy=f"merged: {', '.join(rows) or 'none'}")
        merged.remove(rows[area.local()])
        if not children(merged, "mergeCell"):
            root.remove(merged)
        else:
            merged.set("count", str(len(rows) - 1))
        return [(sheet, sheet)]
    if area.is_cell:
        raise BadEdit(bench.name, "one cell cannot be merged", place=change.address)
    for one in rows:
        other = area_of(one, area.sheet)
        if (
            other.top <= area.bottom
            and area.top <= other.bottom
            and other.left <= area.right
            and area.left <= other.right
        ):
            raise BadEdit(bench.name, f"overlaps the merged {one}", place=change.address)
    _refuse_contents(bench, area, part)
    if merged is None:
        merged = make_after(root, "mergeCells", MERGE_AFTER)
    from lxml import etree

    etree.SubElement(merged, f"{root.tag.rpartition('}')[0]}}}mergeCell", ref=area.local())
    merged.set("count", str(len(rows) + 1))
    return [(sheet, sheet)]


def overlap(one: Area, other: Area) -> bool:
    """Whether two areas of one sheet share a cell."""
    rows = one.top <= other.bottom and other.top <= one.bottom
    return rows and one.left <= other.right and other.left <= one.right


def _refuse_contents(bench: Workbench, area: Area, part: str) -> None:
    for row in range(area.top, area.bottom + 1):
        for column in range(area.left, area.right + 1):
            if (row, column) == (area.top, area.left):
                continue
            cell = bench.cell(part, row, column, is_new=False)
            if cell is not None and len(cell):
                place = bench.address_of(area, row, column)
                raise BadEdit(bench.name, "merging would hide its content", place=place, remedy="clear it first")


MERGE_AFTER = ("sheetData", "sheetCalcPr", "sheetProtection", "protectedRanges", "scenarios", "autoFilter", "sortState",
               "dataConsolidate", "customSheetViews")  # fmt: skip
"""Elements that a sheet has before its merged cells."""


def make_after(root: Any, word: str, before: tuple[str, ...]) -> Any:
    """A new child behind the last of those that come before it."""
    from lxml import etree

    made = etree.Element(f"{root.tag.rpartition('}')[0]}}}{word}")
    index = max((n for n, one in enumerate(root) if local(one) in before), default=len(root) - 1)
    root.insert(index + 1, made)
    return made
