"""T1 at the statement of account: an unsigned draft that gives another time to object to it."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

from journeyman.worlds.content import Paragraph, Prose
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.contracts import amendment_blocks
from journeyman.worlds.plan import Planted
from journeyman.worlds.simulate.calendars import add_working_days
from journeyman.worlds.simulate.legal import draw_params


def objection(draft: Draft, rng: Random) -> Planted:
    """A draft of an amendment to the contract under which the statement was sent; nobody signed it."""
    statement = draft.notes["statement"]
    contract = draft.notes["contracts"][statement["contract"]]
    clause = next(row for row in contract["clauses"] if row["type"] == "objection")
    right = clause["params_json"]
    other = draw_params(rng, "objection", draft.setting.currency)
    while other["value"] == right["value"]:
        other = draw_params(rng, "objection", draft.setting.currency)
    day = (draft.setting.today - timedelta(days=rng.randrange(14, 40))).isoformat()
    event = draft.event("draft circulated", day, f"Unsigned draft of an amendment to {contract['id']}")
    bait = f"clause:{clause['id']}:draft"
    blocks = amendment_blocks(draft, contract, {**clause, "params_json": other}, day, bait)
    blocks.append(Paragraph("Draft for discussion. Not signed; subject to approval by the boards of both parties."))
    draft.document(
        f"legal/amendments/{draft.setting.file_name(contract['id'], 'amendment objection period final')}.docx",
        "amendment_draft",
        Prose(tuple(blocks), f"Amendment to {contract['id']}, draft", header="final"),
        event,
        day=day,
        author=draft.roles["counsel"]["name"],
        version="draft 2",
        subject=f"contract:{contract['id']}",
    )
    off = {row["date"] for row in draft.truth.rows("SELECT date FROM holiday")}
    received = date.fromisoformat(statement["received"])
    wrong, good = (
        {"days": days, "due": add_working_days(received, days, off).isoformat()}
        for days in (other["value"], right["value"])
    )
    return Planted("T1", f"statement:{contract['id']}", (f"clause:{clause['id']}",), wrong, good, (bait,))
