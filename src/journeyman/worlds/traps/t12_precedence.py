"""T12: sources contradict each other; a rule says which of them counts."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.operator import Operator
from journeyman.worlds.traps.t12_papers import contract_register, extracts


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """Market studies under a stated order; a headcount of which a wiki says another; registers and extracts."""
    planted = []
    by_year: dict[int, dict[int, int]] = {}
    for row in draft.notes["estimates"]:
        by_year.setdefault(row["year"], {})[row["rank"]] = row["amount"]
    for year, amounts in sorted(by_year.items()):
        planted.append(
            Planted(
                "T12",
                f"market:{year}",
                ("market:precedence", f"market:1:{year}"),
                {"amount": amounts[2], "mean": round(sum(amounts.values()) / 3)},
                {"amount": amounts[1], "mean": amounts[1]},
                (f"market:2:{year}", f"market:3:{year}"),
            )
        )
    return [*planted, _headcount(draft, rng), *contract_register(draft, rng), *extracts(draft, rng)]


def _headcount(draft: Draft, rng: Random) -> Planted:
    day = (draft.setting.today - timedelta(days=rng.randrange(10, 30))).isoformat()
    event = draft.event("question asked", day, "Two figures of headcount")
    right = int(draft.truth.value("SELECT COUNT(*) FROM person WHERE grade IS NOT NULL AND valid_to IS NULL"))
    wrong = right + rng.choice((-5, -3, 4, 6))
    good = draft.fact("headcount:parent", str(right), right, "count")
    bad = draft.fact("headcount:wiki", str(wrong), wrong, "count")
    rule = draft.fact(
        "headcount:precedence", "the personnel system counts, the wiki is a convenience", "personnel system"
    )
    when = draft.setting.instant(day, rng)
    first = draft.say(
        event, when, "general", draft.roles["marketing"], f"The wiki says we are {bad} people at the parent."
    )
    draft.say(
        event,
        when + timedelta(minutes=20),
        "general",
        draft.roles["hrbp"],
        f"The personnel system has {good}. Where they differ, {rule}.",
        first,
    )
    return Planted(
        "T12",
        "headcount:parent",
        ("headcount:parent", "headcount:precedence"),
        {"count": wrong},
        {"count": right},
        ("headcount:wiki",),
    )


T12 = Operator("T12", "contradiction with a rule of precedence", "plan", apply)
