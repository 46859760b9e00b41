"""Tables of any deliverable as rows of named columns: sheets, csv, tables of documents and slides, lists in JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .bundle import Bundle
from .comparing import equal, kind_of, normal, number_of, shown
from .outcome import Outcome

MAX_HEADER_ROW = 60
"""A header further down is not looked for."""

TOTALS = {"total", "totals", "grand total", "sum", "all", "overall", "average", "mean", "median", "max", "min"}
"""Keys of lines that sum up; tables may have them."""

Grid = list[list[Any]]


def table(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Rows of a table, found by the names of its columns.

    Params: ``file``; ``columns``: [{``name``, ``aliases``?, ``tol``?}], ``key``: names whose values tell rows apart;
    ``rows``: expected rows as lists in the order of ``columns`` (null: not compared); ``sheet``?, ``path``? (JSON);
    ``only``?: names of the columns that are compared beside the key; ``extra``: ``wrong`` (default) or ``ignored``;
    ``credit``: ``all``, ``share`` or ``f1``; ``ordered``?: rows stand in this order.
    """
    columns, keys = params["columns"], params.get("key") or [params["columns"][0]["name"]]
    grids = list(grids_of(bundle, params))
    found = best_table(grids, columns)
    if found is None:
        asked = ", ".join(column["name"] for column in columns)
        return Outcome(0.0, f"{params['file']}: no table with the columns {asked} ({len(grids)} tables looked at)")
    rows, where, epoch = found
    names = [column["name"] for column in columns]
    at = [names.index(key) for key in keys]
    compared = [i for i, name in enumerate(names) if i not in at and name in params.get("only", names)]
    wanted, given = list(params["rows"]), _data_rows(rows, at)
    pairs, missing = _paired(wanted, given, at, epoch)
    wrong: list[str] = []
    right = 0
    total = len(missing) * max(1, len(compared))
    for want, got in pairs:
        stated = [i for i in compared if want[i] is not None]
        bad = [i for i in stated if not equal(want[i], got[i], columns[i].get("tol"), epoch)]
        total += max(1, len(stated))
        right += max(1, len(stated)) - len(bad)
        label = _label(got, at)
        wrong += [f"{label}: {names[i]} says {shown(got[i])}, not the {kind_of(want[i])} expected" for i in bad]
    extra = [] if params.get("extra") == "ignored" else _extra(given, pairs, at)
    wrong += [f"no row {_label(one, at)}" for one in missing]
    wrong += [f"row {_label(one, at)} does not belong" for one in extra]
    if params.get("ordered") and not wrong and not _in_order(pairs, given):
        wrong.append("the rows stand in another order")
    score = _credit(params.get("credit", "all"), right, total, len(extra) * max(1, len(compared)), not wrong)
    return Outcome.of(score, f"{where}: {right} of {total} values", wrong)


def _credit(how: str, right: int, total: int, extra: int, is_right: bool) -> float:
    if is_right:
        return 1.0
    if how == "all" or not total:
        return 0.0
    share = right / (total + extra)
    return min(share, 0.99) if how == "share" else min(2 * right / (2 * total + extra), 0.99)


def grids_of(bundle: Bundle, params: dict[str, Any]) -> Iterator[tuple[Grid, str, int]]:
    """Every table of the file as (rows with the header first, where, epoch of its dates)."""
    name = params["file"]
    suffix = name.rpartition(".")[2].lower()
    if suffix in ("xlsx", "xlsm"):
        book = bundle.workbook(name)
        for sheet in [params["sheet"]] if params.get("sheet") and book.sheet(params["sheet"]) else book.sheets:
            yield book.grid(sheet), f"{name} sheet {sheet}", book.epoch
    elif suffix == "json":
        value = at_path(bundle.json(name), params.get("path", ""))
        if isinstance(value, list) and all(isinstance(one, dict) for one in value) and value:
            header = list(dict.fromkeys(key for one in value for key in one))
            yield (
                [header, *([one.get(key) for key in header] for one in value)],
                f"{name} {params.get('path', '')}",
                1900,
            )
    elif suffix in ("csv", "tsv"):
        yield [list(row) for row in bundle.rows(name)], name, 1900
    else:
        yield from document_tables(bundle.document(name), name)


