"""Presentations as templates write them: slides with a native chart each, as bytes and as calls of the agent's tools.

One layout serves both oracles. A slide is ``{"title", "lines", "categories", "series": {name: values}}``; without
categories it has no chart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from journeyman.worlds.content import Deck, SlideChart
from journeyman.worlds.content import Slide as Planned
from journeyman.worlds.drafting import CREATED
from journeyman.worlds.render.places import Places, Style
from journeyman.worlds.render.pptx import render_pptx
from journeyman.worlds.template import FOLDER, Solving, ToolCall

Slide = dict[str, Any]


def slide(title: str, lines: Sequence[str], categories: Sequence[str] = (), **series: Sequence[float | None]) -> Slide:
    """One slide; its chart shows these series over the categories."""
    return {"title": title, "lines": list(lines), "categories": list(categories), "series": dict(series)}


def pptx_bytes(slides: Sequence[Slide]) -> bytes:
    """A presentation of these slides. Same slides, same bytes; values that are missing count 0."""
    return _pptx_of(json.dumps(list(slides)))


@lru_cache(maxsize=32)
def _pptx_of(slides: str) -> bytes:
    """Kept for a while: most wrong deliverables of a task leave the deck as it is, and writing one is slow."""
    planned = []
    for one in json.loads(slides):
        series = tuple((name, tuple(float(v or 0) for v in values)) for name, values in one["series"].items())
        chart = SlideChart("column", one["title"], tuple(one["categories"]), series) if one["categories"] else None
        planned.append(Planned(one["title"], tuple(one["lines"]), chart=chart))
    style = Style("Calibri", "A4", 11.0, 20.0, "", CREATED)
    return render_pptx(Deck(tuple(planned), "Slides"), style, Places())


def save_deck(name: str, slides: Sequence[Slide], scratch: str = "chart.xlsx") -> Solving:
    """The calls that write a presentation: its slides, then a workbook of each chart and the chart itself."""
    made = [
        {"layout": "title_and_content", "title": one["title"], "bullets": {"items": one["lines"]}} for one in slides
    ]
    yield ToolCall("presentations_create_deck", {"directory": f"/{FOLDER}", "file_name": name, "slides": made})
    for number, one in enumerate(slides):
        if one["categories"]:
            yield from _chart(name, number, one, scratch)


def _chart(name: str, number: int, one: Mapping[str, Any], scratch: str) -> Solving:
    names = list(one["series"])
    rows = [[c, *(one["series"][n][i] for n in names)] for i, c in enumerate(one["categories"])]
    page = {"name": "Chart", "headers": ["Category", *names], "rows": rows}
    yield ToolCall(
        "spreadsheets_create_spreadsheet",
        {
            "directory": f"/{FOLDER}",
            "file_name": scratch,
            "sheets": [page],
        },
    )
    area = f"A1:{chr(65 + len(names))}{len(rows) + 1}"
    yield ToolCall("presentations_insert_chart", {
        "presentation_path": f"/{FOLDER}/{name}", "slide_index": number, "spreadsheet_path": f"/{FOLDER}/{scratch}",
        "sheet_name": "Chart", "data_range": area, "chart_type": "bar", "title": one["title"],
    })  # fmt: skip
