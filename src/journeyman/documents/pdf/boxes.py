"""Pieces of text with their place, one per text object of the page, as pdfium finds them.

Coordinates are points from the top left corner of the page as it is shown, its rotation applied. Exact character
ranges of each text object are taken, not the text inside its box, which would mix lines set close together.
"""

from __future__ import annotations

import ctypes
import math
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

MAX_CHARS_PER_PAGE = 200_000
"""Text beyond is left out with a warning; a dense newspaper page has 30,000 characters."""

HYPHENS = "\x02\ufffe"
"""What pdfium gives for a hyphen at the end of a line."""


class Box(NamedTuple):
    """A piece of text, or a table that stands for its region.

    Attributes:
        x0, y0, x1, y1: its edges, in points.
        base: baseline, in points from the top.
        size: font size, in points.
        angle: direction of reading in degrees counter-clockwise, 0 for upright text.
        text: its characters in logical order.
        table: number of the page's table that this box stands for, 0 for text.
    """

    x0: float
    y0: float
    x1: float
    y1: float
    base: float
    size: float
    angle: int
    text: str
    table: int = 0


class Sheet(NamedTuple):
    """How the page lies: size in points as shown, rotation in degrees clockwise, origin of the shown part."""

    width: float
    height: float
    rotation: int
    left: float
    bottom: float
    right: float
    top: float

    @classmethod
    def of(cls, page: Any) -> Sheet:
        """Of a ``PdfPage``."""
        left, bottom, right, top = page.get_bbox()
        return cls(page.get_width(), page.get_height(), page.get_rotation() % 360, left, bottom, right, top)

    def shown(self, x: float, y: float) -> tuple[float, float]:
        """A point of the page's own space (y upwards) as shown (y downwards)."""
        if self.rotation == 90:
            return y - self.bottom, x - self.left
        if self.rotation == 180:
            return self.right - x, y - self.bottom
        if self.rotation == 270:
            return self.top - y, self.right - x
        return x - self.left, self.top - y

    def shown_box(self, x0: float, y0: float, x1: float, y1: float) -> tuple[float, float, float, float]:
        """A rectangle as shown: left, top, right, bottom."""
        (ax, ay), (bx, by) = self.shown(x0, y0), self.shown(x1, y1)
        return min(ax, bx), min(ay, by), max(ax, bx), max(ay, by)


def boxes_of(text_page: Any, sheet: Sheet) -> tuple[list[Box], bool]:
    """The pieces of a ``PdfTextPage`` in content order, and whether some were left out."""
    calls = _calls()
    handle = ctypes.cast(text_page.raw, ctypes.c_void_p).value
    count = max(0, text_page.count_chars())
    is_cut, count = count > MAX_CHARS_PER_PAGE, min(count, MAX_CHARS_PER_PAGE)
    object_of = calls["GetTextObject"]
    owners = [object_of(handle, at) for at in range(count)]
    characters = _characters(calls, handle, count)
    boxes, start = [], 0
    for owner, run in groupby(owners):
        length = sum(1 for _ in run)
        if owner is not None:  # else a space or line end that pdfium made up
            text = "".join(characters[start : start + length])
            box = _box(calls, handle, start, length, sheet, text) if text.strip() else None
            if box is not None:
                boxes.append(box)
        start += length
    return boxes, is_cut


def _characters(calls: Any, handle: int | None, count: int) -> str | list[str]:
    """The page's characters by index: all at once when none is left out or takes two words, else one by one."""
    buffer = ctypes.create_string_buffer(2 * count + 2)
    written = calls["GetText"](handle, 0, count, buffer)
    text = buffer.raw[: 2 * max(0, written - 1)].decode("utf-16-le", "replace")
    if len(text) == count and "\ufffd" not in text:
        return text.replace("\0", " ")
    unicode_of = calls["GetUnicode"]
    return [_character(unicode_of(handle, at)) for at in range(count)]


def _character(code: int) -> str:
    return chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else ""


def _box(calls: Any, handle: int | None, start: int, count: int, sheet: Sheet, text: str) -> Box | None:
    edges = [ctypes.c_double() for _ in range(4)]
    pointers = [ctypes.byref(edge) for edge in edges]
    n_rects = calls["CountRects"](handle, start, count)
    if n_rects < 1:
        return None
    calls["GetRect"](handle, 0, *pointers)
    left, top, right, bottom = (edge.value for edge in edges)
    for at in range(1, min(n_rects, 100)):
        calls["GetRect"](handle, at, *pointers)
        left, top = min(left, edges[0].value), max(top, edges[1].value)
        right, bottom = max(right, edges[2].value), min(bottom, edges[3].value)
    matrix = _Matrix()
    calls["GetMatrix"](handle, start, ctypes.byref(matrix))
    calls["GetCharOrigin"](handle, start, pointers[0], pointers[1])
    _, base = sheet.shown(edges[0].value, edges[1].value)
    x0, y0, x1, y1 = sheet.shown_box(left, bottom, right, top)
    if not all(map(math.isfinite, (x0, y0, x1, y1, base))):
        return None
    turned = math.degrees(math.atan2(matrix.b, matrix.a)) - sheet.rotation
    angle = round(turned / 90) * 90 % 360 if abs(turned / 90 - round(turned / 90)) < 0.06 else round(turned) % 360
    size = calls["GetFontSize"](handle, start) * math.hypot(matrix.a, matrix.b)
    if not 0.5 <= size <= 500:
        size = (y1 - y0 if angle in (0, 180) else x1 - x0) or 1.0
    return Box(x0, y0, x1, y1, base, size, angle, text)


class _Matrix(ctypes.Structure):
    _fields_ = [(name, ctypes.c_float) for name in "abcdef"]  # as ctypes wants it


@lru_cache(maxsize=1)
def _calls() -> dict[str, Any]:
    """pdfium's functions with plain integers for handles: a quarter of the time of typed pointers."""
    import pypdfium2.raw as raw

    number, handle = ctypes.c_int, ctypes.c_void_p
    double = ctypes.POINTER(ctypes.c_double)
    kinds: dict[str, tuple[Any, ...]] = {
        "CountRects": (number, handle, number, number),
        "GetCharOrigin": (number, handle, number, double, double),
        "GetFontSize": (ctypes.c_double, handle, number),
        "GetMatrix": (number, handle, number, ctypes.POINTER(_Matrix)),
        "GetRect": (number, handle, number, double, double, double, double),
        "GetText": (number, handle, number, number, ctypes.c_char_p),
        "GetTextObject": (handle, handle, number),
        "GetUnicode": (ctypes.c_uint, handle, number),
    }
    return {
        name: ctypes.CFUNCTYPE(*kind)(ctypes.cast(getattr(raw, f"FPDFText_{name}"), ctypes.c_void_p).value or 0)
        for name, kind in kinds.items()
    }


def turn(box: Box, angle: int, width: float, height: float) -> Box:
    """A box as it lies when the page is turned so that text of this angle is upright; width and height of the page."""
    if angle == 90:
        x0, y0, x1, y1 = height - box.y1, box.x0, height - box.y0, box.x1
    elif angle == 180:
        x0, y0, x1, y1 = width - box.x1, height - box.y1, width - box.x0, height - box.y0
    elif angle == 270:
        x0, y0, x1, y1 = box.y0, width - box.x1, box.y1, width - box.x0
    else:
        return box
    return Box(x0, y0, x1, y1, y1, box.size, 0, box.text, box.table)
