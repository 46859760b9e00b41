"""Recalculation: caches of formulas made true, by one engine with a second as check, without touching other parts.

Policy. The first engine's value counts. Where it lacks a function, the second's does. A function that neither has is
``UnknownFormula``. Where both support a cell and differ beyond tolerance, the cell is listed, or raises
``EnginesDisagree`` when the caller asks for that. Volatile functions follow a pinned clock and are not compared.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..errors import EnginesDisagree, UnknownFormula, UnreadableDocument
from .address import cell_address
from .book import read_book
from .caches import Recomputed, formula_cells, store
from .engines import Place, Result, engine
from .formula import functions
from .graph import CLOCK, HOST, RANDOM, dependents, volatile
from .package import Package

RELATIVE, ABSOLUTE = 1e-6, 1e-9
"""Two engines agree on a number within this share, or this much."""

_VOLATILE = RANDOM | CLOCK | HOST


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two engines, two values; ``third`` is LibreOffice's where it was asked."""

    address: str
    formula: str
    first: float | str | bool
    second: float | str | bool
    third: float | str | bool | None = None


@dataclass(frozen=True, slots=True)
class Recalculated:
    """A workbook with true caches.

    Attributes:
        data: the file; parts without formulas are byte-identical to the input's.
        changed: cells whose cache was written anew.
        disagreements: cells on which the engines differ.
        unknown: (address, function) of cells that no engine could calculate; their caches are left as they were.
        formulas: how many were evaluated.
        notes: what a reader must know, e.g. that the second engine could not load the file.
    """

    data: bytes
    changed: tuple[Recomputed, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()
    formulas: int = 0
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """A JSON value without the bytes."""
        return {
            "formulas": self.formulas,
            "changed": [{"address": c.address, "before": c.before, "after": c.after} for c in self.changed],
            "disagreements": [
                {"address": d.address, "formula": d.formula, "first": d.first, "second": d.second, "third": d.third}
                for d in self.disagreements
            ],
            "unknown": [{"address": address, "function": function} for address, function in self.unknown],
            "notes": list(self.notes),
        }


def recalculate(
    data: bytes,
    name: str,
    *,
    engine_name: str = "formualizer",
    check: str | None = "ironcalc",
    clock: datetime | None = None,
    on_unknown: str = "raise",
    on_disagreement: str = "report",
    only: Collection[str] | None = None,
) -> Recalculated:
    """Evaluate every formula and store the values.

    Args:
        data: an xlsx or xlsm file.
        name: for messages.
        engine_name: a key of ``engines.ENGINES``.
        check: the engine of the second opinion, or None.
        clock: what NOW and TODAY read, aware; by default when the file says it was last modified, else 2000-01-01.
        on_unknown: ``raise``, or ``keep`` the old cache and list the cell.
        on_disagreement: ``report`` or ``raise``.
        only: addresses whose caches are written; others only where none is stored. None writes all.

    Raises:
        UnknownFormula: neither engine knows a function; names cell and function.
        EnginesDisagree: on request, for the first cell on which they differ.
        UnreadableDocument: no engine can load the workbook, or it is damaged.
    """
    package = Package(data, name)
    sheets, epoch = formula_cells(package)
    cells = [(sheet, row, column) for sheet, found in sheets.items() for row, column in found.elements]
    if not cells:
        return Recalculated(data)
    clock = clock or _modified(package)
    formulas = {(s, r, c): text for s, found in sheets.items() for (r, c), text in found.formulas.items()}
    notes: list[str] = []
    first = _evaluate(engine_name, data, cells, clock, epoch, notes)
    second = _evaluate(check, data, cells, clock, epoch, notes) if check else {}
    if not first and not second:
        raise UnreadableDocument(name, "; ".join(notes), remedy="save it anew in a spreadsheet program")
    values, unknown = _settle(first, second, formulas, (engine_name, check), name, on_unknown)
    if unknown:  # what reads an unknown value has none either
        lost = dependents(
            read_book(package, is_light=True), [place for place in first or second if place not in values]
        )
        values = {place: one for place, one in values.items() if (place[0].lower(), *place[1:]) not in lost}
    disagreements = _disagreements(package, first, second, formulas)
    if disagreements and on_disagreement == "raise":
        worst = disagreements[0]
        what = f"{engine_name} gives {worst.first!r}, {check} gives {worst.second!r} for ={worst.formula}"
        raise EnginesDisagree(name, what, place=worst.address, remedy="replace the function, or check the cell by hand")
    changed = store(package, sheets, values, only)
    out = package.to_bytes() if package.replaced else data
    return Recalculated(out, changed, disagreements, unknown, len(formulas), tuple(notes))


def _evaluate(
    which: str, data: bytes, cells: list[Place], clock: datetime, epoch: int, notes: list[str]
) -> dict[Place, Result]:
    try:
        found: dict[Place, Result] = engine(which).evaluate(data, cells, clock, epoch)
        return found
    except ValueError as error:
        notes.append(f"{which}: {error}")
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of a Rust library; not an Exception
            raise
        notes.append(f"{which} panicked: {error}")
    return {}


def clock_of(data: bytes, name: str) -> datetime:
    """When the file says it was last modified, in UTC; 2000-01-01 when it does not say."""
    return _modified(Package(data, name))


def _modified(package: Package) -> datetime:
    for relation in package.relations(""):
        if relation.kind == "core-properties" and relation.target in package:
            for one in package.xml(relation.target):
                if str(one.tag).endswith("}modified") and one.text:
                    try:
                        moment = datetime.fromisoformat(one.text.strip())
                    except ValueError:
                        continue
                    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return datetime(2000, 1, 1, tzinfo=UTC)


def _settle(
    first: dict[Place, Result],
    second: dict[Place, Result],
    formulas: dict[Place, str],
    engines: tuple[str, str | None],
    name: str,
    on_unknown: str,
) -> tuple[dict[Place, Result], tuple[tuple[str, str], ...]]:
    """The value of each cell, and the cells that no engine could calculate."""
    if not first:
        first, second = second, {}
    lacks = any(_unsupported(first[place], formulas.get(place, ""), engines[0]) for place in first)
    if not lacks:
        return first, ()
    values: dict[Place, Result] = {}
    unknown: list[tuple[str, str]] = []
    for place, one in first.items():
        other = second.get(place, ("?", "not asked"))
        if one[0] in ("e", "?") and other[0] not in ("e", "?"):
            one = other  # also what reads a cell that only the second engine could calculate
        formula = formulas.get(place, "")
        missing = _unsupported(one, formula, engines[0]) if one[0] in ("e", "?") else ""
        if not missing:
            values[place] = one
            continue
        if missing in functions(formula) and on_unknown == "raise":
            what = f"no engine ({', '.join(e for e in engines if e)}) knows {missing} in ={formula}"
            remedy = "replace the function, or keep the stored value: on_unknown='keep'"
            raise UnknownFormula(name, what, place=cell_address(*place), remedy=remedy)
        unknown.append((cell_address(*place), missing))
    return values, tuple(unknown)


def _unsupported(result: Result, formula: str, which: str) -> str:
    """The function that the engine lacks, or its reason for giving no value; empty where it gave one."""
    if result[0] == "e" and result[1] != "#NAME?":
        return ""
    if result[0] not in ("e", "?"):
        return ""
    for function in sorted(functions(formula)):
        if not engine(which).knows(function):
            return function
    return str(result[1]) if result[0] == "?" else ""


def _disagreements(
    package: Package, first: dict[Place, Result], second: dict[Place, Result], formulas: dict[Place, str]
) -> tuple[Disagreement, ...]:
    if not first or not second:
        return ()
    differ = [place for place in formulas if not agree(first[place], second[place])]
    if differ and any(functions(formula) & _VOLATILE for formula in formulas.values()):
        moving = volatile(read_book(package, is_light=True), _VOLATILE)
        differ = [place for place in differ if (place[0].lower(), *place[1:]) not in moving]
    return tuple(
        Disagreement(cell_address(*place), formulas[place], first[place][1], second[place][1]) for place in differ
    )


def agree(one: Result, other: Result) -> bool:
    """Equal within tolerance; an engine that gives no value, or does not know a name, has no opinion."""
    if "?" in (one[0], other[0]):
        return True
    if one[0] == "n" and other[0] == "n":
        return math.isclose(float(one[1]), float(other[1]), rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    if {one[0], other[0]} == {"b", "n"}:
        return float(one[1]) == float(other[1])
    if one == ("e", "#NAME?") or other == ("e", "#NAME?"):
        return True
    return one[0] == other[0] and (one[0] == "e" or one[1] == other[1])
