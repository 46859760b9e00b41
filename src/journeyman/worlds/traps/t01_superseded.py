"""T1: an older or unsigned version lies beside the one that counts."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

from journeyman.worlds.content import Paragraph, Prose
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.bids import bid_letter, bid_path
from journeyman.worlds.events.contracts import amendment_blocks
from journeyman.worlds.events.personnel import hris_book, hris_path, hris_rows
from journeyman.worlds.plan import Planted
from journeyman.worlds.simulate.legal import draw_params
from journeyman.worlds.traps.operator import Operator
from journeyman.worlds.traps.rights import amend_series_a
from journeyman.worlds.traps.t01_objection import objection

NUM_CONTRACTS = 3


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """Unsigned amendments newer than the signed ones, an unsigned offer, an old personnel export called final."""
    planted = [_amendment(draft, rng, contract) for contract in _amended(draft, rng)]
    planted += [
        _offer(draft, rng),
        _personnel(draft, rng),
        *_control(draft, rng),
        _covenant(draft),
        objection(draft, rng),
    ]
    return [*planted, amend_series_a(draft, rng)]


def _covenant(draft: Draft) -> Planted:
    """The facilities agreement still states the level of leverage that an amendment has replaced."""
    before, after = (
        float(draft.truth.value("SELECT threshold FROM covenant WHERE id = :i", i=row["id"]))
        for row in draft.truth.rows("SELECT id FROM covenant WHERE name = 'leverage' ORDER BY known_from, id")
    )
    return Planted("T1", "covenant:leverage", ("covenant:leverage:amended",), {"level": before}, {"level": after},
                   ("covenant:leverage",))  # fmt: skip


def _amended(draft: Draft, rng: Random) -> list[dict[str, object]]:
    return rng.sample([c for _, c in sorted(draft.notes["contracts"].items()) if "amendment" in c], NUM_CONTRACTS)


def _control(draft: Draft, rng: Random) -> list[Planted]:
    """A draft that would turn a consent, or a right to terminate, into a notice; nobody signed it."""
    found = [
        (contract, clause)
        for _, contract in sorted(draft.notes["contracts"].items())
        for clause in contract["clauses"]
        if "amendment" not in contract
        and clause["type"] == "change_of_control"
        and clause["params_json"]["value"] in ("consent", "termination")
    ]
    if not found:
        return []
    contract, clause = rng.choice(found)
    right = clause["params_json"]
    other = {**right, "value": "notice", "days": next(d for d in (15, 30) if d != right["days"])}
    day = (draft.setting.today - timedelta(days=rng.randrange(6, 40))).isoformat()
    event = draft.event("draft circulated", day, f"Unsigned draft of an amendment to {contract['id']}")
    bait = f"clause:{clause['id']}:draft"
    blocks = amendment_blocks(draft, contract, {**clause, "params_json": other}, day, bait)
    blocks.append(Paragraph("Draft for discussion. Not signed; subject to approval by the boards of both parties."))
    title = f"Amendment to {contract['id']}, draft"
    draft.document(
        f"legal/amendments/{draft.setting.file_name(contract['id'], 'amendment v2 final')}.docx",
        "amendment_draft",
        Prose(tuple(blocks), title, header="v2 final"),
        event,
        day=day,
        author=draft.roles["counsel"]["name"],
        version="draft 2",
        subject=f"contract:{contract['id']}",
    )
    return [
        Planted(
            "T1",
            f"clause:{contract['id']}:change_of_control",
            (f"clause:{clause['id']}",),
            {"draft": "notice", "days": other["days"]},
            {"draft": right["value"], "days": right["days"]},
            (bait,),
        )
    ]


def _amendment(draft: Draft, rng: Random, contract: dict[str, object]) -> Planted:
    amendment = contract["amendment"]
    assert isinstance(amendment, dict)
    new, old = amendment["new"], amendment["old"]
    other = draw_params(rng, new["type"], draft.setting.currency)
    while other["value"] in (new["params_json"]["value"], old["params_json"]["value"], 0):
        other = draw_params(rng, new["type"], draft.setting.currency)
    day = min(date.fromisoformat(amendment["date"]) + timedelta(days=rng.randrange(9, 25)), draft.setting.today)
    event = draft.event("draft circulated", day, f"Unsigned draft of a further amendment to {contract['id']}")
    bait = f"clause:{new['id']}:draft"
    blocks = amendment_blocks(draft, contract, {**new, "params_json": other}, day.isoformat(), bait)
    blocks.append(Paragraph("Draft for discussion. Not signed; subject to approval by the boards of both parties."))
    title = f"Amendment no. 2 to {contract['id']}, draft"
    path = f"legal/amendments/{draft.setting.file_name(str(contract['id']), 'amendment v2 final')}.docx"
    draft.document(
        path,
        "amendment_draft",
        Prose(tuple(blocks), title, header="v2 final"),
        event,
        day=day,
        author=draft.roles["counsel"]["name"],
        version="draft 2",
        subject=f"contract:{contract['id']}",
    )
    fact = f"clause:{new['id']}"
    return Planted(
        "T1",
        f"clause:{contract['id']}:{new['type']}",
        (fact,),
        {"draft": other["value"], "original": old["params_json"]["value"]},
        {"draft": new["params_json"]["value"], "original": new["params_json"]["value"]},
        (bait, f"clause:{old['id']}"),
    )


def _offer(draft: Draft, rng: Random) -> Planted:
    bid = draft.truth.rows("SELECT * FROM bid WHERE supersedes IS NULL ORDER BY id")[rng.randrange(6)]
    price = bid["price"] + 100_000 * rng.randrange(20, 90)
    day = (date.fromisoformat(bid["date"]) + timedelta(days=2)).isoformat()
    event = draft.event("draft circulated", day, f"Unsigned draft of an offer of {bid['bidder']}")
    fact = f"bid:{bid['id']}:draft"
    letter = bid_letter(draft, {**bid, "price": price, "date": day}, fact, "DRAFT, not signed, for discussion only.")
    blocks = letter.blocks[:-1]
    draft.document(
        bid_path(draft, bid, "revised v2"),
        "bid_draft",
        letter.with_blocks(blocks),
        event,
        day=day,
        author=bid["bidder"],
        version="draft 2",
        subject=f"bid:{bid['bidder']}",
    )
    return Planted(
        "T1",
        f"bid:{bid['bidder']}",
        (f"bid:{bid['id']}:price",),
        {"price": price},
        {"price": bid["price"]},
        (f"{fact}:price",),
    )


def _personnel(draft: Draft, rng: Random) -> Planted:
    """An export of some weeks before, in which several people have other managers."""
    day = (draft.setting.today - timedelta(days=rng.randrange(50, 75))).isoformat()
    rows = hris_rows(draft, draft.setting.today.isoformat())
    leads = {row["unit"]: row["id"] for row in rows if row["grade"] == "G3"}
    moved = {row["id"] for row in rng.sample([row for row in rows if row["grade"] == "G5"], 6)}
    ceo = draft.roles["ceo"]["id"]
    old = [
        {**row, "manager_id": leads.get(row["unit"], ceo) if row["id"] in moved else row["manager_id"]} for row in rows
    ]
    event = draft.event("draft circulated", day, "Earlier export of personnel data")
    draft.document(
        hris_path(draft, "v2 final", day),
        "hris_old",
        hris_book(draft, old, "hris_old", f"As of {day}."),
        event,
        day=day,
        author=draft.roles["hrbp"]["name"],
        version="v2 final",
    )
    layers = {row["id"]: row["manager_id"] for row in rows}
    first = min(moved)
    return Planted(
        "T1",
        "hris",
        tuple(f"hris:{one}:manager" for one in sorted(moved)),
        {"manager": leads.get(next(r["unit"] for r in rows if r["id"] == first), ceo), "moved": len(moved)},
        {"manager": layers[first], "moved": 0},
        tuple(f"hris_old:{one}:manager" for one in sorted(moved)),
    )


T1 = Operator("T1", "superseded version", "plan", apply)
