"""Lines from blocks: which words go on which line of which page. Knows fonts by their widths, and no PDF.

Paragraphs that state facts are kept on one page, so that a fact has one page. Tables break between rows and repeat
their header rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from journeyman.worlds.content import Block, Heading, PageBreak, Paragraph, Prose, Scan, Table, unmarked
from journeyman.worlds.render.places import Places, Style

PAGES = {"A4": (595.0, 842.0), "Letter": (612.0, 792.0)}
FONTS = {"Helvetica": ("Helvetica", "Helvetica-Bold"), "Times": ("Times-Roman", "Times-Bold"),
         "Courier": ("Courier", "Courier-Bold")}  # fmt: skip
HEADING_SIZE = {0: 1.9, 1: 1.3, 2: 1.1, 3: 1.0}
GUTTER = 22.0
PADDING = 3.5


@dataclass
class Grid:
    """A ruled table on one page: edges from left to right and from top to bottom."""

    xs: list[float]
    ys: list[float]


@dataclass
class Page:
    """What is drawn on a page: (x, baseline, text, font, size), grids, lines of an image if it is one."""

    runs: list[tuple[float, float, str, str, float]] = field(default_factory=list)
    grids: list[Grid] = field(default_factory=list)
    image: tuple[str, ...] = ()


@lru_cache(maxsize=100_000)
def width_of(word: str, font: str) -> float:
    """Width of a word at size 1."""
    from reportlab.pdfbase.pdfmetrics import stringWidth

    return float(stringWidth(word, font, 1))


def wrapped(text: str, font: str, size: float, width: float) -> list[str]:
    """A text in lines no wider than ``width``; a word that is wider stands alone."""
    lines: list[str] = []
    line: list[str] = []
    used = 0.0
    space = width_of(" ", font) * size
    for word in text.split():
        extent = width_of(word, font) * size
        if line and used + space + extent > width:
            lines.append(" ".join(line))
            line, used = [], 0.0
        used += extent + (space if line else 0.0)
        line.append(word)
    return [*lines, " ".join(line)] if line else lines or [""]


class Setter:
    """Sets a document; ``pages`` holds the result."""

    def __init__(self, prose: Prose, style: Style, places: Places) -> None:
        self.prose, self.style, self.places = prose, style, places
        self.width, self.height = PAGES[style.page]
        self.regular, self.bold = FONTS[style.font]
        columns = 2 if prose.setter in ("rows", "columns") else 1
        self.column_width = (self.width - 2 * style.margin - GUTTER * (columns - 1)) / columns
        self.columns, self.column = columns, 0
        self.pages: list[Page] = []
        self.y = 0.0
        self.leading = style.size * 1.32
        self.number = [0, 0]
        self.notes: list[str] = []
        self._next_page()
        for block in prose.blocks:
            self._block(block)

    def _next_page(self) -> None:
        self.column = 0
        self.pages.append(Page())
        self.y = self.height - self.style.margin - 8
        self._running()

    def _running(self) -> None:
        small, page = self.style.size * 0.8, len(self.pages)
        runs = self.pages[-1].runs
        if self.prose.header:
            runs.append(
                (self.style.margin, self.height - self.style.margin * 0.6, self.prose.header, self.regular, small)
            )
        foot = f"{self.prose.footer}   {page}" if self.prose.footer else str(page)
        runs.append((self.style.margin, self.style.margin * 0.5, foot, self.regular, small))

    def _advance(self, needed: float) -> None:
        if self.y - needed >= self.style.margin:
            return
        if self.column + 1 < self.columns:
            self.column += 1
            self.y = self.height - self.style.margin - 8
        else:
            self._next_page()

    @property
    def left(self) -> float:
        """Left edge of the column."""
        return self.style.margin + self.column * (self.column_width + GUTTER)

    def _block(self, block: Block) -> None:
        match block:
            case Heading():
                self._heading(block)
            case Paragraph():
                self._paragraph(block)
            case Table():
                self._table(block)
            case Scan():
                self._scan(block)
            case PageBreak():
                self._next_page()

    def _heading(self, block: Heading) -> None:
        size = self.style.size * HEADING_SIZE[block.level]
        text = block.text
        if block.level in (1, 2) and self.style.heading == "numbered" and not text[:1].isdigit():
            self.number = [self.number[0] + (block.level == 1), 0 if block.level == 1 else self.number[1] + 1]
            text = f"{'.'.join(str(n) for n in self.number[: block.level])} {text}"
        elif block.level <= 1 and self.style.heading == "caps":
            plain, marks = unmarked(text)
            text = text if marks else plain.upper()
        self._advance(size * 1.4 + 4 * self.leading)
        self.y -= size * 0.5
        self._lines(text, self.bold, size, 0.0)
        self.y -= size * 0.3

    def _paragraph(self, block: Paragraph) -> None:
        size = self.style.size * (0.85 if block.style == "small" else 1)
        indent = {"bullet": 12.0, "quote": 24.0}.get(block.style, 0.0)
        lead = "\u2022 " if block.style == "bullet" else ""
        self._lines(lead + block.text, self.regular, size, indent)
        for number, note in enumerate(block.notes, start=1):
            self._lines(f"({number}) {note}", self.regular, self.style.size * 0.82, 10.0)
        self.y -= self.leading * 0.45

    def _lines(self, text: str, font: str, size: float, indent: float) -> None:
        plain, pairs = unmarked(text)
        lines = wrapped(plain, font, size, self.column_width - indent)
        leading = size * 1.32
        self._advance(leading * (len(lines) if pairs or len(lines) < 4 else 2))
        for line in lines:
            self._advance(leading)
            self.y -= leading
            self.pages[-1].runs.append((self.left + indent, self.y, line, font, size))
        self.places.take(text, f"p{len(self.pages)}")

    def _table(self, block: Table) -> None:
        size = self.style.size * 0.9
        plain = [[unmarked(cell)[0] for cell in row] for row in block.rows]
        widths = self._column_widths(plain, block.widths, size)
        if block.caption:
            self._advance(7 * self.leading)
            self._lines(block.caption, self.bold, size, 0.0)
            self.y -= 3
        texts = [[wrapped(cell, self.regular, size, w - 2 * PADDING) for cell, w in zip(row, widths, strict=True)]
                 for row in plain]  # fmt: skip
        heights = [max(map(len, row)) * size * 1.25 + 2 * PADDING for row in texts]
        head = range(block.header_rows)
        self._advance(sum(heights[: block.header_rows + 2]))
        grid, count = self._open_grid(widths), 0
        for index, height in enumerate(heights):
            if self.y - height < self.style.margin and index >= block.header_rows:
                self._next_page()
                grid, count = self._open_grid(widths), 0
                for again in head:
                    count = self._row(block, again, texts[again], heights[again], widths, size, grid, count, True)
            count = self._row(block, index, texts[index], height, widths, size, grid, count, False)
        self.y -= self.leading * 0.8

    def _open_grid(self, widths: list[float]) -> Grid:
        xs = [self.left]
        for width in widths:
            xs.append(xs[-1] + width)
        grid = Grid(xs, [self.y])
        self.pages[-1].grids.append(grid)
        return grid

    def _row(
        self, block: Table, index: int, texts: list[list[str]], height: float, widths: list[float], size: float,
        grid: Grid, count: int, is_repeated: bool,
    ) -> int:  # fmt: skip
        page = self.pages[-1]
        font = self.bold if index < block.header_rows else self.regular
        for column, lines in enumerate(texts):
            x, y = grid.xs[column] + PADDING, self.y - PADDING
            for line in lines:
                y -= size * 1.1
                room = widths[column] - 2 * PADDING - width_of(line, font) * size
                shift = max(0.0, room) if index >= block.header_rows and is_figure(line) and column else 0.0
                page.runs.append((x + shift, y, line, font, size))
                y -= size * 0.15
            if not is_repeated:
                address = f"p{len(self.pages)}/t{len(page.grids)}/r{count + 1}c{column + 1}"
                self.places.take(block.rows[index][column], address)
        self.y -= height
        grid.ys.append(self.y)
        return count + 1

    def _column_widths(self, rows: list[list[str]], shares: tuple[float, ...], size: float) -> list[float]:
        if shares:
            return [self.column_width * share / sum(shares) for share in shares]
        natural = [
            min(220.0, max(self._natural(row[column], size) for row in rows) + 2 * PADDING + 2)
            for column in range(len(rows[0]))
        ]
        total = sum(natural)
        return natural if total <= self.column_width else [w * self.column_width / total for w in natural]

    def _natural(self, text: str, size: float) -> float:
        return sum(width_of(word, self.bold) + width_of(" ", self.bold) for word in text.split()) * size

    def _scan(self, block: Scan) -> None:
        if self.pages[-1].runs[2:] or self.pages[-1].image:
            self._next_page()
        page = self.pages[-1]
        page.runs.clear()
        page.image = tuple(self.places.take(line, f"p{len(self.pages)}") for line in block.lines)
        self._next_page()


def is_figure(text: str) -> bool:
    """Whether a table sets this to the right."""
    return bool(text) and text.strip("()%x-").replace(".", "").replace(",", "").replace(" ", "").isdigit()
