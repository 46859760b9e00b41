"""T10: subtotals and a total stand among the rows they sum."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from journeyman.worlds.content import Cell, Sheet
from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.edits import revise_sheet
from journeyman.worlds.traps.operator import Operator

BREAKS = {
    "1500": "Subtotal current assets",
    "2000": "Subtotal fixed assets",
    "2500": "Subtotal operating liabilities",
    "3000": "Subtotal debt",
    "4010": "Subtotal equity",
}
"""Account before which a subtotal stands -> its name."""
FIRST = 3


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """The last trial balance of the parent gets subtotals without account numbers; its total row loses its formulas."""
    found = draft.plan.of_kind("trial_balance", f"G:{draft.setting.label(draft.setting.months[-1])}")[0]
    seen: dict[str, int] = {}

    def change(sheet: Sheet) -> Sheet:
        rows = sorted({row for row, _ in sheet.cells if row >= FIRST})
        cells = {place: cell for place, cell in sheet.cells.items() if place[0] < FIRST}
        at, running = FIRST, 0
        for row in rows:
            code = sheet.cells.get((row, 0), Cell("")).value
            if code in BREAKS:
                cells[at, 1], cells[at, 4] = Cell(BREAKS[str(code)], style="bold"), Cell(running, style="total")
                seen[BREAKS[str(code)]] = running
                at, running = at + 1, 0
            for column in range(5):
                if (row, column) in sheet.cells:
                    cells[at, column] = replace(sheet.cells[row, column], formula="")
            balance = sheet.cells.get((row, 4), Cell(0))
            running += int(balance.value or 0) if balance.fact else 0
            at += 1
        return replace(sheet, cells=cells)

    revise_sheet(draft, found.path, "TB", change)
    right = seen["Subtotal current assets"]
    facts = tuple(f"balance:{found.subject}:{code}" for code in ("1100", "1200", "1300"))
    return [Planted("T10", f"balance:{found.subject}", facts, {"current_assets": 2 * right}, {"current_assets": right})]


T10 = Operator("T10", "subtotals among the rows", "plan", apply)
