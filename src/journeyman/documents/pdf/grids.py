"""Ruled tables: rulings that cross make grids, and the grid says which text is in which cell."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from .rulings import Ruling

NEAR = 3.0
"""Points within which two lines touch, or are one."""

MAX_CELLS = 20_000
"""A grid of more is graph paper."""

MAX_GRIDS = 200
"""Ruled regions of one page that are looked at, from the top."""

MAX_WORK = 4_000_000
"""Cells times lines of a region: what a page can hold for people is a hundredth of it."""

MAX_RULINGS = 3_000
"""A page of more rulings is a drawing."""


class Grid(NamedTuple):
    """A ruled region.

    Attributes:
        xs: its vertical lines from left to right, in points.
        ys: its horizontal lines from top to bottom.
        cells: row, column, rows spanned, columns spanned.
    """

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    cells: tuple[tuple[int, int, int, int], ...]

    @property
    def box(self) -> tuple[float, float, float, float]:
        return self.xs[0], self.ys[0], self.xs[-1], self.ys[-1]


def grids_of(rulings: Sequence[Ruling]) -> tuple[list[Grid], list[tuple[float, float, float, float]]]:
    """Grids of at least two cells, from top to bottom, and regions that are ruled by horizontal lines only."""
    across = _merged([line for line in rulings if line.is_horizontal])
    down = _merged([line for line in rulings if not line.is_horizontal])
    if len(across) + len(down) > MAX_RULINGS:
        return [], []
    groups = _touching(across, down)
    grids = [grid for hs, vs in groups if (grid := _grid(hs, vs))]
    grids = sorted(grids, key=lambda grid: (grid.ys[0], grid.xs[0]))[:MAX_GRIDS]
    outer = [grid for grid in grids if not any(other is not grid and _holds(other.box, grid.box) for other in grids)]
    lonely = [hs[0] for hs, vs in groups if len(hs) == 1 and not vs]
    return outer, _open_regions(lonely)


def _merged(lines: list[Ruling]) -> list[Ruling]:
    """Pieces of one line made one, double lines too."""
    lines.sort(key=lambda line: (line.at, line.start))
    rows: list[list[Ruling]] = []
    for line in lines:
        if rows and line.at - rows[-1][0].at <= NEAR / 2:
            rows[-1].append(line)
        else:
            rows.append([line])
    found = []
    for row in rows:
        at, start, end = row[0].at, None, 0.0
        for line in sorted(row, key=lambda one: one.start):
            if start is None:
                start, end = line.start, line.end
            elif line.start <= end + NEAR:
                end = max(end, line.end)
            else:
                found.append(Ruling(line.is_horizontal, at, start, end))
                start, end = line.start, line.end
        if start is not None:
            found.append(Ruling(row[0].is_horizontal, at, start, end))
    return found


def _touching(across: list[Ruling], down: list[Ruling]) -> list[tuple[list[Ruling], list[Ruling]]]:
    parents = list(range(len(across) + len(down)))

    def root(at: int) -> int:
        while parents[at] != at:
            parents[at] = parents[parents[at]]
            at = parents[at]
        return at

    ats = [line.at for line in across]
    for number, v in enumerate(down):
        first, last = bisect_right(ats, v.start - NEAR), bisect_right(ats, v.end + NEAR)
        for at in range(first, last):
            if across[at].start - NEAR <= v.at <= across[at].end + NEAR:
                parents[root(at)] = root(len(across) + number)
    groups: dict[int, tuple[list[Ruling], list[Ruling]]] = {}
    for at, line in enumerate([*across, *down]):
        groups.setdefault(root(at), ([], []))[0 if line.is_horizontal else 1].append(line)
    return list(groups.values())


def _grid(hs: list[Ruling], vs: list[Ruling]) -> Grid | None:
    if len(hs) < 2 or len(vs) < 2:
        return None
    ys, xs = _positions(hs), _positions(vs)
    n_rows, n_columns = len(ys) - 1, len(xs) - 1
    n_cells = max(0, n_rows) * max(0, n_columns)
    if not 2 <= n_cells <= MAX_CELLS or n_cells * (len(hs) + len(vs)) > MAX_WORK:
        return None
    taken: set[tuple[int, int]] = set()
    cells = []
    for row in range(n_rows):
        for column in range(n_columns):
            if (row, column) in taken:
                continue
            right, low = column + 1, row + 1
            middle = (ys[row] + ys[row + 1]) / 2
            while right < n_columns and not _covers(vs, xs[right], middle):
                right += 1
            while low < n_rows and not _covers(hs, ys[low], (xs[column] + xs[column + 1]) / 2):
                low += 1
            spot = {(r, c) for r in range(row, low) for c in range(column, right)} - taken
            taken |= spot
            cells.append((row, column, low - row, right - column))
    return Grid(tuple(xs), tuple(ys), tuple(cells)) if len(cells) > 1 else None


def _positions(lines: list[Ruling]) -> list[float]:
    found: list[float] = []
    for at in sorted(line.at for line in lines):
        if not found or at - found[-1] > NEAR:
            found.append(at)
    return found


def _covers(lines: list[Ruling], at: float, along: float) -> bool:
    return any(abs(line.at - at) <= NEAR and line.start - NEAR <= along <= line.end + NEAR for line in lines)


def _holds(outer: tuple[float, float, float, float], inner: tuple[float, float, float, float]) -> bool:
    return (
        outer[0] - NEAR <= inner[0]
        and outer[1] - NEAR <= inner[1]
        and outer[2] + NEAR >= inner[2]
        and outer[3] + NEAR >= inner[3]
    )


def _open_regions(lines: list[Ruling]) -> list[tuple[float, float, float, float]]:
    """Regions between at least three horizontal lines of the same extent: tables without vertical lines."""
    groups: dict[tuple[int, int], list[Ruling]] = {}
    for line in lines:
        if line.end - line.start >= 60:
            groups.setdefault((round(line.start / 4), round(line.end / 4)), []).append(line)
    regions = []
    for group in groups.values():
        if len(group) >= 3:
            group.sort(key=lambda line: line.at)
            regions.append((group[0].start, group[0].at, group[0].end, group[-1].at))
    return sorted(regions, key=lambda box: (box[1], box[0]))
