"""From a tree to a presentation: slides with title, text boxes, tables, charts, notes and properties.

What cannot be written is refused by name, never left out silently. Positions are in points. The same tree gives the
same bytes; ids and layout names are those of the file that is made, so what is read back may have more attributes.
"""

from __future__ import annotations

import re
from datetime import datetime
from io import BytesIO
from typing import Any

from ..errors import Unsupported
from ..node import Document, Node
from ..opc import open_package, repacked, rewritten
from .text import set_body

METADATA = {
    "title": "title",
    "subject": "subject",
    "author": "author",
    "keywords": "keywords",
    "description": "comments",
    "category": "category",
    "last_modified_by": "last_modified_by",
    "created_at": "created",
    "modified_at": "modified",
}
"""Key of ``Document.metadata`` -> property of python-pptx."""
CHART_KINDS = {"barChart": "COLUMN_CLUSTERED", "lineChart": "LINE", "pieChart": "PIE", "areaChart": "AREA"}
MADE_AT = re.compile(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*<")
FRAME = ("x_pt", "y_pt", "width_pt", "height_pt")
LAYOUT_TITLE_ONLY, LAYOUT_BLANK = 5, 6
WIDTH_PT, HEIGHT_PT = 720.0, 540.0


def write(document: Document) -> bytes:
    """The file of a tree. Raises Unsupported with the address of what cannot be written."""
    from pptx import Presentation
    from pptx.util import Pt

    file = Presentation()
    for child in list(file.core_properties._element):
        file.core_properties._element.remove(child)
    sizes = {"slide_width_pt": WIDTH_PT, "slide_height_pt": HEIGHT_PT}
    for key, value in document.metadata.items():
        if key in sizes:
            sizes[key] = float(value)
        elif key not in METADATA:
            raise Unsupported(
                document.name, f"the property {key!r} is not written", remedy=f"known: {', '.join(METADATA)}"
            )
        else:
            is_date = key.endswith("_at")
            setattr(
                file.core_properties,
                METADATA[key],
                datetime.fromisoformat(value).replace(tzinfo=None) if is_date else value,
            )
    file.slide_width, file.slide_height = Pt(sizes["slide_width_pt"]), Pt(sizes["slide_height_pt"])
    for node in document.nodes:
        _write_slide(file, node, document.name)
    out = BytesIO()
    file.save(out)
    return _settled(out.getvalue(), document.name)


def _settled(data: bytes, name: str) -> bytes:
    """The file without the time at which it and the workbooks of its charts were made."""
    package = open_package(data, name)
    changed: dict[str, bytes | None] = {}
    for part, content in package.parts.items():
        if part.startswith("ppt/embeddings/") and part.endswith(".xlsx"):
            book = open_package(content, name)
            core = MADE_AT.sub(rb"\g<1>2000-01-01T00:00:00Z<", book.parts.get("docProps/core.xml", b""))
            changed[part] = repacked(rewritten(book, {"docProps/core.xml": core}))
    return repacked(rewritten(package, changed))


def _write_slide(file: Any, node: Node, name: str) -> None:
    if node.kind != "slide":
        raise Unsupported(name, f"a {node.kind} at the top is not written", place=node.address)
    title = next((one for one in node.children if one.attributes.get("placeholder") in ("title", "ctrTitle")), None)
    slide = file.slides.add_slide(file.slide_layouts[LAYOUT_BLANK if title is None else LAYOUT_TITLE_ONLY])
    if node.attributes.get("hidden"):
        slide._element.set("show", "0")
    for child in node.children:
        if child is title:
            set_body(slide.shapes.title._element.txBody, child.text)
        elif child.kind == "notes":
            set_body(slide.notes_slide.notes_text_frame._txBody, child.text)
        elif child.kind in WRITERS:
            made = WRITERS[child.kind](slide, child, [_points(child, key) for key in FRAME])
            if child.attributes.get("name"):
                made.name = child.attributes["name"]
        else:
            raise Unsupported(name, f"a {child.kind} is not written", place=child.address)


def _points(node: Node, key: str) -> int:
    from pptx.util import Pt

    defaults = {"x_pt": 36.0, "y_pt": 108.0, "width_pt": WIDTH_PT - 72, "height_pt": HEIGHT_PT - 180}
    return int(Pt(node.attributes.get(key, defaults[key])))


def _shape(slide: Any, node: Node, frame: list[int]) -> Any:
    box = slide.shapes.add_textbox(*frame)
    set_body(box._element.txBody, node.text)
    return box


def _table(slide: Any, node: Node, frame: list[int]) -> Any:
    columns = max(len(row.children) for row in node.children)
    made = slide.shapes.add_table(len(node.children), columns, *frame)
    for row, line in zip(made.table.rows, node.children, strict=True):
        for cell, content in zip(row.cells, line.children, strict=False):
            set_body(cell._tc.get_or_add_txBody(), content.text)
    return made


def _chart(slide: Any, node: Node, frame: list[int]) -> Any:
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE

    data = CategoryChartData()
    data.categories = node.children[0].attributes.get("categories", []) if node.children else []
    for series in node.children:
        data.add_series(series.text, series.attributes.get("values", []))
    kind = next(iter(node.attributes.get("chart", [])), "barChart")
    if kind not in CHART_KINDS:
        raise Unsupported("presentation", f"a {kind} is not written", place=node.address)
    made = slide.shapes.add_chart(getattr(XL_CHART_TYPE, CHART_KINDS[kind]), *frame, data)
    if "title" in node.attributes:
        made.chart.has_title = True
        made.chart.chart_title.text_frame.text = node.attributes["title"]
    return made


WRITERS = {"shape": _shape, "table": _table, "chart": _chart}
"""Kind of node -> how it is added to a slide."""
