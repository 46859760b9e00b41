"""T10: subtotals and a total stand among the rows they sum."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from journeyman.worlds.content import Cell, Sheet
from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.render.xlsx import column_letters
from journeyman.worlds.simulate.market import STEPS, SUBTOTALS
from journeyman.worlds.traps.edits import one_of_kind, revise_sheet
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
    """The last trial balance of the parent and the price study get sums among their rows."""
    return [_balances(draft), *_waterfall(draft)]


def _balances(draft: Draft) -> Planted:
    """Subtotals without account numbers; the total row loses its formulas."""
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
    return Planted("T10", f"balance:{found.subject}", facts, {"current_assets": 2 * right}, {"current_assets": right})


def _waterfall(draft: Draft) -> list[Planted]:
    """The price study sums its deductions twice on the way; its pocket price is the list price less both sums."""
    found = one_of_kind(draft, "price_waterfall")
    if found is None:
        return []
    segments = list(draft.setting.trade["segments"])
    revise_sheet(draft, found.path, "Waterfall", lambda sheet: _summed(draft, sheet, segments))
    planted = []
    for segment in segments:
        pocket = float(draft.plan.facts[f"price:{segment}:pocket_price"].value)
        bait = tuple(f"price:{segment}:subtotal:{step}" for step in SUBTOTALS)
        twice = round(pocket - sum(float(draft.plan.facts[fact].value) for fact in bait), 2)
        steps = tuple(f"price:{segment}:{step}" for step in ("pocket_price", "list_price", *SUBTOTALS))
        planted.append(Planted("T10", f"price:{segment}:subtotals", steps, {"pocket_price": twice},
                               {"pocket_price": pocket}, bait))  # fmt: skip
    return planted


def _summed(draft: Draft, sheet: Sheet, segments: list[str]) -> Sheet:
    """The sheet with a line of sums behind each group of deductions."""
    cells = {place: cell for place, cell in sheet.cells.items() if place[0] < FIRST}
    at, begun, sums = FIRST, FIRST + 1, list[int]()
    for row, (step, _) in enumerate(STEPS, start=FIRST):
        for column in range(len(segments) + 1):
            cells[at, column] = sheet.cells[row, column]
        at += 1
        if step in SUBTOTALS:
            cells[at, 0] = Cell(SUBTOTALS[step], style="bold")
            for column, segment in enumerate(segments, start=1):
                letter, fact = column_letters(column), f"price:{segment}:subtotal:{step}"
                amount = round(sum(float(cells[above, column].value or 0) for above in range(begun, at)), 2)
                draft.fact(fact, "", amount, "currency", currency=draft.setting.currency,
                           rows=(f"price:{segment}:{step}",))  # fmt: skip
                cells[at, column] = Cell(amount, f"=SUM({letter}{begun + 1}:{letter}{at})", "two", fact)
            at += 1
            begun = at
            sums.append(at)
    for column in range(1, len(segments) + 1):
        letter = column_letters(column)
        formula = f"={letter}{FIRST + 1}" + "".join(f"-{letter}{row}" for row in sums)
        cells[at - 1, column] = replace(cells[at - 1, column], formula=formula)
    charts = tuple(
        replace(one, categories=_until(one.categories, at), values=tuple((n, _until(v, at)) for n, v in one.values))
        for one in sheet.charts
    )
    return replace(sheet, cells=cells, charts=charts)


def _until(reference: str, row: int) -> str:
    """A range of one column with another last row."""
    return f"{reference.rpartition('$')[0]}${row}"


T10 = Operator("T10", "subtotals among the rows", "plan", apply)
