"""T8: rows that a filter hides, which count all the same."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from journeyman.worlds.content import Cell, Sheet
from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.edits import last_row, one_of_kind, revise_sheet, with_cells
from journeyman.worlds.traps.operator import Operator

NUM_HIDDEN = 14


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """Payments hidden by a filter that was left on; a note beside the table says that they count."""
    found = one_of_kind(draft, "spend")
    assert found is not None
    spend = {row["id"]: row["amount"] for row in draft.truth.rows("SELECT id, amount FROM spend")}
    hidden: list[int] = []
    total = sum(spend.values())
    note = draft.fact(
        "spend:filter",
        "Filter left on; hidden rows are payments like all others.",
        total,
        "currency",
        currency=draft.setting.currency,
    )

    def change(sheet: Sheet) -> Sheet:
        hidden.extend(sorted(rng.sample(range(1, last_row(sheet) + 1), NUM_HIDDEN)))
        return replace(
            with_cells(sheet, {(0, 6): Cell(note, style="note")}),
            hidden_rows=tuple(hidden),
            filter_range=f"A1:E{last_row(sheet) + 1}",
        )

    revise_sheet(draft, found.path, "Spend", change)
    sheet = draft.plan.documents[found.path].content.sheets[0]  # type: ignore[union-attr]
    seen = total - sum(_amount(sheet.cells[row, 4]) for row in hidden)
    return [Planted("T8", "spend:hidden rows", ("spend:filter",), {"total": seen}, {"total": total})]


def _amount(cell: Cell) -> int:
    value = cell.value
    return int(str(value).replace(",", "").replace(".", ""))


T8 = Operator("T8", "hidden rows", "plan", apply)
