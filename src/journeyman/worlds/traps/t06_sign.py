"""T6: a sign: an item among deductions that is added, a formula that adds where it must subtract."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from journeyman.worlds.draft import Draft
from journeyman.worlds.events.models import YEARS, debt_assumptions, debt_book, debt_values
from journeyman.worlds.plan import Planted
from journeyman.worlds.render.xlsx import column_letters
from journeyman.worlds.simulate.market import STEPS
from journeyman.worlds.traps.edits import one_of_kind
from journeyman.worlds.traps.operator import Operator


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """Freight that is charged to customers, shown as a negative deduction; a wrong sign in the debt model."""
    return [*_waterfall(draft, rng), *_model(draft, rng)]


def _waterfall(draft: Draft, rng: Random) -> list[Planted]:
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
    from journeyman.worlds.traps.edits import revise_sheet, with_cells

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


T6 = Operator("T6", "sign or parenthesis", "plan", apply)
