"""T6: a sign: an item among deductions that is added, a formula that adds where it must subtract, balances on the
normal side of their account, where others are positive in debit."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from journeyman.worlds.content import Sheet
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.models import YEARS, debt_assumptions, debt_book, debt_values
from journeyman.worlds.events.worksheets import WORKING_CAPITAL
from journeyman.worlds.plan import Planted
from journeyman.worlds.render.xlsx import column_letters
from journeyman.worlds.simulate.market import STEPS
from journeyman.worlds.traps.edits import one_of_kind, revise_sheet, with_cells
from journeyman.worlds.traps.operator import Operator

CREDITORS = ("liability", "debt", "equity", "revenue")
"""Kinds of accounts whose normal side is the credit."""

SIDE = "Balance: normal side of each account, so liabilities, equity and revenue are positive when in credit."


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """A negative deduction in the price waterfall; a wrong sign in the debt model; signs of a trial balance."""
    return [*_waterfall(draft, rng), *_model(draft, rng), *_trial_balance(draft, rng)]


def _waterfall(draft: Draft, rng: Random) -> list[Planted]:
    """Freight that is charged to customers, shown as a negative deduction."""
    found = one_of_kind(draft, "price_waterfall")
    assert found is not None
    prices = {
        (r["segment"], r["step"]): r["amount"] for r in draft.truth.rows("SELECT segment, step, amount FROM price")
    }
    segment = rng.choice(draft.setting.trade["segments"])
    freight, pocket = prices[segment, "freight"], prices[segment, "pocket_price"]
    right = round(pocket + 2 * freight, 2)
    for step, value in (("freight", -freight), ("pocket_price", right)):
        draft.truth.recode("price", f"{segment}:{step}", "amount", value)
    names = [step for step, _ in STEPS]
    column = draft.setting.trade["segments"].index(segment) + 1
    for step, value in (("freight", -freight), ("pocket_price", right)):
        _overwrite(draft, found.path, "Waterfall", (3 + names.index(step), column), value, f"price:{segment}:{step}")
    return [
        Planted(
            "T6",
            f"price:{segment}:freight",
            (f"price:{segment}:freight",),
            {"pocket_price": pocket},
            {"pocket_price": right},
        )
    ]


def _overwrite(draft: Draft, path: str, sheet: str, place: tuple[int, int], value: float, fact: str) -> None:
    revise_sheet(draft, path, sheet, lambda s: with_cells(s, {place: replace(s.cells[place], value=value)}))
    draft.plan.facts[fact] = replace(draft.plan.facts[fact], value=value)


def _model(draft: Draft, rng: Random) -> list[Planted]:
    """One closing balance adds the sweep; the values that the file shows follow the wrong formula."""
    found = one_of_kind(draft, "debt_model")
    assert found is not None
    given = debt_assumptions(draft)
    swept = [n for n, row in enumerate(debt_values(given), start=1) if n > 1 and row["swept"] > 0]
    year = rng.choice(swept or range(2, YEARS + 1))
    draft.plan.revise(found.path, debt_book(draft, given, wrong_year=year))
    letter = column_letters(year)
    draft.plan.documents[found.path] = replace(draft.plan.documents[found.path], version="with an error")
    return [
        Planted(
            "T6",
            f"model:debt:Schedule!{letter}10",
            ("debt_model:opening_term",),
            {"formula": f"={letter}4-{letter}7+{letter}9"},
            {"formula": f"={letter}4-{letter}7-{letter}9"},
        )
    ]


def _trial_balance(draft: Draft, rng: Random) -> list[Planted]:
    """The last trial balance of a subsidiary shows what is owed or earned without a sign, and says so below."""
    last, entity = draft.setting.label(draft.setting.months[-1]), rng.choice(("S1", "S2"))
    found = draft.plan.of_kind("trial_balance", f"{entity}:{last}")[0]
    base = f"balance:{entity}:{last}"
    kinds = {f"{base}:{row['id']}": row["kind"] for row in draft.truth.rows("SELECT id, kind FROM account")}
    codes = [code for code, _ in WORKING_CAPITAL]
    shown = {code: int(draft.plan.facts[f"{base}:{code}"].value) for code in codes}
    right = sum(shown.values())
    currency = draft.plan.facts[f"{base}:{codes[0]}"].currency
    for code in codes:
        if kinds[f"{base}:{code}"] in CREDITORS:
            shown[code] = -shown[code]
            draft.fact(f"{base}:{code}:shown", "", shown[code], "currency", currency=currency)
    words = draft.fact(f"trial_balance:{entity}:{last}:side", SIDE, "normal side", "text")

    def change(sheet: Sheet) -> Sheet:
        cells = dict(sheet.cells)
        for (row, column), cell in sheet.cells.items():
            if column == 4 and cell.fact and kinds[cell.fact] in CREDITORS:
                value = int(cell.value or 0)
                bait = f"{cell.fact}:shown" if f"{cell.fact}:shown" in draft.plan.facts else ""
                cells[row, column] = replace(cell, value=-value, fact=bait)
                side = 3 if value < 0 else 2
                cells[row, side] = replace(cells[row, side], fact=cell.fact)
            elif cell.style == "note":
                cells[row, column] = replace(cell, value=f"Amounts in {currency}. {words}")
            elif column == 4 and cell.formula:
                del cells[row, column]
        return replace(sheet, cells=cells)

    revise_sheet(draft, found.path, "TB", change)
    facts = (f"trial_balance:{entity}:{last}:side", *(f"{base}:{code}" for code in codes))
    baits = tuple(f"{base}:{code}:shown" for code in codes if kinds[f"{base}:{code}"] in CREDITORS)
    wrong: dict[str, str | int | float] = {"working_capital": sum(shown.values())}
    return [Planted("T6", f"{base}:sign", facts, wrong, {"working_capital": right}, baits)]


T6 = Operator("T6", "sign or parenthesis", "plan", apply)
