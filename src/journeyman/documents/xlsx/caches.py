"""The stored values of formulas: found in the sheet parts, compared, and written in place."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from .address import area_of, cell_address, cell_of
from .book import workbook_part
from .cells import moved_formula
from .engines import Place, Result
from .package import Package, child, children, rel_id


@dataclass(frozen=True, slots=True)
class Recomputed:
    """One cell whose stored value changed; None before: it was never calculated."""

    address: str
    before: float | str | bool | None
    after: float | str | bool | None


@dataclass(slots=True)
class SheetFormulas:
    """The cells of one sheet part that hold or spill a formula, and the formulas without ``=``."""

    part: str
    root: Any
    elements: dict[tuple[int, int], Any]
    formulas: dict[tuple[int, int], str]


def formula_cells(package: Package) -> tuple[dict[str, SheetFormulas], int]:
    """By sheet: the elements whose caches an engine fills, formulas' own and those of array ranges."""
    main = workbook_part(package)
    root = package.xml(main)
    links = {one.id: one for one in package.relations(main)}
    properties = child(root, "workbookPr")
    epoch = 1904 if properties is not None and properties.get("date1904") in ("1", "true") else 1900
    found: dict[str, SheetFormulas] = {}
    for row in children(child(root, "sheets"), "sheet"):
        link = links.get(rel_id(row))
        if link is None or link.kind != "worksheet" or b"<f" not in package.read(link.target).replace(b":f", b"<f"):
            continue
        sheet = package.xml(link.target)
        elements, formulas = _scan(sheet)
        if elements:
            found[row.get("name", "")] = SheetFormulas(link.target, sheet, elements, formulas)
    return found, epoch


def _scan(sheet: Any) -> tuple[dict[tuple[int, int], Any], dict[tuple[int, int], str]]:
    space = sheet.tag.rpartition("}")[0] + "}"
    elements: dict[tuple[int, int], Any] = {}
    formulas: dict[tuple[int, int], str] = {}
    shared: dict[str, tuple[int, int, str]] = {}
    arrays: list[tuple[tuple[int, int], str]] = []
    for one in sheet.iter(f"{space}f"):
        cell = one.getparent()
        reference = cell.get("r")
        if not reference or one.get("t") == "dataTable":
            continue
        row, column = cell_of(reference)
        text = one.text or ""
        if one.get("t") == "shared":
            if text:
                shared[one.get("si")] = (row, column, text)
            elif one.get("si") in shared:
                top, left, first = shared[one.get("si")]
                text = moved_formula(first, row - top, column - left)
        elif one.get("t") == "array" and ":" in one.get("ref", ""):
            arrays.append(((row, column), one.get("ref")))
        elements[row, column], formulas[row, column] = cell, text
    if arrays:
        _add_arrays(sheet, space, arrays, elements)
    return elements, formulas


def _add_arrays(sheet: Any, space: str, arrays: list[Any], elements: dict[tuple[int, int], Any]) -> None:
    cells = {one.get("r"): one for one in sheet.iter(f"{space}c")}
    for _, reference in arrays:
        area = area_of(reference, "")
        for text, element in cells.items():
            if text and area.holds(*cell_of(text)):
                elements.setdefault(cell_of(text), element)


def store(
    package: Package,
    sheets: dict[str, SheetFormulas],
    values: dict[Place, Result],
    only: Collection[str] | None = None,
) -> tuple[Recomputed, ...]:
    """Write the values that differ into the parts; what is stored already is left untouched."""
    changed: list[Recomputed] = []
    for name, found in sheets.items():
        count = len(changed)
        for (row, column), element in found.elements.items():
            result = values.get((name, row, column))
            if only is not None and result is not None and child(element, "v") is not None:
                result = result if cell_address(name, row, column) in only else None
            if result is not None and (before := _write_cache(element, result)) is not _SAME:
                changed.append(Recomputed(cell_address(name, row, column), before, result[1]))
        if len(changed) > count:
            package.replace_xml(found.part, found.root)
    return tuple(changed)


_SAME: Any = object()


def _write_cache(element: Any, result: Result) -> Any:
    """Store a result in a ``<c>``; the value before, or ``_SAME`` when it was stored already."""
    from lxml import etree

    space = element.tag.rpartition("}")[0] + "}"
    stored = element.find(f"{space}v")
    kind, value = result
    word = {"n": None, "s": "str", "b": "b", "e": "e"}[kind]
    before_text, before_kind = (stored.text if stored is not None else None), element.get("t")
    if stored is not None and _is_stored(before_kind, before_text, word, value):
        return _SAME
    if stored is None:
        stored = etree.SubElement(element, f"{space}v")
    stored.text = number_text(float(value)) if kind == "n" else ("1" if value else "0") if kind == "b" else str(value)
    if word is None:
        element.attrib.pop("t", None)
    else:
        element.set("t", word)
    return _python(before_kind, before_text)


def _is_stored(kind: str | None, text: str | None, word: str | None, value: Any) -> bool:
    if (kind if kind != "n" else None) != word:
        return False
    if word is None:
        try:
            return math.isclose(float(text or ""), value, rel_tol=1e-14, abs_tol=0.0)
        except ValueError:
            return False
    if word == "b":
        return (text in ("1", "true")) == bool(value)
    return bool((text or "") == value)


def _python(kind: str | None, text: str | None) -> float | str | bool | None:
    if text is None:
        return None
    if kind in (None, "n"):
        try:
            return float(text)
        except ValueError:
            return text
    return text in ("1", "true") if kind == "b" else text


def number_text(value: float) -> str:
    """A float as files store it: shortest text that reads back equal, integers without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
