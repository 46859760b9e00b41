"""T12 in legal papers: a register that differs from the contracts, extracts that differ from the minutes.

Each says itself which of the two counts.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

from journeyman.worlds.content import Block, Book, Cell, Heading, Paragraph, Prose
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.tables import sheet_of
from journeyman.worlds.plan import Planted
from journeyman.worlds.truth.store import Row

DAYS = (10, 15, 20, 30, 45)
EFFECTS = ("consent", "notice", "termination")
STEPS = (-20_000, -10_000, 10_000, 20_000)


def contract_register(draft: Draft, rng: Random) -> list[Planted]:
    """A register of what a change of control does to each contract, wrong for some of every kind."""
    contracts = [one for _, one in sorted(draft.notes["contracts"].items())]
    clauses = {one["id"]: next(c for c in one["clauses"] if c["type"] == "change_of_control") for one in contracts}
    shown: dict[str, dict[str, Any]] = {}
    for kind in sorted({one["kind"] for one in contracts}):
        own = [one["id"] for one in contracts if one["kind"] == kind]
        sites = [one for one in own if clauses[one]["params_json"]["value"] != "none"]
        for one in rng.sample(sites, min(len(sites), 1 + len(sites) // 6)):
            shown[one] = _misstated(rng, clauses[one]["params_json"])
    if not shown:
        return []
    lines, planted = [], []
    for one in contracts:
        number, params = one["id"], clauses[one["id"]]["params_json"]
        right = {"effect": params["value"], "days": params.get("days", 0)}
        said = shown.get(number, right)
        bait = f"contract_register:{number}" if number in shown else ""
        if bait:
            draft.fact(bait, "", said["effect"], predicate="change of control", subject=f"contract:{number}")
            facts = (f"clause:{clauses[number]['id']}", "contract_register:precedence")
            planted.append(Planted("T12", f"consents:{number}", facts, said, right, (bait,)))
        lines.append((number, one["counterparty"], Cell(said["effect"], fact=bait), said["days"] or None))
    rule = draft.fact("contract_register:precedence", "the contract and its signed amendments count", "contract")
    sheet = sheet_of(
        "Register", ("Number", "Counterparty", "Effect", "Days"), lines,
        title="Contract register: change of control", widths=(10, 36, 16, 10),
        note=f"Kept for orientation. Where this register and a signed contract differ, {rule}.",
    )  # fmt: skip
    day = draft.setting.today - timedelta(days=rng.randrange(27, 60))
    draft.document(
        f"legal/{draft.setting.file_name('contract register')}.xlsx",
        "contract_register",
        Book((sheet,), "Contract register"),
        draft.event("contracts registered", day, "Register of contracts drawn up"),
        day=day,
        author=draft.roles["counsel"]["name"],
    )
    return planted


def _misstated(rng: Random, params: dict[str, Any]) -> dict[str, Any]:
    """Other days, another effect, or nothing at all."""
    right = {"effect": params["value"], "days": params["days"]}
    days = rng.choice([one for one in DAYS if one != right["days"]])
    effect = rng.choice([one for one in EFFECTS if one != right["effect"]])
    return rng.choice(({**right, "days": days}, {**right, "effect": effect}, {"effect": "none", "days": 0}))


def extracts(draft: Draft, rng: Random) -> list[Planted]:
    """Extracts from minutes: one contradicts a sound entry of the register, one agrees with an entry that is wrong."""
    rows = draft.truth.rows(
        "SELECT s.holder, s.shares, s.share_class, s.date, r.id, r.person, r.shares AS resolved FROM share_entry s"
        " JOIN resolution r ON r.id = s.reference ORDER BY s.id"
    )
    rows = rows[2:-2] or rows  # tasks may leave out the first and the last
    torn = [row for row in rows if (row["holder"], row["shares"]) != (row["person"], row["resolved"])]
    sound = [row for row in rows if row not in torn]
    chosen = [
        *((row, row["holder"], row["shares"]) for row in rng.sample(torn, min(1, len(torn)))),
        *((row, row["person"], row["resolved"] + rng.choice(STEPS)) for row in rng.sample(sound, min(1, len(sound)))),
    ]
    return [_extract(draft, rng, row, holder, shares) for row, holder, shares in chosen]


def _extract(draft: Draft, rng: Random, row: Row, holder: str, shares: int) -> Planted:
    setting, number = draft.setting, row["id"]
    day = setting.today - timedelta(days=rng.randrange(30, 70))
    event = draft.event("extract drawn up", day, f"Extract from the minutes with {number} for the bank")
    bait = {"shares": f"extract:{number}:shares", "holder": f"extract:{number}:holder"}
    count = draft.fact(bait["shares"], setting.number(shares), shares, "count", as_of=row["date"])
    who = draft.fact(bait["holder"], holder, holder, as_of=row["date"])
    rule = draft.fact("minutes:precedence", "the signed minutes count", "minutes")
    blocks: list[Block] = [
        Heading(f"Extract from minutes of the board of {setting.company}", 0),
        Paragraph(f"Meeting of {setting.day(row['date'])}; extract for the bank of {setting.day(day)}"),
        Heading("Issue of shares"),
        Paragraph(
            f"Resolution {number}: IT WAS RESOLVED to allot and issue {count} {row['share_class']} shares to {who},"
            " fully paid in cash, and to instruct the secretary to enter them in the register."
        ),
        Paragraph(f"For information only, typed from notes. Where an extract and the minutes differ, {rule}."),
    ]
    draft.document(
        f"legal/corporate/{setting.file_name('extract of board minutes', row['date'], number)}.pdf",
        "minutes_extract",
        Prose(tuple(blocks), "Extract from board minutes", footer=setting.layout["footer"]),
        event,
        day=day,
        author=draft.roles["secretary"]["name"],
        subject=f"resolution:{number}",
    )
    facts = (f"resolution:{number}:shares", f"resolution:{number}:holder", "minutes:precedence")
    right = {"shares": row["resolved"], "holder": row["person"]}
    return Planted("T12", f"resolution:{number}", facts, {"shares": shares, "holder": holder}, right,
                   tuple(bait.values()))  # fmt: skip
