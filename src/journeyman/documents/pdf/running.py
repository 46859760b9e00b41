"""What repeats from page to page, and what stands below the text: headers, footers, footnotes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median

from .paragraphs import MARK, Block

EDGE = 0.12
"""Share of the page's height, from the top or the bottom, in which running titles stand."""

MIN_PAGES = 3
"""Pages that must share a line before it counts as running; in a file of two pages, both must."""

SMALL = 0.93
"""Share of the body's font size below which a marked line at the bottom is a footnote."""


def kinds(pages: Sequence[Sequence[Block]], heights: Sequence[float]) -> list[list[str]]:
    """For each page the kind of each block: ``paragraph``, ``header``, ``footer``, ``footnote`` or ``table``.

    Args:
        pages: blocks of each page in reading order.
        heights: of the pages, in points.
    """
    seen: dict[str, Counter[str]] = {"header": Counter(), "footer": Counter()}
    for blocks, height in zip(pages, heights, strict=True):
        for edge, pattern in {(edge, pattern_of(block)) for block in blocks if (edge := _edge(block, height))}:
            seen[edge][pattern] += 1
    least = min(MIN_PAGES, max(2, len(pages)))
    found = []
    for blocks, height in zip(pages, heights, strict=True):
        body = body_size(blocks)
        row = []
        for block in blocks:
            edge = _edge(block, height)
            if block.table:
                row.append("table")
            elif edge and seen[edge][pattern_of(block)] >= least:
                row.append(edge)
            elif block.size < SMALL * body and block.y0 > 0.6 * height and MARK.match(block.text):
                row.append("footnote")
            else:
                row.append("paragraph")
        found.append(row)
    return found


def body_size(blocks: Sequence[Block]) -> float:
    """Font size of the running text: the one that most characters have."""
    count: defaultdict[float, int] = defaultdict(int)
    for block in blocks:
        count[round(block.size, 1)] += len(block.text)
    return (
        max(count, key=lambda size: (count[size], size)) if count else median([block.size for block in blocks] or [0])
    )


def pattern_of(block: Block) -> str:
    """The text with its numbers made equal, so that page numbers do not hide a running line."""
    return re.sub(r"\d+|\b[ivxlc]+\b", "#", block.text.lower())


def _edge(block: Block, height: float) -> str:
    if block.table or len(block.text) > 300:
        return ""
    if block.y1 <= EDGE * height:
        return "header"
    return "footer" if block.y0 >= (1 - EDGE) * height else ""
