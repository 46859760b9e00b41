"""Charts: kind, title and series with their values, and how values are set in the chart and in its workbook."""

from __future__ import annotations

import re
from typing import Any

from ..errors import UnreadableDocument
from ..node import Node
from ..opc import Package, open_package, rewritten
from .names import A, c, local

POINTS = ("numCache", "numLit", "strCache", "strLit", "multiLvlStrCache")
REFERENCE = re.compile(
    r"^'?(?P<sheet>[^'!]+)'?!\$?(?P<col>[A-Z]+)\$?(?P<row>\d+)(?::\$?(?P<col2>[A-Z]+)\$?(?P<row2>\d+))?$"
)
MAX_POINTS = 1_000_000
SHEET_NS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def series_of(root: Any) -> list[Any]:
    """Elements of all series in the order of the file."""
    return list(root.iter(c("ser")))


def chart_facts(root: Any) -> dict[str, Any]:
    """Kinds and title of a chart."""
    kinds = [local(one) for area in root.iter(c("plotArea")) for one in area if local(one).endswith("Chart")]
    title = root.find(f"{c('chart')}/{c('title')}")
    text = "" if title is None else "".join(one.text or "" for one in title.iter(f"{{{A}}}t"))
    return {"chart": kinds} | ({"title": text} if text else {})


def series_nodes(root: Any, address: str) -> tuple[Node, ...]:
    """One node per series: its name as text; categories, values and the ranges they come from as attributes."""
    nodes = []
    for number, series in enumerate(series_of(root), start=1):
        attributes: dict[str, Any] = {}
        for key, names in (
            ("categories", ("cat",)),
            ("x", ("xVal",)),
            ("values", ("val", "yVal")),
            ("sizes", ("bubbleSize",)),
        ):
            for element in (one for one in series if local(one) in names):
                attributes[key] = points(element)
                reference = element.findtext(f".//{c('f')}")
                if reference:
                    attributes[f"{key}_range"] = reference
        name = series.find(c("tx"))
        text = "" if name is None else str(next(iter(points(name)), "") or name.findtext(c("v")) or "")
        nodes.append(Node("series", f"{address}/series{number}", text, attributes))
    return tuple(nodes)


def points(element: Any) -> list[Any]:
    """Cached points in order: numbers, texts, None for a gap."""
    cache = next((one for one in element.iter() if local(one) in POINTS), None)
    if cache is None:
        return []
    is_number = local(cache).startswith("num")
    found: dict[int, Any] = {}
    for point in cache.iter(c("pt")):
        index = point.get("idx") or ""
        if index.isdigit() and int(index) < MAX_POINTS:
            found[int(index)] = _value(point.findtext(c("v")), is_number)
    return [found.get(index) for index in range(max(found, default=-1) + 1)]


def set_points(series: Any, names: tuple[str, ...], values: list[Any]) -> str | None:
    """Replace the cached points of a series; returns the range they come from.

    Raises:
        ValueError: the series has no such points.
    """
    from lxml import etree

    element = next((one for one in series if local(one) in names), None)
    cache = None if element is None else next((one for one in element.iter() if local(one) in POINTS[:4]), None)
    if element is None or cache is None:
        raise ValueError(f"the series has no {names[0]}")
    for point in cache.findall(c("pt")):
        cache.remove(point)
    count = cache.find(c("ptCount"))
    if count is None:
        count = etree.SubElement(cache, c("ptCount"))
    count.set("val", str(len(values)))
    for index, value in reversed([(index, value) for index, value in enumerate(values) if value is not None]):
        point = etree.Element(c("pt"))
        point.set("idx", str(index))
        etree.SubElement(point, c("v")).text = value if isinstance(value, str) else repr(value)
        count.addnext(point)
    reference: str | None = element.findtext(f".//{c('f')}")
    return reference


def set_in_workbook(package: Package, data: bytes, reference: str, values: list[Any]) -> bytes | None:
    """The chart's workbook with these values in a range of one column or row; None when the range is another.

    Args:
        package: of the presentation, for messages.
        data: the embedded workbook.
        reference: as in the chart, e.g. ``Sheet1!$B$2:$B$5``.
        values: numbers or texts; None empties a cell.
    """
    found = REFERENCE.match(reference)
    if found is None:
        return None
    cells = _cells(found)
    if len(cells) != len(values):
        return None
    try:
        book = open_package(data, package.name)
        main = book.main(("workbook",))
        sheet = next(one for one in book.xml(main).iter(f"{{{SHEET_NS}}}sheet") if one.get("name") == found["sheet"])
        relation = next(value for key, value in sheet.attrib.items() if key.endswith("}id"))
        part = book.part_name(book.relationships(main)[relation].target) or ""
        root = book.xml(part)
    except (UnreadableDocument, StopIteration, KeyError):
        return None
    known = {one.get("r"): one for one in root.iter(f"{{{SHEET_NS}}}c")}
    if any(cell not in known for cell in cells):
        return None
    for cell, value in zip(cells, values, strict=True):
        _set_cell(known[cell], value)
    return rewritten(book, {part: book.serialised(part, root)})


def _set_cell(cell: Any, value: Any) -> None:
    from lxml import etree

    for child in list(cell):
        cell.remove(child)
    cell.attrib.pop("t", None)
    if isinstance(value, str):
        cell.set("t", "inlineStr")
        holder = etree.SubElement(cell, f"{{{SHEET_NS}}}is")
        etree.SubElement(holder, f"{{{SHEET_NS}}}t").text = value
    elif value is not None:
        etree.SubElement(cell, f"{{{SHEET_NS}}}v").text = repr(value)


def _cells(found: re.Match[str]) -> list[str]:
    first, last = int(found["row"]), int(found["row2"] or found["row"])
    if (found["col2"] or found["col"]) != found["col"] or last - first > MAX_POINTS:
        return []
    return [f"{found['col']}{row}" for row in range(first, last + 1)]


def _value(text: str | None, is_number: bool) -> Any:
    if text is None or not is_number:
        return text
    try:
        value = float(text)
    except ValueError:
        return text
    return value if abs(value) < float("inf") and value == value else text
