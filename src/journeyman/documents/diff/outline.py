"""Which rows and columns of a sheet were inserted, deleted or moved: the reading that leaves the fewest differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from ..xlsx.address import MAX_COLUMN, MAX_ROW
from ..xlsx.book import Sheet
from ..xlsx.cells import Cell
from ..xlsx.formula import skeleton
from ..xlsx.styles import Style
from .align import Alignment, align, pair_runs, runs
from .renumber import Axis, SheetMap

Grid = dict[tuple[int, int], Hashable]
Lines = dict[int, dict[int, Hashable]]

EMPTY = "empty"
"""Kind of a cell that only has a look."""

SPARSE = 10_000
"""A sheet whose last row lies this far beyond four times its filled rows is compared place by place."""


def outline(a: Sheet, b: Sheet, looks_a: Sequence[Style] = (), looks_b: Sequence[Style] = ()) -> SheetMap:
    """Where the rows and columns of ``a`` lie in ``b``; looks by index tell empty rows apart."""
    grid_a, grid_b = signatures(a, looks_a), signatures(b, looks_b)
    plain = _differences(grid_a, grid_b)
    best, cost = SheetMap(b.name), plain
    if plain <= 1 or _is_sparse(grid_a) or _is_sparse(grid_b):
        return best
    rows, rows_cost = _along(grid_a, grid_b, is_rows=True)
    columns, columns_cost = _along(grid_a, grid_b, is_rows=False)
    if rows is not None and rows_cost < cost:
        best, cost = SheetMap(b.name, rows=rows), rows_cost
    if columns is not None and columns_cost < cost:
        best, cost = SheetMap(b.name, columns=columns), columns_cost
    if cost * 4 > len(grid_a) and cost > 4:
        both, both_cost = _both(grid_a, grid_b, b.name)
        if both is not None and both_cost < cost:
            best = both
    return best


def signatures(sheet: Sheet, looks: Sequence[Style] = ()) -> Grid:
    """What tells cells apart while their rows are looked for: values, formulas without their references; and the look
    of empty cells, when looks are given."""
    found: Grid = {}
    texts = [(EMPTY, repr(sorted(look.items()))) for look in looks]
    for place, cell in sheet.cells.items():
        if cell.formula or cell.value not in (None, ""):
            found[place] = signature(cell)
        elif 0 < cell.style < len(looks) and looks[cell.style]:
            found[place] = texts[cell.style]
    if looks:  # column 0 is no column; rows without cells are told apart by their own look
        for row in sheet.custom_heights | sheet.hidden_rows:
            found[row, 0] = (EMPTY, f"{sheet.heights.get(row)} {row in sheet.hidden_rows}")
    return found


def _is_empty(line: Hashable) -> bool:
    """Whether a line holds nothing but looks."""
    return not isinstance(line, tuple) or all(one[1][0] == EMPTY for one in line)


def signature(cell: Cell) -> Hashable:
    """Hashable, equal for cells of equal content wherever they lie."""
    return ("f", skeleton(cell.formula)) if cell.formula else (cell.kind, cell.value)


def _differences(a: Grid, b: Grid) -> int:
    return sum(1 for place, one in a.items() if b.get(place) != one) + sum(1 for place in b if place not in a)


def _is_sparse(grid: Grid) -> bool:
    for axis in (0, 1):
        used = {place[axis] for place in grid}
        if used and max(used) > 4 * len(used) + SPARSE:
            return True
    return False


def _lines(grid: Grid, is_rows: bool) -> Lines:
    lines: Lines = {}
    for (row, column), one in grid.items():
        first, second = (row, column) if is_rows else (column, row)
        lines.setdefault(first, {})[second] = one
    return lines


def _along(a: Grid, b: Grid, is_rows: bool) -> tuple[Axis | None, int]:
    """The best axis, or None when nothing moved; and what it costs: one per block, one per cell that still differs."""
    lines_a, lines_b = _lines(a, is_rows), _lines(b, is_rows)
    length_a, length_b = max(lines_a, default=0), max(lines_b, default=0)

    def likeness(i: int, j: int) -> float:
        one, other = lines_a.get(i + 1, {}), lines_b.get(j + 1, {})
        if not one or not other:
            return 0.0
        return sum(1 for key, value in one.items() if other.get(key) == value) / max(len(one), len(other))

    found = align(
        [_frozen(lines_a.get(n, {})) for n in range(1, length_a + 1)],
        [_frozen(lines_b.get(n, {})) for n in range(1, length_b + 1)],
        likeness,
        _is_empty,
    )
    if found.is_plain:
        return None, 0
    rest = 0
    for i, j in found.kept:
        one, other = lines_a.get(i + 1, {}), lines_b.get(j + 1, {})
        rest += sum(1 for key in one.keys() | other.keys() if one.get(key) != other.get(key))
    limit = MAX_ROW if is_rows else MAX_COLUMN
    return Axis.of(found, length_a, length_b, limit), rest + blocks(found)


def _frozen(line: dict[int, Hashable]) -> Hashable:
    return tuple(sorted(line.items())) if line else ()


def blocks(found: Alignment) -> int:
    """How many insertions, deletions and moves of whole blocks it names."""
    return len(runs(found.deleted)) + len(runs(found.inserted)) + len(pair_runs(found.moved))


def _both(a: Grid, b: Grid, name: str) -> tuple[SheetMap | None, int]:
    """Rows found by their contents in any column, then columns under that reading."""
    lines_a, lines_b = _lines(a, True), _lines(b, True)
    length_a, length_b = max(lines_a, default=0), max(lines_b, default=0)
    bags_a = {n: Counter(line.values()) for n, line in lines_a.items()}
    bags_b = {n: Counter(line.values()) for n, line in lines_b.items()}

    def likeness(i: int, j: int) -> float:
        one, other = bags_a.get(i + 1, Counter()), bags_b.get(j + 1, Counter())
        most = max(one.total(), other.total())
        return (one & other).total() / most if most else 0.0

    found = align(
        [tuple(lines_a.get(n, {}).values()) for n in range(1, length_a + 1)],
        [tuple(lines_b.get(n, {}).values()) for n in range(1, length_b + 1)],
        likeness,
    )
    if found.is_plain:
        return None, 0
    rows = Axis.of(found, length_a, length_b, MAX_ROW)
    moved: Grid = {}
    for (row, column), one in a.items():
        place = rows.point(row)
        if place:
            moved[place, column] = one
    came = {j + 1 for j in found.inserted}
    columns, cost = _along(moved, {place: one for place, one in b.items() if place[0] not in came}, is_rows=False)
    if columns is None:
        return None, 0
    return SheetMap(name, rows, columns), cost + blocks(found)
