"""T7: one group under several names, and two unrelated companies with nearly one name."""

from __future__ import annotations

from random import Random

from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.operator import Operator


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """Suppliers to be merged by the master list; customers that a mail says are to be kept apart, or merged."""
    return [*_suppliers(draft), *_customers(draft, rng), _bidder(draft, rng)]


def _suppliers(draft: Draft) -> list[Planted]:
    planted = []
    totals = {
        r["supplier_id"]: r["total"]
        for r in draft.truth.rows("SELECT supplier_id, SUM(amount) AS total FROM spend GROUP BY supplier_id")
    }
    groups: dict[str, list[dict[str, str]]] = {}
    for row in draft.notes["suppliers"]:
        groups.setdefault(row["group_name"], []).append(row)
    for name, rows in sorted(groups.items()):
        if len(rows) > 1:
            amounts = [totals.get(row["id"], 0) for row in rows]
            planted.append(
                Planted(
                    "T7",
                    f"supplier:{name}",
                    tuple(f"supplier:{row['id']}:group" for row in rows),
                    {"total": max(amounts)},
                    {"total": sum(amounts)},
                )
            )
    return planted[:4]


def _customers(draft: Draft, rng: Random) -> list[Planted]:
    """The last four customers share their first words with the first four; two of them are subsidiaries."""
    customers, planted = draft.notes["customers"], []
    billed = {
        r["customer_id"]: r["total"]
        for r in draft.truth.rows("SELECT customer_id, SUM(net) AS total FROM invoice GROUP BY customer_id")
    }
    day = draft.setting.instant(draft.setting.today.isoformat(), rng)
    for twin, other in zip(customers[-4:], customers[:4], strict=True):
        is_related = twin["parent_id"] is not None
        event = draft.event("names explained", draft.setting.today, f"{twin['name']} and {other['name']}")
        words = (
            "is a subsidiary of it and counts with it"
            if is_related
            else "is another company and has nothing to do with it"
        )
        stated = draft.fact(
            f"customer:{twin['id']}:relation",
            words,
            "subsidiary" if is_related else "unrelated",
            rows=(f"customer:{twin['id']}",),
        )
        draft.mail(
            event,
            day,
            draft.roles["sales"],
            [draft.roles["fpa"]],
            f"{other['name'].split()[0]}: which is which",
            f"You asked about {twin['name']} ({twin['id']}). Next to {other['name']} ({other['id']}), it {stated}.\n\n"
            f"{draft.roles['sales']['name']}\n",
        )
        mine, theirs = billed.get(twin["id"], 0), billed.get(other["id"], 0)
        planted.append(
            Planted(
                "T7",
                f"customer:{other['id']}",
                (f"customer:{twin['id']}:relation",),
                {"billed": theirs if is_related else mine + theirs},
                {"billed": mine + theirs if is_related else theirs},
            )
        )
    return planted


def _bidder(draft: Draft, rng: Random) -> Planted:
    """A company that belongs to a bidder writes that it supports the offer: it is no seventh bidder."""
    bid = rng.choice(draft.notes["bids"])
    event = draft.event("names explained", bid["date"], f"{bid['bidder_alias']} supports the offer of {bid['bidder']}")
    stated = draft.fact(
        f"bidder:{bid['id']}:alias", f"{bid['bidder_alias']}, a subsidiary of {bid['bidder']}", bid["bidder"]
    )
    draft.mail(
        event,
        draft.setting.instant(bid["date"], rng),
        draft.roles["associate"],
        [draft.roles["banker"]],
        f"{bid['bidder_alias']}",
        f"A letter came from {stated}. It confirms the equity commitment of the group and is"
        f" no offer of its own.\n\n{draft.roles['associate']['name']}\n",
    )
    return Planted("T7", f"bid:{bid['bidder']}", (f"bidder:{bid['id']}:alias",), {"bidders": 7}, {"bidders": 6})


T7 = Operator("T7", "alias entities", "plan", apply)