def document_tables(document: Any, name: str) -> Iterator[tuple[Grid, str, int]]:
    """Tables of a text document or a presentation."""
    for node in document.walk():
        if node.kind != "table" or not node.children:
            continue
        rows = [row for row in node.children if row.kind == "row"]
        cells = [list(row.children) for row in rows] if rows else [list(node.children)]
        yield [[full_text(cell) for cell in row] for row in cells], f"{name} {node.address}", 1900


def full_text(node: Any) -> str:
    """Text of a node and everything below it."""
    parts = [node.text, *(full_text(child) for child in node.children)]
    return "\n".join(part for part in parts if part)


def at_path(value: Any, path: str) -> Any:
    """The value at ``a.b.0.c``; None where there is none."""
    for part in path.split(".") if path else ():
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.lstrip("-").isdigit() and -len(value) <= int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def best_table(grids: list[tuple[Grid, str, int]], columns: list[dict[str, Any]]) -> tuple[Grid, str, int] | None:
    """The first table that has every column, its rows below the header in the order of ``columns``."""
    for grid, where, epoch in grids:
        for number, row in enumerate(grid[:MAX_HEADER_ROW]):
            header = [normal(value) if value is not None else "" for value in row]
            places = [_column(header, column) for column in columns]
            if all(place is not None for place in places):
                rows = [
                    [line[p] if p is not None and p < len(line) else None for p in places]
                    for line in grid[number + 1 :]
                ]
                return rows, where, epoch
    return None


def _column(header: list[str], column: dict[str, Any]) -> int | None:
    for word in (column["name"], *column.get("aliases", ())):
        if normal(word) in header:
            return header.index(normal(word))
    return None


def _data_rows(rows: Grid, at: list[int]) -> Grid:
    """Rows that have a key, up to the first gap of three empty rows."""
    found: Grid = []
    gap = 0
    for row in rows:
        if all(row[i] is None or str(row[i]).strip() == "" for i in at):
            gap += 1
            if gap > 3 and found:
                break
            continue
        gap = 0
        found.append(row)
    return found


def _paired(wanted: Grid, given: Grid, at: list[int], epoch: int) -> tuple[list[tuple[list[Any], list[Any]]], Grid]:
    """Rows by their key, each given row at most once; words and numbers are looked up, other keys compared."""
    pairs, missing = [], []
    by_key: dict[tuple[str, ...], list[list[Any]]] = {}
    for row in given:
        by_key.setdefault(tuple(normal(row[i]) for i in at), []).append(row)
    by_number = _numbered(given, at[0]) if any(_is_small(want[at[0]]) for want in wanted) else {}
    taken: set[int] = set()
    for want in wanted:
        if all(isinstance(want[i], str) for i in at):
            candidates = by_key.get(tuple(normal(want[i]) for i in at), [])
        else:
            likely = _near(by_number, want[at[0]]) if _is_small(want[at[0]]) else given
            candidates = [row for row in likely if all(equal(want[i], row[i], None, epoch) for i in at)]
        match = next((row for row in candidates if id(row) not in taken), None)
        if match is None:
            missing.append(want)
        else:
            taken.add(id(match))
            pairs.append((want, match))
    return pairs, missing


def _is_small(value: Any) -> bool:
    """A number whose tolerance as a key is below one."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 100_000


def _numbered(given: Grid, column: int) -> dict[int, list[tuple[int, list[Any]]]]:
    """Whole part of the number in a column -> (position, row)."""
    found: dict[int, list[tuple[int, list[Any]]]] = {}
    for position, row in enumerate(given):
        number = number_of(row[column])
        if number is not None:
            found.setdefault(round(number), []).append((position, row))
    return found


def _near(numbered: dict[int, list[tuple[int, list[Any]]]], wanted: float) -> Grid:
    """Rows whose number may equal this one, in their order."""
    whole = round(wanted)
    return [row for _, row in sorted(one for n in (whole - 1, whole, whole + 1) for one in numbered.get(n, ()))]


def _extra(given: Grid, pairs: list[tuple[list[Any], list[Any]]], at: list[int]) -> Grid:
    """Rows that no expected row took; a line of totals is none."""
    used = {id(got) for _, got in pairs}
    return [row for row in given if id(row) not in used and normal(row[at[0]]) not in TOTALS]


def _label(row: list[Any], at: list[int]) -> str:
    return " / ".join(shown(row[i], 30) for i in at)


def _in_order(pairs: list[tuple[list[Any], list[Any]]], given: Grid) -> bool:
    place = {id(row): number for number, row in enumerate(given)}
    found = [place[id(got)] for _, got in pairs]
    return found == sorted(found)
