"""T18: a correction that stands only in a later mail or chat message."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.operator import Operator


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """A bidder improves its offer by mail; an add-back is withdrawn in chat; a payment term is corrected in chat."""
    return [_bid(draft, rng), _addback(draft, rng)]


def _bid(draft: Draft, rng: Random) -> Planted:
    bid = rng.choice(draft.notes["bids"])
    price = bid["price"] + 100_000 * rng.randrange(15, 60)
    while any(one["price"] == price for one in draft.notes["bids"]):
        price += 100_000
    day = (date.fromisoformat(bid["date"]) + timedelta(days=3)).isoformat()
    row = {**bid, "id": f"{bid['id']}b", "price": price, "date": day, "supersedes": bid["id"]}
    event = draft.event("bid improved", day, f"{bid['bidder']} improves its offer", bid=row["id"])
    draft.truth.close("bid", bid["id"], valid_to=day)
    draft.truth.add("bid", row, event=event, at=day)
    return Planted(
        "T18",
        f"bid:{bid['bidder']}",
        (f"bid:{row['id']}:price",),
        {"price": bid["price"]},
        {"price": price},
        (f"bid:{bid['id']}:price",),
    )


def _addback(draft: Draft, rng: Random) -> Planted:
    """An item that the mail supports turns out to recur."""
    row = rng.choice(draft.truth.rows("SELECT * FROM addback WHERE accepted = 1 ORDER BY id"))
    total = int(draft.truth.value("SELECT SUM(amount) FROM addback WHERE accepted = 1"))
    day = (draft.setting.today - timedelta(days=2)).isoformat()
    event = draft.event("add-back withdrawn", day, f"{row['id']} withdrawn")
    when = draft.setting.instant(day, rng)
    words = draft.fact(
        f"addback:{row['id']}:withdrawn",
        "we had the same cost last year and will have it again",
        "rejected",
        subject=f"addback:{row['id']}",
        predicate="withdrawn",
        known=day,
        rows=(f"addback:{row['id']}",),
    )
    draft.say(
        event,
        when,
        "finance",
        draft.roles["controller"],
        f"Correction on {row['id']} ({row['description']}): {words}. Please take it out of the adjustments.",
    )
    draft.truth.recode("addback", row["id"], "accepted", 0)
    draft.notes.setdefault("withdrawn", set()).add(row["id"])
    return Planted(
        "T18",
        f"addback:{row['id']}",
        (f"addback:{row['id']}:withdrawn",),
        {"total": total},
        {"total": total - row["amount"]},
        (f"addback:{row['id']}:reason",),
    )


T18 = Operator("T18", "correction in a later message", "truth", apply)
