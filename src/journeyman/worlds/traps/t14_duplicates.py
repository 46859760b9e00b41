"""T14: records that stand there twice."""

from __future__ import annotations

from random import Random

from journeyman.worlds.content import Cell, Sheet
from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.edits import last_row, one_of_kind, revise_rows, revise_sheet, with_cells
from journeyman.worlds.traps.operator import Operator
from journeyman.worlds.traps.raw_orders import exported_twice
from journeyman.worlds.traps.t14_deal_records import listed_twice

NUM_INVOICES, NUM_PAYMENTS = 9, 7


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """Invoices under the same number in the last register, payments in the spend, records of the deal, raw orders."""
    return [_invoices(draft, rng), _payments(draft, rng), *listed_twice(draft), *exported_twice(draft)]


def _invoices(draft: Draft, rng: Random) -> Planted:
    document = draft.plan.of_kind("invoice_register")[-1]
    chosen: list[tuple[str, ...]] = []

    def change(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        chosen.extend(rng.sample(rows[1:], NUM_INVOICES))
        for row in chosen:
            rows.insert(rows.index(row) + rng.randrange(1, 9), row)
        return rows

    revise_rows(draft, document.path, change)
    numbers = [row[0] for row in chosen]
    nets = {n: draft.truth.value("SELECT net FROM invoice WHERE id = :n", n=n) for n in numbers}
    total = draft.truth.value("SELECT SUM(net) FROM invoice WHERE date >= :a", a=_first_day(draft, document.subject))
    return Planted(
        "T14",
        f"invoices:{document.subject}",
        tuple(f"invoice:{n}:net" for n in numbers),
        {"net": total + sum(nets.values())},
        {"net": total},
    )


def _first_day(draft: Draft, subject: str) -> str:
    setting = draft.setting
    return f"{setting.label(setting.year_months(int(subject[2:]))[0])}-01"


def _payments(draft: Draft, rng: Random) -> Planted:
    found = one_of_kind(draft, "spend")
    assert found is not None
    numbers: list[str] = []

    def change(sheet: Sheet) -> Sheet:
        end = last_row(sheet) + 1
        cells: dict[tuple[int, int], Cell] = {}
        for offset, row in enumerate(sorted(rng.sample(range(1, end), NUM_PAYMENTS))):
            numbers.append(str(sheet.cells[row, 0].value))
            cells |= {(end + offset, column): sheet.cells[row, column] for column in range(5)}
        return with_cells(sheet, {place: Cell(c.value, c.formula, c.style) for place, c in cells.items()})

    revise_sheet(draft, found.path, "Spend", change)
    total = int(draft.truth.value("SELECT SUM(amount) FROM spend"))
    twice = sum(int(draft.truth.value("SELECT amount FROM spend WHERE id = :n", n=n)) for n in numbers)
    return Planted(
        "T14",
        "spend:duplicates",
        tuple(f"spend:{n}:amount" for n in numbers),
        {"total": total + twice},
        {"total": total},
    )


T14 = Operator("T14", "duplicated records", "plan", apply)
