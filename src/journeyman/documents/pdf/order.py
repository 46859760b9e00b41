"""Reading order by recursive XY-cut: columns are found as white gutters, whatever order the file was written in.

Every visual row mode mixes columns, and the order in the file is right only when its producer wrote column by column.
A title over both columns blocks their gutter; the horizontal cut below it frees the gutter one level down.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from unicodedata import bidirectional

from .boxes import Box

GUTTER = 8.0
"""Points of white between columns; narrower ones are spaces between words of justified text."""

NARROW_GUTTER = 4.0
"""Points of white between columns that are set close, when both are so long and so even that it is no chance."""

MIN_LINES_BESIDE_NARROW = 10
"""Lines that must stand on each side of a narrow gutter, most of those to its right beginning at its edge."""

MIN_BOXES_BESIDE = 6
"""Boxes that must lie wholly on each side of a gutter: fewer are a label with its value."""

CELL_CHARACTERS = 25
"""Characters per line below which a side of a gutter holds cells; a column of prose has more."""

GAP = 10.0
"""Points of white between blocks one above the other."""

GAP_IN_HEIGHTS = 1.2
"""The same in heights of a line, for text set with wide leading."""

TITLE_LINES, TITLE_DEPTH = 3, 3
"""Lines on top of columns that may block their gutter with less white below them than between blocks, and the depth of
cuts down to which they are looked for: titles stand on a page, not inside of a column."""

MAX_DEPTH = 60

SAME_LINE = 3.0
"""Points between baselines of one line."""


def blocks(boxes: Sequence[Box]) -> list[list[Box]]:
    """Groups of boxes in reading order; each group is one block of one column."""
    if not boxes:
        return []
    heights = [box.size for box in boxes if not box.table]
    gap = max(GAP, GAP_IN_HEIGHTS * median(heights)) if heights else GAP
    found: list[list[Box]] = []
    _cut(list(boxes), gap, reads_leftward(boxes), 0, found)
    return found


def _cut(boxes: list[Box], gap: float, leftward: bool, depth: int, found: list[list[Box]]) -> None:
    if depth < MAX_DEPTH and len(boxes) > 1:
        at = _gutter(boxes)
        if at is not None:
            left = [box for box in boxes if box.x1 <= at]
            right = [box for box in boxes if box.x1 > at]
            for side in (right, left) if leftward else (left, right):
                _cut(side, gap, leftward, depth + 1, found)
            return
        at = _below_title(boxes) if depth < TITLE_DEPTH else None
        if at is None:
            at = _widest([(box.y0, box.y1) for box in boxes], gap)
        if at is not None:
            _cut([box for box in boxes if box.y1 <= at], gap, leftward, depth + 1, found)
            _cut([box for box in boxes if box.y1 > at], gap, leftward, depth + 1, found)
            return
    found.append(boxes)


def _gutter(boxes: list[Box]) -> float | None:
    if len(boxes) < 2 * MIN_BOXES_BESIDE:
        return None
    for at in _gaps([(box.x0, box.x1) for box in boxes], GUTTER):
        left = sum(box.x1 <= at for box in boxes)
        if left >= MIN_BOXES_BESIDE and len(boxes) - left >= MIN_BOXES_BESIDE and not _is_table(boxes, at):
            return at
    for at in _gaps([(box.x0, box.x1) for box in boxes], NARROW_GUTTER):
        if _is_even(boxes, at) and not _is_table(boxes, at):
            return at
    return None


def _below_title(boxes: list[Box]) -> float | None:
    """Lower edge of the first lines when the gutter of two columns begins right below them."""
    if len(boxes) <= 2 * MIN_BOXES_BESIDE:
        return None
    rows = sorted({box.y1 for box in boxes})[:TITLE_LINES]
    for edge in rows:
        below = [box for box in boxes if box.y1 > edge]
        if min((box.y0 for box in below), default=edge) >= edge and _gutter(below) is not None:
            return edge
    return None


def _is_even(boxes: list[Box], at: float) -> bool:
    """Whether two long columns meet at ``at``, the right one flush with the gap."""
    left = {round(box.base) for box in boxes if box.x1 <= at}
    starts: dict[int, float] = {}
    for box in boxes:
        if box.x1 > at:
            starts[round(box.base)] = min(box.x0, starts.get(round(box.base), box.x0))
    if min(len(left), len(starts)) < MIN_LINES_BESIDE_NARROW:
        return False
    edge = min(starts.values())
    return sum(start - edge <= 1.5 for start in starts.values()) >= 0.7 * len(starts)


def _is_table(boxes: list[Box], at: float) -> bool:
    """Whether the sides are columns of one unruled table: lines pair off and hold words or numbers, not prose."""
    left = [box for box in boxes if box.x1 <= at and not box.table]
    right = [box for box in boxes if box.x1 > at and not box.table]
    if not left or not right:
        return False
    lines = {round(box.base) for box in left}
    paired = sum(bool({round(box.base) + shift for shift in (-1, 0, 1)} & lines) for box in right)
    if paired < 0.8 * len(right):
        return False
    return any(
        sum(len(box.text) for box in side) < CELL_CHARACTERS * len({round(box.base) for box in side})
        for side in (left, right)
    )


def _widest(spans: list[tuple[float, float]], least: float) -> float | None:
    return next(iter(_gaps(spans, least)), None)


def _gaps(spans: list[tuple[float, float]], least: float) -> list[float]:
    """Ends of the stretches before white gaps of at least ``least``, the widest gap first."""
    gaps, reach = [], None
    for start, end in sorted(spans):
        if reach is not None and start - reach >= least:
            gaps.append((start - reach, reach))
        reach = end if reach is None else max(reach, end)
    return [at for _, at in sorted(gaps, key=lambda one: (-one[0], one[1]))]


def lines(block: Sequence[Box], leftward: bool = False) -> list[list[Box]]:
    """Lines of a block from top to bottom, the boxes of each in the direction of reading."""
    found: list[list[Box]] = []
    tall: Box | None = None
    for box in sorted(block, key=lambda one: (one.base, one.x0)):
        if tall is not None and _is_of_line(box, found[-1][0], tall):
            found[-1].append(box)
            tall = max(tall, box, key=lambda one: one.size)
        else:
            found.append([box])
            tall = box
    return [sorted(line, key=lambda one: -one.x1 if leftward else one.x0) for line in _with_raised(found)]


def _is_of_line(box: Box, first: Box, tall: Box) -> bool:
    """Whether a box shares the baseline of a line, or is an index a little below its tallest piece."""
    if box.table or tall.table:
        return False
    return box.base - first.base <= SAME_LINE or (box.size < 0.8 * tall.size and box.base - tall.base < 0.4 * tall.size)


def _with_raised(found: list[list[Box]]) -> list[list[Box]]:
    """Join lines that hold only raised pieces, such as marks of footnotes, with the line below that they belong to."""
    joined: list[list[Box]] = []
    for line in found:
        above = joined[-1] if joined else None
        if above and not above[0].table and not line[0].table:
            size = max(box.size for box in line)
            small = all(box.size < 0.8 * size and line[0].base - box.base < 0.6 * size for box in above)
            if small and any(
                abs(box.x0 - one.x1) < size or abs(one.x0 - box.x1) < size for box in above for one in line
            ):
                joined[-1] = above + line
                continue
        joined.append(line)
    return joined


def reads_leftward(boxes: Sequence[Box]) -> bool:
    """Whether most letters belong to scripts that are read from right to left."""
    balance = 0
    for box in boxes:
        if box.text.isascii():
            balance -= sum(map(str.isalpha, box.text))
            continue
        for character in box.text:
            direction = bidirectional(character)
            balance += (direction in ("R", "AL")) - (direction == "L")
    return balance > 0
