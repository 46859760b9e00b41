"""T7: one group under several names, and two unrelated companies with nearly one name."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random

from journeyman.worlds.content import Block, Table, mark
from journeyman.worlds.data import pack
from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.edits import one_of_kind, revise_blocks
from journeyman.worlds.traps.operator import Operator


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """Suppliers to be merged by the master list; customers that a mail says are to be kept apart, or merged; a company
    that a bidder owns; a party that the disclosure schedule calls by its former name."""
    return [*_suppliers(draft), *_customers(draft, rng), _bidder(draft, rng), *_disclosed(draft, rng)]


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


def _disclosed(draft: Draft, rng: Random) -> list[Planted]:
    """A line of the schedule that has no number and the name that the party had before."""
    found = one_of_kind(draft, "disclosure_schedule")
    contracts = draft.notes["contracts"]
    rows = draft.truth.rows("SELECT contract_id FROM disclosure WHERE listed = 1 ORDER BY contract_id")
    if found is None or len(rows) < 2:
        return []
    contract = contracts[rng.choice(rows)["contract_id"]]
    known = " ".join(str(one["counterparty"]) for one in contracts.values())
    stems = [stem for stem in pack("firms")["suppliers"] if stem not in known]
    alias = f"{rng.choice(stems)} {rng.choice(pack('firms')['customer_words'])} {draft.setting.locale['forms'][0]}"
    listed = draft.fact(f"disclosure:{contract['id']}:alias", alias, contract["id"], subject="disclosure")

    def change(blocks: list[Block]) -> list[Block]:
        return [replace(one, rows=tuple(map(renamed, one.rows))) if isinstance(one, Table) else one for one in blocks]

    def renamed(row: tuple[str, ...]) -> tuple[str, ...]:
        return ("", listed, *row[2:]) if contract["id"] in row[0] else row

    revise_blocks(draft, found.path, change)
    day = (draft.setting.today - timedelta(days=rng.randrange(3, 20))).isoformat()
    event = draft.event("names explained", day, f"{alias} is {contract['counterparty']} today")
    number = mark(f"disclosure:{contract['id']}", contract["id"])
    stated = draft.fact(f"disclosure:{contract['id']}:name", contract["counterparty"], contract["counterparty"],
                        subject="disclosure")  # fmt: skip
    draft.mail(
        event,
        draft.setting.instant(day, rng),
        draft.roles["secretary"],
        [draft.roles["counsel"]],
        f"{alias}: new name",
        f"{alias} is called {stated} today. The draft disclosure schedule still has its agreement, {number}, under the"
        f" old name.\n\n{draft.roles['secretary']['name']}\n",
    )
    total = len(rows)
    facts = (f"disclosure:{contract['id']}:name", f"disclosure:{contract['id']}")
    return [Planted("T7", f"disclosure:{contract['id']}", facts, {"listed": total - 1}, {"listed": total},
                    (f"disclosure:{contract['id']}:alias",))]  # fmt: skip


T7 = Operator("T7", "alias entities", "plan", apply)
