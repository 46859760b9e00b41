"""Images, charts, tables and shapes on slides."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from .book_views import grid_of, sheets_of
from .deck_slides import Deck
from .pictures import changed
from .workspace import Refused, Workspace

SHAPES = {
    "rectangle": "RECTANGLE",
    "rounded_rectangle": "ROUNDED_RECTANGLE",
    "oval": "OVAL",
    "triangle": "ISOSCELES_TRIANGLE",
    "right_arrow": "RIGHT_ARROW",
    "left_arrow": "LEFT_ARROW",
    "up_arrow": "UP_ARROW",
    "down_arrow": "DOWN_ARROW",
    "pentagon": "PENTAGON",
    "hexagon": "HEXAGON",
    "star": "STAR_5_POINT",
    "heart": "HEART",
    "lightning_bolt": "LIGHTNING_BOLT",
    "cloud": "CLOUD",
}
"""Word for a shape -> member of ``MSO_SHAPE``."""

CHARTS = {
    "bar": "COLUMN_CLUSTERED",
    "line": "LINE",
    "pie": "PIE",
    "area": "AREA",
    "scatter": "XY_SCATTER",
    "doughnut": "DOUGHNUT",
    "radar": "RADAR",
}
"""Word for a chart -> member of ``XL_CHART_TYPE``."""

PLACES = {"body": (0.5, 1.6, 9.0, 5.2), "left": (0.4, 1.6, 4.5, 5.2), "right": (5.1, 1.6, 4.5, 5.2)}
"""Part of a slide of 10 by 7.5 inches -> x, y, width, height in inches."""


def color_of(word: str) -> Any:
    """A colour of python-pptx. Raises Refused."""
    from pptx.dml.color import RGBColor

    try:
        return RGBColor.from_string(word.lstrip("#").upper())
    except ValueError as error:
        raise Refused(f"{word!r} is no colour; write RRGGBB") from error


def add_image(
    workspace: Workspace,
    file_path: str,
    image_path: str,
    slide_index: int,
    x: float = 1.0,
    y: float = 1.5,
    width: float | None = None,
    height: float | None = None,
) -> str:
    """Put an image on a slide; without a size it has its own."""
    from pptx.util import Inches

    data, name = workspace.read(image_path)
    workspace.keep_image(data, name)
    deck = Deck(workspace, file_path)
    size = (Inches(width) if width else None, Inches(height) if height else None)
    deck.slide(slide_index).shapes.add_picture(BytesIO(data), Inches(x), Inches(y), *size)
    return deck.saved(slide_index)


def _pictures(slide: Any) -> list[Any]:
    """Pictures in groups too, in the order in which reading names them."""
    found, stack = [], list(slide.shapes)
    while stack:
        shape = stack.pop(0)
        if hasattr(shape, "shapes"):
            stack = [*shape.shapes, *stack]
        elif str(shape._element.tag).endswith("}pic"):
            found.append(shape)
    return found


def _picture(deck: Deck, slide_index: int, image_index: int) -> Any:
    pictures = _pictures(deck.slide(slide_index))
    if not 0 <= image_index < len(pictures):
        raise Refused(f"slide {slide_index} has {len(pictures)} images; they count from 0")
    return pictures[image_index]


def modify_image(
    workspace: Workspace,
    file_path: str,
    slide_index: int,
    image_index: int,
    operation: str,
    rotation: float | None = None,
    flip: str | None = None,
    brightness: float | None = None,
    contrast: float | None = None,
    crop_left: float | None = None,
    crop_top: float | None = None,
    crop_right: float | None = None,
    crop_bottom: float | None = None,
) -> dict[str, Any]:
    """Change an image; turning and cropping are properties of the shape, the rest changes the pixels."""
    deck = Deck(workspace, file_path)
    picture = _picture(deck, slide_index, image_index)
    crops = {"left": crop_left, "top": crop_top, "right": crop_right, "bottom": crop_bottom}
    if operation == "crop":
        if all(one is None for one in crops.values()):
            raise Refused("operation crop needs crop_left, crop_top, crop_right or crop_bottom")
        for side, share in crops.items():
            if share is not None:
                setattr(picture, f"crop_{side}", share)
    elif operation == "rotate":
        if rotation is None:
            raise Refused("operation rotate needs rotation")
        picture.rotation = rotation % 360
    else:
        values = {"flip": flip, "brightness": brightness, "contrast": contrast}
        data = changed(picture.image.blob, operation, values)
        _, link = deck.slide(slide_index).part.get_or_add_image_part(BytesIO(data))
        blip = next(one for one in picture._element.iter() if str(one.tag).endswith("}blip"))
        blip.set(next(key for key in blip.attrib if key.endswith("}embed")), link)
    deck.save()
    after = _picture(Deck(workspace, file_path), slide_index, image_index)
    return {
        "slide_index": slide_index,
        "image_index": image_index,
        "rotation": after.rotation,
        **{f"crop_{side}": round(getattr(after, f"crop_{side}"), 4) for side in crops},
        **workspace.keep_image(after.image.blob, file_path),
    }


def read_image(workspace: Workspace, file_path: str, annotation: str) -> dict[str, Any]:
    """Facts and a copy of an image named ``slide<n>/image<m>``, both from 0."""
    deck = Deck(workspace, file_path)
    match = re.fullmatch(r"slide(\d+)/image(\d+)", annotation.strip().strip("[]@"))
    if match is None:
        known = [
            f"slide{at}/image{number}"
            for at, slide in enumerate(deck.file.slides)
            for number in range(len(_pictures(slide)))
        ]
        raise Refused(f"no image {annotation!r}; there are {', '.join(known[:20]) or 'none'}")
    picture = _picture(deck, int(match[1]), int(match[2]))
    return {"image": match[0], "name": picture.name, **workspace.keep_image(picture.image.blob, annotation)}


def put_table(slide: Any, rows: Sequence[Sequence[Any]], header: bool, box: Sequence[float]) -> None:
    """A table on a slide; ``box`` is x, y, width and height in inches. Raises Refused."""
    from pptx.util import Inches

    width = max((len(row) for row in rows), default=0)
    if not width:
        raise Refused("a table needs at least one cell")
    table = slide.shapes.add_table(len(rows), width, *(Inches(one) for one in box)).table
    table.first_row = header
    for row, cells in enumerate(rows):
        for column, text in enumerate(cells):
            table.cell(row, column).text_frame.text = "" if text is None else str(text)


def insert_table(
    workspace: Workspace,
    file_path: str,
    slide_index: int,
    rows: Sequence[Sequence[Any]],
    header: bool = True,
    x: float = 0.5,
    y: float = 1.5,
    width: float = 9.0,
    height: float = 5.0,
) -> str:
    """A table with rows of texts."""
    deck = Deck(workspace, file_path)
    put_table(deck.slide(slide_index), rows, header, (x, y, width, height))
    return deck.saved(slide_index)


def add_shape(
    workspace: Workspace,
    file_path: str,
    slide_index: int,
    shape_type: str,
    x: float = 1.0,
    y: float = 1.0,
    width: float = 2.0,
    height: float = 2.0,
    fill_color: str | None = None,
    line_color: str | None = None,
    line_width: float | None = None,
    text: str | None = None,
    text_color: str | None = None,
    font_size: float | None = None,
) -> str:
    """A shape, with text if wanted."""
    from pptx.enum.shapes import MSO_SHAPE
    from pptx.util import Inches, Pt

    deck = Deck(workspace, file_path)
    box = [Inches(one) for one in (x, y, width, height)]
    shape = deck.slide(slide_index).shapes.add_shape(getattr(MSO_SHAPE, SHAPES[shape_type]), *box)
    if fill_color:
        shape.fill.solid()
        shape.fill.fore_color.rgb = color_of(fill_color)
    if line_color:
        shape.line.color.rgb = color_of(line_color)
    if line_width is not None:
        shape.line.width = Pt(line_width)
    if text is not None:
        shape.text_frame.text = text
        for run in shape.text_frame.paragraphs[0].runs:
            if text_color:
                run.font.color.rgb = color_of(text_color)
            if font_size is not None:
                run.font.size = Pt(font_size)
    return deck.saved(slide_index)


def insert_chart(
    workspace: Workspace,
    presentation_path: str,
    slide_index: int,
    spreadsheet_path: str,
    sheet_name: str,
    data_range: str,
    chart_type: str = "bar",
    title: str | None = None,
    position: str = "body",
    include_header: bool = True,
) -> str:
    """A chart of a workbook's cells: categories from the first column, a series from each other one."""
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.util import Inches

    deck = Deck(workspace, presentation_path)
    slide = deck.slide(slide_index)
    rows = [list(row) for row in _cells(workspace, spreadsheet_path, sheet_name, data_range)]
    header = rows.pop(0) if include_header and rows else []
    if not rows or max(len(row) for row in rows) < 2:
        raise Refused(f"{data_range} needs a column of categories, a column of numbers and a row of data")
    names = [str(header[at]) if at < len(header) and header[at] else f"Series {at}" for at in range(len(rows[0]))]
    data = _scatter(rows, names) if chart_type == "scatter" else _categories(rows, names)
    box = [Inches(one) for one in PLACES[position]]
    chart = slide.shapes.add_chart(getattr(XL_CHART_TYPE, CHARTS[chart_type]), *box, data).chart
    chart.has_title = bool(title)
    if title:
        chart.chart_title.text_frame.text = title
    chart.has_legend = len(rows[0]) > 2 or chart_type in ("pie", "doughnut")
    return deck.saved(slide_index)


