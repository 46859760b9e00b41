"""T15: numbers and dates that are text, and a workbook that counts days from 1904."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from random import Random

from journeyman.worlds.content import Book, Cell, Sheet
from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.edits import last_row, one_of_kind, revise_rows, revise_sheet, with_cells
from journeyman.worlds.traps.operator import Operator
from journeyman.worlds.traps.raw_orders import written_dates

NUM_TEXTS = 11
EPOCH_1904 = date(1904, 1, 1)


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """Amounts of payments as text, dates of invoices and orders in figures, entry dates of staff as days since 1904."""
    return [_amounts(draft, rng), _dates(draft, rng), *_epoch(draft), *written_dates(draft)]


def _amounts(draft: Draft, rng: Random) -> Planted:
    found = one_of_kind(draft, "spend")
    assert found is not None
    facts: list[str] = []
    missed: list[int] = []

    def change(sheet: Sheet) -> Sheet:
        cells = {}
        sites = [row for row in range(1, last_row(sheet) + 1) if sheet.cells[row, 4].fact]
        for row in rng.sample(sites, NUM_TEXTS):
            cell = sheet.cells[row, 4]
            assert isinstance(cell.value, int)
            facts.append(cell.fact)
            missed.append(cell.value)
            shown = draft.setting.number(cell.value)
            cells[row, 4] = Cell(f"\u27e6{cell.fact}\u00a6{shown}\u27e7")
        return with_cells(sheet, cells)

    revise_sheet(draft, found.path, "Spend", change)
    total = int(draft.truth.value("SELECT SUM(amount) FROM spend"))
    return Planted("T15", "spend:text amounts", tuple(facts), {"total": total - sum(missed)}, {"total": total})


def _dates(draft: Draft, rng: Random) -> Planted:
    """Some invoice dates of the last register are written as the place writes dates."""
    document = draft.plan.of_kind("invoice_register")[-1]
    count = 0

    def change(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        nonlocal count
        for index in range(1, len(rows)):
            if rng.random() < 0.1:
                rows[index] = (*rows[index][:5], draft.setting.short_day(rows[index][5]), *rows[index][6:])
                count += 1
        return rows

    revise_rows(draft, document.path, change)
    first = document.content
    assert not isinstance(first, Book)
    return Planted(
        "T15",
        f"invoices:{document.subject}:dates",
        (f"invoice:{_first_number(draft)}:net",),
        {"rows_lost": count},
        {"rows_lost": 0},
    )


def _first_number(draft: Draft) -> str:
    return str(draft.truth.value("SELECT id FROM invoice ORDER BY date DESC, id DESC LIMIT 1"))


def _epoch(draft: Draft) -> list[Planted]:
    found = one_of_kind(draft, "hris")
    if found is None:
        return []
    book = found.content
    assert isinstance(book, Book)
    sheet = book.sheets[0]
    cells = dict(sheet.cells)
    for (row, column), cell in sheet.cells.items():
        if column == 5 and row and isinstance(cell.value, str):
            cells[row, 5] = Cell((date.fromisoformat(cell.value) - EPOCH_1904).days, style="date")
    made = replace(book, sheets=(replace(sheet, cells=cells), *book.sheets[1:]), is_1904=True)
    draft.plan.revise(found.path, made)
    first = draft.roles["ceo"]
    hired = date.fromisoformat(first["valid_from"])
    manager = next(one for one in draft.plan.facts if one.startswith("hris:"))
    return [
        Planted(
            "T15",
            "hris:hired",
            (manager,),
            {"hired": date.fromordinal(hired.toordinal() - 1462).isoformat()},
            {"hired": hired.isoformat()},
        )
    ]


T15 = Operator("T15", "text numbers, dates as text, 1904", "plan", apply)
