"""T4: one table counts in thousands where the others count in millions; its header says so."""

from __future__ import annotations

from random import Random

from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.operator import Operator


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """The study that ranks first is in thousands, or the one that ranks second."""
    rank = rng.choice((1, 1, 2))
    planted = []
    for row in draft.notes["estimates"]:
        if row["rank"] == rank:
            row["scale"] = 1000
            draft.truth.recode("market_estimate", row["id"], "scale", 1000)
            fact = f"market:{rank}:{row['year']}"
            planted.append(
                Planted(
                    "T4",
                    f"market:{row['year']}:{rank}",
                    (fact,),
                    {"amount": row["amount"] * 1000},
                    {"amount": row["amount"]},
                )
            )
    return [*planted, _report(draft)]


def _report(draft: Draft) -> Planted:
    """Reports count revenue in thousands; slides and summaries of the same lines are asked for in millions."""
    year = draft.setting.years[-1]
    names = draft.setting.trade["lines"]
    facts = tuple(f"revenue_line:{number}:FY{year}" for number in range(1, len(names) + 1))
    return Planted("T4", f"revenue_line:FY{year}", facts, {"scale": 1000}, {"scale": 1_000_000})


T4 = Operator("T4", "scale mix", "truth", apply)
