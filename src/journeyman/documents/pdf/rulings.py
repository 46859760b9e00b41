"""Straight lines of a page, horizontal and vertical: what tables are ruled with."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from .boxes import Sheet

MAX_OBJECTS = 20_000
"""Page objects that are looked at; maps and drawings have more, tables have not."""

MAX_SEGMENTS = 400
"""Segments of one path that are looked at."""

THIN = 2.5
"""Points: a filled rectangle that is not thicker is a line."""

SHORTEST = 4.0
"""Points: shorter strokes rule nothing."""

MAX_NESTING = 4
"""Form objects inside form objects that are opened."""


class Ruling(NamedTuple):
    """A straight line: at ``at`` across its direction, from ``start`` to ``end`` along it, in points."""

    is_horizontal: bool
    at: float
    start: float
    end: float


def rulings_of(page: Any, sheet: Sheet) -> tuple[list[Ruling], list[tuple[float, float, float, float]]]:
    """The lines of a ``PdfPage``, and the boxes of its images, both as shown."""
    import pypdfium2.raw as raw

    lines: list[Ruling] = []
    images: list[tuple[float, float, float, float]] = []
    for item, matrices in _objects(page, raw):
        kind = raw.FPDFPageObj_GetType(item)
        if kind == raw.FPDF_PAGEOBJ_IMAGE:
            box = _bounds(item, raw)
            if box:
                images.append(sheet.shown_box(*_moved_box(box, matrices)))
        elif kind == raw.FPDF_PAGEOBJ_PATH:
            for (ax, ay), (bx, by) in _strokes(item, raw):
                a, b = sheet.shown(*_moved(ax, ay, matrices)), sheet.shown(*_moved(bx, by, matrices))
                line = _ruling(a, b)
                if line:
                    lines.append(line)
    return lines, images


def turn_ruling(line: Ruling, angle: int, width: float, height: float) -> Ruling:
    """A line as it lies when the page is turned so that text of this angle is upright, see ``boxes.turn``."""
    across, along = (width, height) if line.is_horizontal else (height, width)
    flipped = Ruling(line.is_horizontal, along - line.at, across - line.end, across - line.start)
    if angle == 180:
        return flipped
    if angle == 90:  # x' = height - y, y' = x
        source = (
            (along - line.at, line.start, line.end)
            if line.is_horizontal
            else (line.at, across - line.end, across - line.start)
        )
        return Ruling(not line.is_horizontal, *source)
    if angle == 270:  # x' = y, y' = width - x
        source = (
            (line.at, across - line.end, across - line.start)
            if line.is_horizontal
            else (along - line.at, line.start, line.end)
        )
        return Ruling(not line.is_horizontal, *source)
    return line


def _objects(page: Any, raw: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Objects with the matrices of the form objects around them, innermost first."""
    left = MAX_OBJECTS
    stack: list[tuple[int, Callable[[int], Any], list[Any]]] = [
        (raw.FPDFPage_CountObjects(page), partial(raw.FPDFPage_GetObject, page), [])
    ]
    while stack:
        count, get, matrices = stack.pop()
        for at in range(min(count, left)):
            left -= 1
            item = get(at)
            if not item:
                continue
            if raw.FPDFPageObj_GetType(item) == raw.FPDF_PAGEOBJ_FORM:
                if len(matrices) < MAX_NESTING:
                    inner = [_matrix(item, raw), *matrices]
                    stack.append((raw.FPDFFormObj_CountObjects(item), partial(raw.FPDFFormObj_GetObject, item), inner))
                continue
            yield item, matrices


def _matrix(item: Any, raw: Any) -> Any:
    matrix = raw.FS_MATRIX(1, 0, 0, 1, 0, 0)
    raw.FPDFPageObj_GetMatrix(item, matrix)
    return matrix


def _moved(x: float, y: float, matrices: list[Any]) -> tuple[float, float]:
    for m in matrices:
        x, y = m.a * x + m.c * y + m.e, m.b * x + m.d * y + m.f
    return x, y


def _moved_box(box: tuple[float, float, float, float], matrices: list[Any]) -> tuple[float, float, float, float]:
    corners = [_moved(x, y, matrices) for x in (box[0], box[2]) for y in (box[1], box[3])]
    xs, ys = [x for x, _ in corners], [y for _, y in corners]
    return min(xs), min(ys), max(xs), max(ys)


def _bounds(item: Any, raw: Any) -> tuple[float, float, float, float] | None:
    edges = [ctypes.c_float() for _ in range(4)]
    if not raw.FPDFPageObj_GetBounds(item, *edges):
        return None
    left, bottom, right, top = (edge.value for edge in edges)
    return left, bottom, right, top


def _strokes(item: Any, raw: Any) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Straight pieces of a path: its segments, or the middle of a thin filled rectangle."""
    count = raw.FPDFPath_CountSegments(item)
    if count < 2 or count > MAX_SEGMENTS:
        return
    box = _bounds(item, raw)
    if box and 4 <= count <= 6:
        left, bottom, right, top = box
        if top - bottom <= THIN < right - left:
            yield (left, (top + bottom) / 2), (right, (top + bottom) / 2)
            return
        if right - left <= THIN < top - bottom:
            yield ((left + right) / 2, bottom), ((left + right) / 2, top)
            return
    matrix = _matrix(item, raw)
    x, y = ctypes.c_float(), ctypes.c_float()
    start = before = (0.0, 0.0)
    for at in range(count):
        segment = raw.FPDFPath_GetPathSegment(item, at)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point = _moved(x.value, y.value, [matrix])
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            start = point
        elif kind == raw.FPDF_SEGMENT_LINETO:
            yield before, point
        if raw.FPDFPathSegment_GetClose(segment):
            yield point, start
        before = point


def _ruling(a: tuple[float, float], b: tuple[float, float]) -> Ruling | None:
    across, down = abs(a[0] - b[0]), abs(a[1] - b[1])
    if down <= 1 and across >= SHORTEST:
        return Ruling(True, (a[1] + b[1]) / 2, min(a[0], b[0]), max(a[0], b[0]))
    if across <= 1 and down >= SHORTEST:
        return Ruling(False, (a[0] + b[0]) / 2, min(a[1], b[1]), max(a[1], b[1]))
    return None
