"""T21: a document from after the cut-off, which must not be used."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from journeyman.worlds.draft import Draft
from journeyman.worlds.events.bids import bid_sender
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.operator import Operator


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """A bidder writes again after the last day for offers, and the banker says that it does not count."""
    setting, banker = draft.setting, draft.roles["banker"]
    standing = draft.truth.rows("SELECT * FROM bid WHERE valid_to IS NULL ORDER BY id")
    bid = rng.choice(standing)
    price = bid["price"] + 100_000 * rng.randrange(30, 110)
    due = setting.today - timedelta(days=5)
    day = (setting.today - timedelta(days=2)).isoformat()
    event = draft.event("late offer", day, f"{bid['bidder']} writes after the last day")
    fact = f"bid:{bid['id']}:late"
    late = draft.fact(
        fact,
        setting.money(price),
        price,
        "currency",
        subject=f"bid:{bid['bidder']}",
        predicate="late price",
        currency=bid["currency"],
        as_of=day,
        known=day,
    )
    when = setting.instant(day, rng)
    first = draft.mail(
        event,
        when,
        bid_sender(bid),
        [banker],
        f"{draft.notes['deal']['name']}: further improvement",
        f"Dear {banker['name']},\n\nwe are prepared to pay {late}.\n\nAuthorised signatory\n{bid['bidder']}\n",
    )
    cut = draft.fact("bids:cut-off", setting.day(due), due.isoformat(), "date", subject="deal:D1", predicate="cut-off")
    draft.mail(
        event,
        when + timedelta(hours=2),
        banker,
        [bid_sender(bid), draft.roles["cfo"]],
        f"Re: {first.subject}",
        f"Dear Sirs,\n\nimprovements were possible until {cut}. Your message arrived after that day and is not taken"
        f" into account.\n\n{banker['name']}\n",
        reply_to=first,
    )
    return [
        Planted(
            "T21",
            f"bid:{bid['bidder']}",
            ("bids:cut-off", f"bid:{bid['id']}:price"),
            {"price": price},
            {"price": bid["price"]},
            (fact,),
        )
    ]


T21 = Operator("T21", "information from after the cut-off", "plan", apply)
