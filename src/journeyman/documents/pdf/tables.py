"""Tables of a page as nodes: ruled ones from their grid, those without vertical lines by pdfplumber on their region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..node import Node
from .boxes import Box, Sheet
from .grids import NEAR, Grid, grids_of
from .order import lines
from .paragraphs import clean, join, line_text
from .rulings import Ruling

OPEN_REGIONS_PER_DOCUMENT = 12
"""Regions without vertical lines that are given to pdfplumber, which takes about 0.1 s for a page.

A count and not a clock, so that the same bytes give the same tree on every machine; the clock is the child's deadline.
"""


class Table(NamedTuple):
    """A table with its place.

    Attributes:
        box: left, top, right, bottom in points.
        rows: text of each cell; None where a merged cell covers the place.
        spans: row and column -> rows and columns spanned, where more than one.
        ruling: ``grid`` or ``open``.
    """

    box: tuple[float, float, float, float]
    rows: list[list[str | None]]
    spans: dict[tuple[int, int], tuple[int, int]]
    ruling: str

    def node(self, address: str) -> Node:
        """``address/r1c1`` is the first cell."""
        rows = []
        for row, texts in enumerate(self.rows):
            cells = []
            for column, text in enumerate(texts):
                if text is None:
                    continue
                down, across = self.spans.get((row, column), (1, 1))
                spans = {"rows": down, "columns": across} if (down, across) != (1, 1) else {}
                cells.append(Node("cell", f"{address}/r{row + 1}c{column + 1}", text, spans))
            rows.append(Node("row", f"{address}/r{row + 1}", children=tuple(cells)))
        box = [round(edge, 1) for edge in self.box]
        return Node("table", address, attributes={"box": box, "ruling": self.ruling}, children=tuple(rows))


def tables_of(
    boxes: Sequence[Box], rulings: Sequence[Ruling], sheet: Sheet
) -> tuple[list[Table], list[Box], list[tuple[float, float, float, float]]]:
    """Ruled tables, the boxes outside them, and regions that pdfplumber must look at.

    Args:
        boxes: text of the page, upright.
        rulings: its lines.
        sheet: the page.
    """
    grids, regions = grids_of(rulings)
    tables, rest = [], list(boxes)
    for grid in grids:
        inside = [box for box in rest if _is_inside(box, grid.box)]
        table = _table(grid, inside, sheet)
        if table:
            tables.append(table)
            taken = set(map(id, inside))
            rest = [box for box in rest if id(box) not in taken]
    filled = [region for region in regions if _looks_like_table(region, rest)]
    return tables, rest, filled


def _is_inside(box: Box, region: tuple[float, float, float, float]) -> bool:
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return region[0] - NEAR <= x <= region[2] + NEAR and region[1] - NEAR <= y <= region[3] + NEAR


def _table(grid: Grid, inside: list[Box], sheet: Sheet) -> Table | None:
    """None when the grid is a frame around running text: one cell holds nearly everything and is as wide as a page."""
    n_rows, n_columns = len(grid.ys) - 1, len(grid.xs) - 1
    places: dict[tuple[int, int], list[Box]] = {}
    owner = {
        (row + r, column + c): (row, column)
        for row, column, down, across in grid.cells
        for r in range(down)
        for c in range(across)
    }
    for box in inside:
        row = _interval(grid.ys, (box.y0 + box.y1) / 2)
        column = _interval(grid.xs, (box.x0 + min(box.x1, box.x0 + 2 * box.size)) / 2)
        places.setdefault(owner.get((row, column), (row, column)), []).append(box)
    if len(places) < 2:
        return None
    letters = {place: sum(len(box.text) for box in group) for place, group in places.items()}
    is_frame = max(letters.values()) > 600 and max(letters.values()) > 0.8 * sum(letters.values())
    if is_frame and grid.box[2] - grid.box[0] > 0.6 * sheet.width:
        return None
    rows: list[list[str | None]] = [[None] * n_columns for _ in range(n_rows)]
    spans = {}
    for row, column, down, across in grid.cells:
        rows[row][column] = cell_text(places.get((row, column), []))
        if (down, across) != (1, 1):
            spans[row, column] = (down, across)
    return Table(grid.box, rows, spans, "grid")


def _interval(edges: Sequence[float], at: float) -> int:
    return max(0, min(len(edges) - 2, sum(edge <= at for edge in edges) - 1))


def cell_text(boxes: Sequence[Box]) -> str:
    """Text of a cell: its lines joined as running text."""
    text = ""
    for line in lines(boxes):
        text = join(text, line_text(line).strip())
    return clean(text)


def _looks_like_table(region: tuple[float, float, float, float], boxes: Sequence[Box]) -> bool:
    inside = [box for box in boxes if _is_inside(box, region)]
    rows: dict[int, int] = {}
    for box in inside:
        rows[round(box.base)] = rows.get(round(box.base), 0) + 1
    several = sum(count > 1 for count in rows.values())
    return len(rows) >= 2 and several >= 0.6 * len(rows)


def open_tables(
    data: bytes, regions: Sequence[tuple[int, tuple[float, float, float, float]]]
) -> dict[tuple[int, tuple[float, float, float, float]], Table]:
    """Tables in regions without vertical lines: page index and box -> table; what cannot be read is left out."""
    from io import BytesIO

    import pdfplumber

    settings = {"vertical_strategy": "text", "horizontal_strategy": "text"}
    found = {}
    try:
        with pdfplumber.open(BytesIO(data)) as document:
            for index, region in regions:
                page = document.pages[index]
                edges = (region[0] - 1, region[1] - 1, region[2] + 1, region[3] + 1)
                left, top, right, bottom = page.bbox
                edges = (max(left, edges[0]), max(top, edges[1]), min(right, edges[2]), min(bottom, edges[3]))
                lines_found = page.crop(edges).extract_table(settings)
                texts = [[clean(cell or "") for cell in row] for row in lines_found or []]
                kept = [row for row in texts if any(row)]
                if len(kept) >= 2 and len(kept[0]) >= 2:
                    found[index, region] = Table(region, [list(row) for row in kept], {}, "open")
    except Exception:  # pdfminer raises its own zoo, and the text is there without the table
        return found
    return found
