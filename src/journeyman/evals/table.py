"""Tables of scores: one column, one kind. A second kind in a column is refused, not printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from journeyman.evals.score import Score
from journeyman.evals.wording import score_text


class MixedKinds(ValueError):
    """A score of another kind stands in a column of ``kind``."""

    def __init__(self, column: str, kind: str | None, found: str) -> None:
        self.column, self.kind, self.found = column, kind, found
        super().__init__(f'score_kind: {found} in column "{column}", which holds {kind or "no scores"}')


class KindsApart(ValueError):
    """A table shows only one of ``mean_reward`` and ``pass@1``."""


@dataclass(frozen=True)
class ScoreColumn:
    """A column and the one kind it holds."""

    name: str
    kind: str


def check_column(name: str, kind: str | None, scores: Iterable[Score]) -> None:
    """Refuse a column with a score of another kind.

    Raises:
        MixedKinds: names the column, its kind and the first kind that does not fit.
    """
    for score in scores:
        if score.kind != kind:
            raise MixedKinds(name, kind, score.kind)


def check_pair(kinds: Iterable[str | None]) -> None:
    """Refuse a set of columns that shows only one of ``mean_reward`` and ``pass@1`` (KindsApart)."""
    shown = set(kinds)
    if ("mean_reward" in shown) != ("pass@1" in shown):
        raise KindsApart("mean_reward and pass@1 are printed together, in two columns")


def score_table(
    label: str, columns: Sequence[ScoreColumn], rows: Sequence[tuple[str, Sequence[Score | None]]], *, note: str = ""
) -> str:
    """Scores as a Markdown table, headings with their kind, cells with value and interval, ``note`` as footer.

    Raises:
        MixedKinds, KindsApart: the table would mislead.
        ValueError: a row has another number of cells than there are columns.
    """
    check_pair(column.kind for column in columns)
    heading = [label, *(c.name if c.name == c.kind else f"{c.name} ({c.kind})" for c in columns)]
    lines = [heading, ["---"] * len(heading)]
    for name, cells in rows:
        if len(cells) != len(columns):
            raise ValueError(f"{len(cells)} cells in row {name} of {len(columns)} columns")
        for column, cell in zip(columns, cells, strict=True):
            check_column(column.name, column.kind, [cell] if cell else [])
        lines.append([name, *(score_text(cell) for cell in cells)])
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{text}\n\n{note}" if note else text
