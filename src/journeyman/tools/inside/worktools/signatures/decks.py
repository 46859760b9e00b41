"""Signatures of presentations."""

from __future__ import annotations

from .operations import EDIT_SLIDES, SLIDE
from .signature import (
    CHANGE_IMAGE,
    COLOR,
    DIRECTORY,
    FILE,
    FILE_NAME,
    Signature,
    flag,
    grid,
    integer,
    many,
    number,
    record,
    text,
    tool,
    words,
)

_SLIDE_INDEX = integer("slide from 0", minimum=0)
_INCHES = {"minimum": 0, "maximum": 100}
_LAYOUTS = ["title", "title_and_content", "section_header", "two_content", "title_only", "blank"]
SHAPES = (
    *("rectangle", "rounded_rectangle", "oval", "triangle", "right_arrow", "left_arrow", "up_arrow", "down_arrow"),
    *("pentagon", "hexagon", "star", "heart", "lightning_bolt", "cloud"),
)

PRESENTATIONS: dict[str, Signature] = {
    "create_deck": tool(
        "Write a new presentation; answers with what its slides hold.",
        "idempotent",
        {"directory": DIRECTORY, "file_name": FILE_NAME, "slides": many(SLIDE, "slides, in order", minItems=1)},
        {"metadata": record("title, subject, author, comments")},
    ),
    "delete_deck": tool("Delete a presentation.", "idempotent", {"file_path": FILE}),
    "add_slide": tool(
        "Add a slide.",
        "unsafe",
        {"file_path": FILE},
        {
            "index": integer("position from 0; last when left out", minimum=0),
            "layout": text("layout", default="title_and_content", enum=_LAYOUTS),
            "title": text("title"),
            "subtitle": text("subtitle"),
            "bullets": words("bullet points"),
        },
    ),
    "edit_slides": tool(
        "Change slides by a list of operations, all or none.",
        "unsafe",
        {"file_path": FILE, "operations": many(EDIT_SLIDES, "what to do, in order", minItems=1)},
        {"metadata": record("title, subject, author, comments")},
    ),
    "add_image": tool(
        "Put an image on a slide.",
        "unsafe",
        {"file_path": FILE, "image_path": FILE, "slide_index": _SLIDE_INDEX},
        {
            "x": number("inches from the left", default=1.0, **_INCHES),
            "y": number("inches from the top", default=1.5, **_INCHES),
            "width": number("inches", minimum=0.01, maximum=100),
            "height": number("inches", minimum=0.01, maximum=100),
        },
    ),
    "modify_image": tool(
        "Turn, mirror, crop, brighten or change the contrast of an image.",
        "unsafe",
        {
            "file_path": FILE,
            "slide_index": _SLIDE_INDEX,
            "image_index": integer("image of the slide from 0", minimum=0),
            "operation": text("what to do", enum=["rotate", "flip", "brightness", "contrast", "crop"]),
        },
        {
            **CHANGE_IMAGE,
            **{
                f"crop_{side}": number("share cut off, 0 to 1", minimum=0, maximum=1)
                for side in ("left", "top", "right", "bottom")
            },
        },
    ),
    "insert_chart": tool(
        "Put a chart of a workbook's cells on a slide.",
        "unsafe",
        {
            "presentation_path": FILE,
            "slide_index": _SLIDE_INDEX,
            "spreadsheet_path": FILE,
            "sheet_name": text("tab with the data"),
            "data_range": text("e.g. A1:C10, categories in its first column"),
        },
        {
            "chart_type": text(
                "kind", default="bar", enum=["bar", "line", "pie", "area", "scatter", "doughnut", "radar"]
            ),
            "title": text("title of the chart"),
            "position": text("part of the slide", default="body", enum=["body", "left", "right"]),
            "include_header": flag("the first row of the range names the series", default=True),
        },
    ),
    "insert_table": tool(
        "Put a table on a slide.",
        "unsafe",
        {"file_path": FILE, "slide_index": _SLIDE_INDEX, "rows": grid("rows of texts")},
        {
            "header": flag("the first row is a header", default=True),
            "x": number("inches", default=0.5, **_INCHES),
            "y": number("inches", default=1.5, **_INCHES),
            "width": number("inches", default=9.0, **_INCHES),
            "height": number("inches", default=5.0, **_INCHES),
        },
    ),
    "add_shape": tool(
        "Put a shape on a slide.",
        "unsafe",
        {"file_path": FILE, "slide_index": _SLIDE_INDEX, "shape_type": text("kind", enum=list(SHAPES))},
        {
            "x": number("inches", default=1.0, **_INCHES),
            "y": number("inches", default=1.0, **_INCHES),
            "width": number("inches", default=2.0, **_INCHES),
            "height": number("inches", default=2.0, **_INCHES),
            "fill_color": COLOR,
            "line_color": COLOR,
            "line_width": number("points", minimum=0, maximum=100),
            "text": text("text in the shape"),
            "text_color": COLOR,
            "font_size": number("points", minimum=1, maximum=400),
        },
    ),
    "read_slides": tool(
        "Read some slides.",
        "pure",
        {"file_path": FILE},
        {"start": integer("first slide from 0", default=0, minimum=0), "end": integer("last slide", minimum=0)},
        reads="file_path",
    ),
    "read_completedeck": tool("Read all slides.", "pure", {"file_path": FILE}, reads="file_path"),
    "read_individualslide": tool(
        "Read one slide with shapes, tables, charts, images and notes.",
        "pure",
        {"file_path": FILE, "slide_index": _SLIDE_INDEX},
        reads="file_path",
    ),
    "read_image": tool(
        "Look at an image of a presentation.",
        "pure",
        {"file_path": FILE, "annotation": text("image as reading names it, e.g. slide0/image0")},
        reads="file_path",
    ),
}
