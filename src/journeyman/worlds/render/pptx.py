"""PPTX through python-pptx, zipped again canonically: text, tables, native charts, notes."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from typing import Any

from journeyman.worlds.content import Deck, Slide, Table
from journeyman.worlds.render.canonical import rezip
from journeyman.worlds.render.places import Places, Style
from journeyman.worlds.render.xlsx import column_letters

LEFT, TOP, WIDTH = 0.6, 1.35, 8.8
"""Inches."""


def render_pptx(deck: Deck, style: Style, places: Places) -> bytes:
    """A presentation; facts lie at ``s3/sh5``, at cells ``s3/sh4/r1c2`` and series ``s3/sh6/series1``."""
    from pptx import Presentation

    made = Presentation(BytesIO(_template()))
    made.core_properties.title, made.core_properties.author = deck.title, ""
    made.core_properties.created = made.core_properties.modified = style.created
    made.core_properties.last_modified_by = ""
    for number, slide in enumerate(deck.slides, start=1):
        _slide(made, number, slide, places)
    buffer = BytesIO()
    made.save(buffer)
    return rezip(buffer.getvalue())


@cache
def _template() -> bytes:
    """The library's template without the layouts that no slide here uses."""
    from pptx import Presentation

    made = Presentation()
    for layout in list(made.slide_layouts):
        if layout.name != "Title Only":
            made.slide_layouts.remove(layout)
    buffer = BytesIO()
    made.save(buffer)
    return buffer.getvalue()


def _slide(made: Any, number: int, content: Slide, places: Places) -> None:
    from pptx.util import Inches, Pt

    page = made.slides.add_slide(made.slide_layouts[0])
    title = page.shapes.title
    title.text = places.take(content.title, f"s{number}/sh{title.shape_id}")
    title.text_frame.paragraphs[0].font.size = Pt(26)
    top = TOP
    if content.bullets:
        height = 0.42 * len(content.bullets) + 0.2
        box = page.shapes.add_textbox(Inches(LEFT), Inches(top), Inches(WIDTH), Inches(height))
        box.name = "Key messages"
        box.text_frame.word_wrap = True
        for index, bullet in enumerate(content.bullets):
            paragraph = box.text_frame.paragraphs[0] if index == 0 else box.text_frame.add_paragraph()
            paragraph.text = places.take(bullet, f"s{number}/sh{box.shape_id}")
            paragraph.font.size = Pt(15)
        top += height
    if content.table:
        top += _table(page, number, content.table, top, places)
    if content.chart:
        _chart(page, number, content, top, places)
    if content.source:
        box = page.shapes.add_textbox(Inches(LEFT), Inches(6.95), Inches(WIDTH), Inches(0.35))
        box.name = "Source"
        box.text_frame.text = places.take(content.source, f"s{number}/sh{box.shape_id}")
        box.text_frame.paragraphs[0].font.size = Pt(10)
    if content.notes:
        page.notes_slide.notes_text_frame.text = places.take(content.notes, f"s{number}/notes")


def _table(page: Any, number: int, table: Table, top: float, places: Places) -> float:
    from pptx.util import Inches, Pt

    rows, columns = len(table.rows), len(table.rows[0])
    height = 0.32 * rows
    frame = page.shapes.add_table(rows, columns, Inches(LEFT), Inches(top), Inches(WIDTH), Inches(height))
    frame.name = "Table"
    for row, cells in enumerate(table.rows):
        for column, text in enumerate(cells):
            cell = frame.table.cell(row, column)
            cell.text = places.take(text, f"s{number}/sh{frame.shape_id}/r{row + 1}c{column + 1}")
            cell.text_frame.paragraphs[0].font.size = Pt(12)
    return height + 0.15


def _chart(page: Any, number: int, content: Slide, top: float, places: Places) -> None:
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.util import Inches

    chart = content.chart
    assert chart is not None
    kinds = {"column": XL_CHART_TYPE.COLUMN_CLUSTERED, "line": XL_CHART_TYPE.LINE, "bar": XL_CHART_TYPE.BAR_CLUSTERED}
    data = CategoryChartData()
    data.categories = list(chart.categories)
    for name, values in chart.series:
        data.add_series(name, values)
    height = max(2.0, 6.8 - top)
    frame = page.shapes.add_chart(kinds[chart.kind], Inches(LEFT), Inches(top), Inches(WIDTH), Inches(height), data)
    frame.name = "Chart"
    frame.chart.has_title = True
    frame.chart.chart_title.text_frame.text = chart.title
    book = frame.chart.part.chart_workbook.xlsx_part
    book.blob = rezip(_undated(book.blob))
    for series, fact in enumerate(chart.facts, start=1):
        if fact:
            places.found.append((fact, column_letters(series), f"s{number}/sh{frame.shape_id}/series{series}"))


def _undated(data: bytes) -> bytes:
    """The chart's workbook without the instant at which the library made it."""
    import re
    from zipfile import ZipFile

    from journeyman.worlds.render.canonical import canonical_zip

    with ZipFile(BytesIO(data)) as container:
        parts = {name: container.read(name) for name in container.namelist()}
    core = parts["docProps/core.xml"]
    parts["docProps/core.xml"] = re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", b"2026-01-05T00:00:00Z", core)
    return canonical_zip(parts)
