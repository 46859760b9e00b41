"""One neutral table, printed by both renderers, so that Markdown and HTML cannot disagree with each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from journeyman.evals.score import Difference, Score
from journeyman.evals.wording import clipped, difference_interval, number, score_interval, signed
from journeyman.ladder.report.wording import compact, count

Raw = float | int | str | None


@dataclass(frozen=True)
class GridCell:
    """One cell.

    Attributes:
        text: what is read.
        raw: the number of ``report.json`` behind it, None for words.
        interval: ``[0.880, 1.000]``, empty when the cell has none.
        ends: raw ends of the interval.
        span: (low, value, high) within [0, 1], drawn as a small interval plot.
        mark: extra word that qualifies the number, e.g. ``below MDE``.
        code: identifiers and digests, set in a fixed-width face.
    """

    text: str
    raw: Raw = None
    interval: str = ""
    ends: tuple[float, float] | None = None
    span: tuple[float, float, float] | None = None
    mark: str = ""
    code: bool = False

    @property
    def plain(self) -> str:
        """The cell as one line of text."""
        return " ".join(part for part in (self.text, self.interval, self.mark) if part)


@dataclass(frozen=True)
class Grid:
    """A captioned table.

    Attributes:
        notes: footer lines.
        row_headers: how many cells at the start of a row are its headers.
        numeric: indices of columns with numbers. breaks: rows that start a new group.
    """

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[GridCell, ...], ...]
    notes: tuple[str, ...] = ()
    row_headers: int = 1
    numeric: frozenset[int] = field(default_factory=frozenset)
    breaks: frozenset[int] = field(default_factory=frozenset)

    @property
    def dense(self) -> bool:
        """True when so many columns hold intervals that they go below their numbers."""
        return sum(any(row[i].interval for row in self.rows) for i in range(len(self.heads))) > 3


def grid(
    caption: str,
    heads: Iterable[str],
    rows: Iterable[Iterable[GridCell]],
    *,
    notes: Iterable[str] = (),
    row_headers: int = 1,
    group_by: int | None = None,
) -> Grid:
    """A grid without the columns that are empty in every row; numeric columns are found from the cells.

    A change in column ``group_by`` starts a new group of rows.
    """
    given, names = [tuple(row) for row in rows], tuple(heads)
    kept = [i for i in range(len(names)) if i < row_headers or not given or any(row[i].plain for row in given)]
    settled = tuple(tuple(row[i] for i in kept) for row in given)
    numeric = frozenset(
        i for row in settled for i, cell in enumerate(row) if i >= row_headers and isinstance(cell.raw, int | float)
    )
    keys = [row[group_by].text for row in given] if group_by is not None else []
    breaks = frozenset(i for i in range(1, len(keys)) if keys[i] != keys[i - 1])
    shown = tuple(names[i] for i in kept)
    return Grid(caption, shown, settled, tuple(note for note in notes if note), row_headers, numeric, breaks)


def word(text: object, *, code: bool = False) -> GridCell:
    """A cell of words; ``None`` prints as ``n/a``."""
    return GridCell("n/a" if text is None else str(text), code=code)


def whole(value: int | None) -> GridCell:
    """A count."""
    return GridCell(count(value), value)


def real(value: float | None) -> GridCell:
    """A number of any size."""
    return GridCell(compact(value), value)


def score_cell(score: Score | None, *, draw: bool = False) -> GridCell:
    """A score with its interval; ``draw`` adds the small plot."""
    if score is None:
        return GridCell("n/a")
    ends = (score.low, score.high) if score.low is not None and score.high is not None else None
    shown = clipped(score)
    span = (shown[0], score.value, shown[1]) if draw and shown and score.value is not None else None
    interval = score_interval(score) if score.value is not None else ""
    return GridCell(number(score.value), score.value, interval, ends, span)


def difference_cell(difference: Difference | None) -> GridCell:
    """A paired difference with sign and interval."""
    if difference is None:
        return GridCell("–")
    ends = (difference.low, difference.high) if difference.low is not None and difference.high is not None else None
    interval = difference_interval(difference) if difference.value is not None else ""
    return GridCell(signed(difference.value), difference.value, interval, ends)


def p_text(p: float | None) -> str:
    """``0.003``, ``< 0.001`` or ``n/a``."""
    return "n/a" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def interval_notes(figures: Iterable[Score | Difference]) -> tuple[str, ...]:
    """Footer lines: how the intervals were made, and what the figures leave out."""
    seen = list(figures)
    methods = sorted({figure.interval for figure in seen if figure.value is not None})
    notes = [f"Intervals: {'; '.join(methods)}."] if methods else []
    scores = [figure for figure in seen if isinstance(figure, Score)]
    names = sorted({name for score in scores for name, n in score.excluded.items() if n})
    if names:
        most = {name: max(score.excluded.get(name, 0) for score in scores) for name in names}
        listed = ", ".join(f"{name.replace('_', ' ')} (at most {most[name]} in a row)" for name in names)
        notes.append(f"Left out of every denominator: {listed}.")
    return tuple(notes)
