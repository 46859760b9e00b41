"""T13: a number was pasted over a formula, and everything below follows the stale number."""

from __future__ import annotations

from random import Random

from journeyman.worlds.draft import Draft
from journeyman.worlds.events.models import YEARS, dcf_assumptions, dcf_book, dcf_values
from journeyman.worlds.plan import Planted
from journeyman.worlds.render.xlsx import column_letters
from journeyman.worlds.traps.edits import one_of_kind
from journeyman.worlds.traps.operator import Operator


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """EBITDA of one year of the cash flow model is a number of an earlier version."""
    found = one_of_kind(draft, "dcf_model")
    assert found is not None
    given = dcf_assumptions(draft)
    year = rng.randrange(2, YEARS + 1)
    right = dcf_values(given)
    pasted = round(right["ebitda"][year - 1] * rng.choice((0.91, 0.94, 1.07, 1.1)))
    wrong = dcf_values(given, {year: pasted})
    draft.plan.revise(found.path, dcf_book(draft, given, {year: pasted}))
    cell = f"DCF!{column_letters(year)}5"
    return [
        Planted(
            "T13",
            f"model:dcf:{cell}",
            ("dcf:margin", "dcf:wacc"),
            {"enterprise": wrong["enterprise"], "cell": pasted},
            {"enterprise": right["enterprise"], "cell": right["ebitda"][year - 1]},
        )
    ]


T13 = Operator("T13", "stale number inside formulas", "plan", apply)
