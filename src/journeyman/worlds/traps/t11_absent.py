"""T11: something that nobody recorded; the record says so, and whom to ask."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.operator import Operator
from journeyman.worlds.traps.t11_addback import unsupported
from journeyman.worlds.traps.t11_unfiled import unfiled

TOPICS = (
    ("the energy used per {unit}", "plant", 41),
    ("the share of women among applicants", "hrbp", 38),
    ("the cost of returns in {line}", "controller", 120_000),
    ("the number of visits to {segment} customers", "sales", 214),
    ("the hours spent on {supply}", "procurement", 1830), ("the click rate of the newsletter", "marketing", 27),
    ("the downtime of the old planning system", "platform", 64), ("the lead time of {line} before the move", "coo", 19),
)  # fmt: skip


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """Three topics: a colleague asks in chat, the answer is that it was not recorded, and who would know."""
    trade, planted = draft.setting.trade, []
    for number, (text, role, guess) in enumerate(rng.sample(TOPICS, 3), start=1):
        topic = text.format(
            unit=trade["unit"],
            line=rng.choice(trade["lines"]).lower(),
            segment=rng.choice(trade["segments"]).lower(),
            supply=rng.choice(trade["supplies"]),
        )
        day = (draft.setting.today - timedelta(days=rng.randrange(9, 60))).isoformat()
        event = draft.event("question asked", day, f"Nobody recorded {topic}")
        who, year = draft.roles[role], draft.setting.years[-1]
        when = draft.setting.instant(day, rng)
        first = draft.say(event, when, "general", draft.roles["fpa"], f"Does anyone have {topic} for FY{year}?")
        words = draft.fact(
            f"absent:{number}:whom", who["name"], who["name"], subject=f"absent:{number}", predicate=topic
        )
        draft.say(
            event,
            when + timedelta(minutes=31),
            "general",
            draft.roles["controller"],
            f"That was never recorded for FY{year}, so please do not estimate it. If anybody knows, it is {words}.",
            first,
        )
        before = draft.fact(f"absent:{number}:earlier", str(guess), guess, "count", subject=f"absent:{number}")
        draft.say(
            event,
            when + timedelta(minutes=44),
            "general",
            draft.roles["controller"],
            f"For FY{year - 1} it was {before}, but that says nothing about FY{year}.",
            first,
        )
        planted.append(
            Planted(
                "T11",
                f"absent:{number}:{topic}:FY{year}",
                (f"absent:{number}:whom",),
                {"value": guess},
                {"value": "not in the record", "whom": who["name"]},
                (f"absent:{number}:earlier",),
            )
        )
    return [*planted, *_unanswered(draft), *unsupported(draft), *unfiled(draft, rng)]


def _unanswered(draft: Draft) -> list[Planted]:
    """Strata of the survey from which nobody answered; the note on the method forbids to estimate their score."""
    rows = draft.truth.rows(
        "SELECT id, segment FROM stratum WHERE segment NOT IN"
        " (SELECT segment FROM survey_response WHERE valid_to IS NULL) ORDER BY id"
    )
    return [
        Planted("T11", f"survey:{row['segment']}", (f"stratum:{row['id']}:population",), {"score": 0},
                {"score": "left out"})
        for row in rows
    ]  # fmt: skip


T11 = Operator("T11", "missing datum", "plan", apply)
