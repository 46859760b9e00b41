"""From lines to paragraphs: where one ends, and how its lines join into running text."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from .boxes import HYPHENS, Box
from .order import lines

MARK = re.compile(r"^(?:\(?\d{1,3}[.)]?|[*†‡§¶]{1,3}|[a-z]\))(?=\s|[^\W\d])")
"""What a footnote begins with."""

BULLET = re.compile(r"^(?:[•▪◦‣–—·]|\(?[a-z0-9]{1,3}[.)])\s")


class Block(NamedTuple):
    """A paragraph, or a table in its place.

    Attributes:
        x0, y0, x1, y1: edges in points.
        size: font size of most of it, in points.
        text: running text, the hyphens of line ends taken out.
        table: number of the table it stands for, 0 for a paragraph.
    """

    x0: float
    y0: float
    x1: float
    y1: float
    size: float
    text: str
    table: int = 0


def paragraphs(block: Sequence[Box], body: float, leftward: bool, compounds: Collection[str] = ()) -> list[Block]:
    """Paragraphs of one block from top to bottom.

    Args:
        block: boxes of one block, see ``order.blocks``.
        body: font size of the page's running text, in points.
        leftward: whether lines are read from right to left.
        compounds: words with a hyphen that stand inside a line somewhere; they keep it at a line end.
    """
    found, current = [], list[list[Box]]()
    set_lines = lines(block, leftward)
    pitches = [b[0].base - a[0].base for a, b in pairwise(set_lines)]
    pitch = median(pitches) if pitches else 0.0
    width = max(box.x1 for box in block) - min(box.x0 for box in block)
    for line in set_lines:
        if line[0].table:
            found += [*_joined(current, compounds), _table(line[0])]
            current = []
            continue
        if current and _begins(line, current[-1], pitch, width, body):
            found += _joined(current, compounds)
            current = []
        current.append(line)
    return [*found, *_joined(current, compounds)]


def _begins(line: list[Box], before: list[Box], pitch: float, width: float, body: float) -> bool:
    size, size_before = _size(line), _size(before)
    if abs(size - size_before) > 0.15 * max(size, size_before):
        return True
    text, text_before = line_text(line), line_text(before).rstrip()
    if text_before[-1:] in ("-", *HYPHENS) and text[:1].islower():
        return False
    if line[0].base - before[0].base > 1.35 * max(pitch, 0.5 * size):
        return True
    if BULLET.match(text) or (size < 0.95 * body and MARK.match(text) and _starts_small(line)):
        return True
    is_short = max(box.x1 for box in before) - min(box.x0 for box in before) < 0.75 * width
    return is_short and text_before.endswith((".", ":", "!", "?", "。")) and not text[:1].islower()


def _starts_small(line: list[Box]) -> bool:
    return line[0].size < 0.95 * max(box.size for box in line) or line[0].text[:1].isdigit()


def _size(line: Sequence[Box]) -> float:
    return max(line, key=lambda box: len(box.text)).size


def _table(box: Box) -> Block:
    return Block(box.x0, box.y0, box.x1, box.y1, box.size, "", box.table)


def _joined(group: list[list[Box]], compounds: Collection[str]) -> list[Block]:
    text = ""
    for line in group:
        text = join(text, line_text(line).strip(), compounds)
    text = clean(text)
    if not text:
        return []
    every = [box for line in group for box in line]
    edges = (min(b.x0 for b in every), min(b.y0 for b in every), max(b.x1 for b in every), max(b.y1 for b in every))
    return [Block(*edges, _size(every), text)]


def line_text(line: Sequence[Box]) -> str:
    """The text of one line; a gap of more than a sixth of the font size is a space."""
    text, reach = "", None
    for box in line:
        if reach is not None:
            gap = max(box.x0 - reach[1], reach[0] - box.x1)
            if gap > 0.16 * box.size and not text.endswith(" ") and not box.text.startswith(" "):
                text += " "
        text += box.text
        reach = (box.x0, box.x1)
    return text


def join(text: str, line: str, compounds: Collection[str] = ()) -> str:
    """Running text with its next line: a word that was split at the line end is made whole."""
    if not text or not line:
        return text or line
    if text[-1] in HYPHENS + "\u00ad":
        text = f"{text[:-1]}-"
    if text[-1] == "-" and text[-2:-1].isalpha() and line[:1].islower():
        first, second = re.split(r"\s", text)[-1], re.split(r"[\s,.;:]", line)[0]
        return text + line if first + second in compounds else text[:-1] + line
    return f"{text}{line}" if text.endswith(("-", "/")) and line[:1].isalnum() else f"{text} {line}"


def clean(text: str) -> str:
    """Text without control characters and with single spaces."""
    for hyphen in HYPHENS:
        text = text.replace(hyphen, "-")
    text = "".join(c for c in text if c >= " " and not "\x7f" <= c <= "\x9f")
    return " ".join(text.split())


def compounds_of(boxes: Sequence[Box]) -> set[str]:
    """Words with a hyphen inside a piece of text."""
    return {word for box in boxes if "-" in box.text for word in re.findall(r"[^\W\d]+-[^\W\d]+", box.text)}
