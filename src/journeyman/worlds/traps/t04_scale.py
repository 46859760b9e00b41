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
    return [*planted, _report(draft), _peers(draft)]


def _report(draft: Draft) -> Planted:
    """Reports count revenue in thousands; slides and summaries of the same lines are asked for in millions."""
    year = draft.setting.years[-1]
    names = draft.setting.trade["lines"]
    facts = tuple(f"revenue_line:{number}:FY{year}" for number in range(1, len(names) + 1))
    return Planted("T4", f"revenue_line:FY{year}", facts, {"scale": 1000}, {"scale": 1_000_000})


def _peers(draft: Draft) -> Planted:
    """The workbook of the peers counts in thousands, its last column in millions, as the head of that column says."""
    draft.notes["peers in thousands"] = True
    peer = draft.notes["comps"][0]
    return Planted(
        "T4",
        "comps:market_cap",
        ("comps:scale", "comps:scale:market_cap"),
        {"market_cap": peer["market_cap"] // 1000},
        {"market_cap": peer["market_cap"]},
        (f"peer:{peer['id']}:market_cap",),
    )


T4 = Operator("T4", "scale mix", "truth", apply)
