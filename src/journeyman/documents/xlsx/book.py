"""A workbook as plain values: what its parts say, read once, for the reader, the editor and the differ."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ..errors import MissingPart
from .cells import Cell, Text, read_cells, read_text
from .drawings import Floating, read_comments, read_floating
from .package import Package, child, children, local, rel_id
from .styles import Style, read_styles

_LOCKED_BY_DEFAULT = frozenset({
    "formatCells", "formatColumns", "formatRows", "insertColumns", "insertRows", "insertHyperlinks", "deleteColumns",
    "deleteRows", "sort", "autoFilter", "pivotTables", "sheet",
})  # fmt: skip
_SWITCH = ("0", "1", "true", "false")
_EMPTY_PARTS = re.compile(r"&[LCR](?=&[LCR]|$)")


@dataclass(slots=True)
class Sheet:
    """One sheet. Ranges are text as in the file; ``columns``: spans (first, last, width or None, hidden, style)."""

    name: str
    part: str
    state: str = "visible"
    cells: dict[tuple[int, int], Cell] = field(default_factory=dict)
    hidden_rows: set[int] = field(default_factory=set)
    heights: dict[int, float] = field(default_factory=dict)
    custom_heights: set[int] = field(default_factory=set)
    default_width: float = 8.43
    columns: list[tuple[int, int, float | None, bool, int]] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    validations: list[dict[str, Any]] = field(default_factory=list)
    formats: list[dict[str, Any]] = field(default_factory=list)
    comments: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    floating: list[Floating] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    panes: str = ""
    filtered: str = ""
    extensions: list[str] = field(default_factory=list)

    @property
    def extent(self) -> tuple[int, int]:
        """Last row and last column that hold a cell; (0, 0) for none."""
        if not self.cells:
            return 0, 0
        return max(row for row, _ in self.cells), max(column for _, column in self.cells)


@dataclass(slots=True)
class Book:
    """A workbook. ``names`` maps (name, sheet or empty) to the formula; ``epoch`` is 1900 or 1904."""

    sheets: list[Sheet]
    names: dict[tuple[str, str], str]
    hidden_names: set[str]
    styles: list[Style]
    default_font: Style
    epoch: int
    package: Package
    workbook_part: str

    def sheet(self, name: str) -> Sheet | None:
        """The sheet of this name, in any case."""
        wanted = name.lower()
        return next((one for one in self.sheets if one.name.lower() == wanted), None)


def load(data: bytes, name: str, *, is_light: bool = False) -> Book:
    """Everything the parts say.

    Args:
        data: the file.
        name: for messages.
        is_light: cells, names and styles only.
    """
    return read_book(Package(data, name), is_light=is_light)


def workbook_part(package: Package) -> str:
    """The main part. Raises MissingPart."""
    for relation in package.relations(""):
        if relation.kind == "officeDocument":
            return relation.target
    if "xl/workbook.xml" in package:
        return "xl/workbook.xml"
    raise MissingPart(package.name, "no workbook in the container", place="_rels/.rels", remedy="save the file anew")


def read_book(package: Package, *, is_light: bool = False) -> Book:
    """``load`` for an opened container."""
    main = workbook_part(package)
    root = package.xml(main)
    links = {one.id: one for one in package.relations(main)}
    by_kind = {one.kind: one.target for one in package.relations(main)}
    strings = _strings(package, by_kind.get("sharedStrings", ""))
    styles_part = by_kind.get("styles", "")
    styles, font = read_styles(package.xml(styles_part)) if styles_part in package else ([], {})
    properties = child(root, "workbookPr")
    sheets = []
    for row in children(child(root, "sheets"), "sheet"):
        link = links.get(rel_id(row))
        if link is None:
            raise MissingPart(package.name, "the workbook names a sheet without a part", place=row.get("name", ""))
        sheet = Sheet(row.get("name", ""), link.target, row.get("state", "visible"))
        if link.kind in ("worksheet", "dialogsheet", "xlMacrosheet"):
            _read_sheet(package, sheet, strings, is_light)
        elif not is_light and link.target in package:
            sheet.floating = read_floating(package, sheet.part)
        sheets.append(sheet)
    names, hidden = _names(root, sheets)
    is_1904 = properties is not None and properties.get("date1904") in ("1", "true")
    return Book(sheets, names, hidden, styles, font, 1904 if is_1904 else 1900, package, main)


def _names(root: Any, sheets: list[Sheet]) -> tuple[dict[tuple[str, str], str], set[str]]:
    names: dict[tuple[str, str], str] = {}
    hidden: set[str] = set()
    for row in children(child(root, "definedNames"), "definedName"):
        scope = row.get("localSheetId")
        sheet = sheets[int(scope)].name if scope and int(scope) < len(sheets) else ""
        names[row.get("name", ""), sheet] = row.text or ""
        if row.get("hidden") in ("1", "true"):
            hidden.add(row.get("name", ""))
    return names, hidden


def _strings(package: Package, part: str) -> list[Text]:
    if part not in package:
        return []
    return [read_text(one) for one in package.xml(part) if local(one) == "si"]


def _read_sheet(package: Package, sheet: Sheet, strings: list[Text], is_light: bool) -> None:
    root = package.xml(sheet.part)
    for element in root:
        word = local(element)
        if word == "sheetData":
            sheet.cells = {(row, column): cell for row, column, cell in read_cells(element, strings)}
            if not is_light:
                _rows(sheet, element)
        elif word == "mergeCells":
            sheet.merged = [one.get("ref", "") for one in children(element, "mergeCell")]
        elif word == "cols":
            sheet.columns = [_span(one) for one in element if local(one) == "col"]
        elif not is_light:
            _feature(package, sheet, word, element)
    if not is_light:
        sheet.comments = read_comments(package, sheet.part)
        sheet.floating = read_floating(package, sheet.part)
        _tables(package, sheet)


def _rows(sheet: Sheet, sheet_data: Any) -> None:
    for row in sheet_data:
        if local(row) != "row" or len(row.attrib) < 2 or not row.get("r"):
            continue
        if row.get("hidden") in ("1", "true"):
            sheet.hidden_rows.add(int(row.get("r")))
        if row.get("ht"):
            sheet.heights[int(row.get("r"))] = float(row.get("ht"))
            if row.get("customHeight") in ("1", "true"):
                sheet.custom_heights.add(int(row.get("r")))


def _span(one: Any) -> tuple[int, int, float | None, bool, int]:
    width = one.get("width")
    is_hidden = one.get("hidden") in ("1", "true")
    first, last = int(one.get("min") or 1), int(one.get("max") or 1)
    return first, last, float(width) if width else None, is_hidden, int(one.get("style") or 0)


def _feature(package: Package, sheet: Sheet, word: str, element: Any) -> None:
    if word == "dataValidations":
        sheet.validations = [_validation(one) for one in children(element, "dataValidation")]
    elif word == "conditionalFormatting":
        sheet.formats.extend(_format(element.get("sqref", ""), rule) for rule in children(element, "cfRule"))
    elif word == "hyperlinks":
        links = {one.id: one.target for one in package.relations(sheet.part)}
        for one in children(element, "hyperlink"):
            where = links.get(rel_id(one), "") + (f"#{one.get('location')}" if one.get("location") else "")
            sheet.links[one.get("ref", "")] = where
    elif word == "sheetViews":
        pane = next((one for one in element.iter() if local(one) == "pane"), None)
        if pane is not None and pane.get("state", "").startswith("frozen"):
            sheet.panes = pane.get("topLeftCell", "")
    elif word == "sheetPr" and (tab := child(element, "tabColor")) is not None:
        sheet.settings["tabColor"] = canonical(tab)
    elif word == "sheetFormatPr" and element.get("defaultColWidth"):
        sheet.default_width = float(element.get("defaultColWidth"))
    elif word == "headerFooter":
        texts = {local(one): _EMPTY_PARTS.sub("", "".join((one.text or "").split())) for one in element}
        if any(texts.values()):
            sheet.settings[word] = " ".join(f"{key}={texts[key]}" for key in sorted(texts) if texts[key])
    elif word == "sheetProtection":
        if element.get("sheet") in ("1", "true"):
            rights = {key: value in ("1", "true") for key, value in element.attrib.items() if value in _SWITCH}
            changed = sorted(key for key, value in rights.items() if value != (key in _LOCKED_BY_DEFAULT))
            sheet.settings[word] = " ".join(["protected", *changed])
    elif word == "autoFilter":
        sheet.filtered = element.get("ref", "")
        sheet.settings[word] = "".join(canonical(one) for one in element) or "on"
    elif word == "extLst":
        found = [canonical(one) for one in element if local(one) == "ext"]
        sheet.extensions = sorted(text for text in found if "<PLV>" not in text)  # how the page is viewed


def _validation(one: Any) -> dict[str, Any]:
    found = {"range": one.get("sqref", ""), "type": one.get("type", "none")}
    for word in (
        "operator",
        "allowBlank",
        "errorStyle",
        "prompt",
        "error",
        "errorTitle",
        "promptTitle",
        "showDropDown",
    ):
        if one.get(word) not in (None, "0", "between", "stop"):
            found[word] = one.get(word)
    for word in ("formula1", "formula2"):
        part = child(one, word)
        if part is not None and part.text:
            found[word] = part.text
    return found


def _format(sqref: str, rule: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"range": sqref, "type": rule.get("type", "")}
    for word in ("operator", "text", "rank", "percent", "bottom", "timePeriod", "aboveAverage", "stdDev", "stopIfTrue"):
        if rule.get(word) not in (None, "0"):
            found[word] = rule.get(word)
    formulas = [part.text or "" for part in children(rule, "formula")]
    if formulas:
        found["formulas"] = formulas
    look = [canonical(one) for one in rule if local(one) in ("colorScale", "dataBar", "iconSet")]
    if look:
        found["look"] = look
    return found


def _tables(package: Package, sheet: Sheet) -> None:
    for relation in package.relations(sheet.part):
        if relation.kind == "table" and relation.target in package:
            root = package.xml(relation.target)
            columns = [one.get("name", "") for one in children(child(root, "tableColumns"), "tableColumn")]
            name = root.get("displayName") or root.get("name", "")
            sheet.tables[name] = {"range": root.get("ref", ""), "columns": columns}


def canonical(element: Any) -> str:
    """One text for an element whatever its prefixes, attribute order and blanks between tags."""
    if not isinstance(element.tag, str):
        return ""
    attributes = " ".join(
        f"{key.rpartition('}')[2]}={value}"
        for key, value in sorted(element.attrib.items())
        if value not in ("0", "false") and not (local(element) == "filterColumn" and key == "showButton")
    )
    inner = "".join(canonical(one) for one in element)
    text = (element.text or "").strip()
    return f"<{local(element)}{' ' if attributes else ''}{attributes}>{text}{inner}</>"