def _cells(workspace: Workspace, spreadsheet_path: str, sheet_name: str, data_range: str) -> Sequence[list[Any]]:
    from officedocs import open_document

    document = open_document(*workspace.read(spreadsheet_path))
    tabs = {tab.attributes["name"]: tab for tab in sheets_of(document)}
    if sheet_name not in tabs:
        raise Refused(f"{spreadsheet_path} has no tab {sheet_name!r}; there are {', '.join(tabs) or 'none'}")
    return grid_of(tabs[sheet_name], data_range).rows


def _number(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refused(f"{value!r} is no number; the first column holds categories, the others numbers")
    return float(value)


def _categories(rows: Sequence[list[Any]], names: Sequence[str]) -> Any:
    from pptx.chart.data import CategoryChartData

    data = CategoryChartData()
    data.categories = ["" if row[0] is None else str(row[0]) for row in rows]
    for column in range(1, len(names)):
        data.add_series(names[column], [_number(row[column]) for row in rows])
    return data


def _scatter(rows: Sequence[list[Any]], names: Sequence[str]) -> Any:
    from pptx.chart.data import XyChartData

    data = XyChartData()
    for column in range(1, len(names)):
        series = data.add_series(names[column])
        for row in rows:
            x, y = _number(row[0]), _number(row[column])
            if x is not None and y is not None:
                series.add_data_point(x, y)
    return data
