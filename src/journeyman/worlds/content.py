"""What a document says, before any format: blocks of prose, sheets of cells, slides. Renderers turn them into bytes.

A stated fact is marked in the text, ``mark("bid:B3:price", "EUR 61.5m")``; a renderer takes the marks out, and records
for each where its surface form came to lie.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

OPEN, BAR, CLOSE = "\u27e6", "\u00a6", "\u27e7"
_MARK = re.compile(f"{OPEN}([^{BAR}{CLOSE}]*){BAR}([^{CLOSE}]*){CLOSE}")


def mark(fact_id: str, surface: str) -> str:
    """Text that states a fact; it reads as ``surface`` in the file."""
    return f"{OPEN}{fact_id}{BAR}{surface}{CLOSE}"


def unmarked(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The text as readers see it, and the (fact, surface) pairs it states, in order."""
    if OPEN not in text:
        return text, []
    return _MARK.sub(r"\2", text), _MARK.findall(text)


@dataclass(frozen=True)
class Revision:
    """A tracked change: ``new`` stands in the paragraph's text, ``old`` stood there before. Either may be empty."""

    old: str
    new: str
    author: str
    date: str


@dataclass(frozen=True)
class Heading:
    """A heading; level 0 is the title of the document."""

    text: str
    level: int = 1


@dataclass(frozen=True)
class Paragraph:
    """A paragraph. ``notes`` are footnotes, marked in order at its end; ``style`` is body, bullet, quote or small."""

    text: str
    style: str = "body"
    notes: tuple[str, ...] = ()
    revisions: tuple[Revision, ...] = ()
    comment: tuple[str, str] | None = None


@dataclass(frozen=True)
class Table:
    """Rows of texts. The first ``header_rows`` repeat on every page; numbers are set to the right."""

    rows: tuple[tuple[str, ...], ...]
    header_rows: int = 1
    caption: str = ""
    widths: tuple[float, ...] = ()


@dataclass(frozen=True)
class PageBreak:
    """The next block begins a page."""


@dataclass(frozen=True)
class Scan:
    """A page that is an image: its lines can be seen but not selected."""

    lines: tuple[str, ...]


Block = Heading | Paragraph | Table | PageBreak | Scan


@dataclass(frozen=True)
class Prose:
    """A text document.

    Attributes:
        blocks: in order.
        title: for its properties.
        header, footer: on every page.
        setter: who lays it out as PDF: ``plain``, ``columns`` (two of them), ``typst`` (two, with true footnotes),
            ``rows`` (the hostile variant: the stream runs across both columns line by line).
    """

    blocks: tuple[Block, ...]
    title: str
    header: str = ""
    footer: str = ""
    setter: str = "plain"

    def with_blocks(self, blocks: Sequence[Block]) -> Prose:
        """The same document with other blocks."""
        return replace(self, blocks=tuple(blocks))


@dataclass(frozen=True)
class Cell:
    """A cell. With ``formula`` (``=A1+B1``), ``value`` is what it comes to. ``fact`` is what the cell states."""

    value: str | int | float | bool | None
    formula: str = ""
    style: str = ""
    fact: str = ""


@dataclass(frozen=True)
class Chart:
    """A native chart over ranges of its own sheet: kind ``column``, ``line``, ``bar`` or ``pie``."""

    kind: str
    title: str
    categories: str
    values: tuple[tuple[str, str], ...]
    anchor: str


@dataclass(frozen=True)
class Sheet:
    """One sheet; cells by (row, column) from 0. ``hidden_rows`` and ``hidden_columns`` are indices from 0."""

    name: str
    cells: dict[tuple[int, int], Cell] = field(default_factory=dict)
    widths: tuple[float, ...] = ()
    is_hidden: bool = False
    hidden_rows: tuple[int, ...] = ()
    hidden_columns: tuple[int, ...] = ()
    charts: tuple[Chart, ...] = ()
    comments: dict[tuple[int, int], str] = field(default_factory=dict)
    filter_range: str = ""


@dataclass(frozen=True)
class Book:
    """A workbook. ``names`` maps defined names to references; ``is_1904`` counts days from 1904."""

    sheets: tuple[Sheet, ...]
    title: str
    names: dict[str, str] = field(default_factory=dict)
    is_1904: bool = False


@dataclass(frozen=True)
class SlideChart:
    """A native chart on a slide: categories and named series of numbers."""

    kind: str
    title: str
    categories: tuple[str, ...]
    series: tuple[tuple[str, tuple[float, ...]], ...]
    facts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Slide:
    """A slide: title, bullets, at most one table and one chart, a line that names the source, speaker's notes."""

    title: str
    bullets: tuple[str, ...] = ()
    table: Table | None = None
    chart: SlideChart | None = None
    source: str = ""
    notes: str = ""


@dataclass(frozen=True)
class Deck:
    """A presentation."""

    slides: tuple[Slide, ...]
    title: str


@dataclass(frozen=True)
class Delimited:
    """Rows of a CSV file; marked texts are taken out as everywhere."""

    rows: tuple[tuple[str, ...], ...]
    delimiter: str = ","
    encoding: str = "utf-8"


@dataclass(frozen=True)
class Text:
    """A plain text file: source code, a transcript, notes."""

    text: str


@dataclass(frozen=True)
class Mail:
    """A mail. ``attachments`` are paths of documents of the same world."""

    message_id: str
    sent: datetime
    sender: str
    to: tuple[str, ...]
    subject: str
    body: str
    cc: tuple[str, ...] = ()
    in_reply_to: str = ""
    attachments: tuple[str, ...] = ()
    owner: str = ""


@dataclass(frozen=True)
class Message:
    """A chat message. ``ts`` is unique in its channel; ``thread_ts`` that of the message it answers."""

    channel: str
    ts: str
    user: str
    text: str
    thread_ts: str = ""


@dataclass(frozen=True)
class Meeting:
    """A calendar item."""

    uid: str
    start: datetime
    minutes: int
    summary: str
    description: str
    organizer: str
    attendees: tuple[str, ...]
    location: str = ""


Content = Prose | Book | Deck | Delimited | Text | Mail
