"""IB9: quality of earnings: which proposed add-backs stand, from the ledger, the mails on each, and what came later.

What makes it hard: management's list says nothing about the reasons, the ledger says where and when each was booked,
and one item that a mail supports is withdrawn in the chat.
"""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import sheet, xlsx_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.banking.sheets import one_file, records, sheet_rows
from journeyman.worlds.templates.matrices import matrix_checks
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "addbacks.xlsx"
SHEET = "Adjustments"
YES, NO = "accepted", "rejected"
KEYS = ("no", "account", "posted", "amount", "decision")
AGAINST = ("recurs every", "annually", "ordinary cycle", "third project", "no evidence")
"""Words of a background that speaks against an item."""


@dataclass(frozen=True)
class IB9:
    """See the module."""

    id: str = "IB9"
    domain: str = "banking"
    title: str = "proposed add-backs, accepted or rejected on their evidence"
    traps: tuple[str, ...] = ("T18",)

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        rows = office.truth.rows("SELECT * FROM addback ORDER BY id")
        planted = office.trap("T18", "addback:")
        late = planted.site.partition(":")[2] if planted else ""
        kept = {row["id"] for row in rng.sample(rows, max(0, min(len(rows), 5 + knobs.fan_out)))} | {late}
        rows = [row for row in rows if row["id"] in kept]
        items = [_item(office, row) for row in rows]
        decisions = {item["decision"] for item in items}
        if len(items) < 5 or len(decisions) < 2 or not office.of_kind("general_ledger"):
            raise Unbindable("too few items, or all of them with one decision")
        ask = {"numbers": [item["no"] for item in items], "file": FILE, "currency": office.setting.currency}
        careless = [{**item, "decision": YES} if item["no"] == late or not late else item for item in items]
        hard = [n for n, (item, other) in enumerate(zip(items, careless, strict=True)) if item != other]
        facts = [f"addback:{item['no']}:{what}" for item in items for what in ("amount", "reason")]
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, {"items": items},
            _checks(items, hard), (FILE,), _wrong(items, late), trap_blind={"items": careless},
            single={"items": [{**item, "account": "", "posted": "", "decision": YES} for item in items]},
            facts=tuple(facts + ([f"addback:{late}:withdrawn"] if late else [])),
            reads=tuple(office.of_kind(kind)[0].path for kind in ("addbacks", "general_ledger")),
            traps=("T18",) if late else (), unordered=(), knobs=knobs, notes={"items": len(items), "late": bool(late)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: xlsx_bytes(layout(answer, form))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        table = records((yield from sheet_rows((yield from one_file("*proposed*adjustments*.xlsx")))), "No")
        ledger = yield from one_file("*general*ledger*.csv")
        chat = yield ToolCall("chat_get_channel_history", {"channel_id": "finance", "limit": 60})
        withdrawn = set(re.findall(r"Correction on (AB\d+) ", chat))
        items = []
        for row in table:
            if row["No"] not in ask["numbers"]:
                continue
            output = yield from reading.shell(f"grep -h ',{row['Journal']},' '{ledger}'")
            booked = next((line for line in csv.reader(output.splitlines()) if int(line[6]) > 0), None)
            if booked is None:
                raise Lost(f"{row['Journal']} is not in the ledger")
            reason = yield from _background(row["No"])
            is_against = row["No"] in withdrawn or any(word in reason for word in AGAINST)
            values = (row["No"], booked[3], booked[1], int(booked[6]), NO if is_against else YES)
            items.append(dict(zip(KEYS, values, strict=True)))
        yield from reading.deliver_workbook(FILE, layout({"items": items}))
        yield from reading.tab(f"/artifacts/{FILE}")


def _background(number: str) -> reading.Reading:
    """What the mail on an item says. Raises Lost when there is none."""
    found = yield ToolCall("mail_search_mail", {"subject": f"Background on {number}"})
    for line in found.splitlines():
        if line.startswith("{") and json.loads(line)["subject"].endswith(f" {number}"):
            return (yield ToolCall("mail_read_mail", {"mail_id": json.loads(line)["mail_id"]}))
    raise Lost(f"no mail about {number}")


def _item(office: Office, row: Mapping[str, Any]) -> dict[str, Any]:
    line = office.truth.one(
        "SELECT l.account_id, l.dr, j.date FROM journal_line l JOIN journal j ON j.id = l.journal_id"
        " WHERE l.journal_id = :j AND l.dr > 0",
        j=row["journal_id"],
    )
    values = (row["id"], line["account_id"], line["date"], line["dr"], YES if row["accepted"] else NO)
    return dict(zip(KEYS, values, strict=True))


def _wrong(items: Sequence[Mapping[str, Any]], late: str) -> tuple[Wrong, ...]:
    versions: dict[str, list[dict[str, Any]]] = {
        "stale-version": [{**item, "decision": YES} for item in items],
        "everything rejected": [{**item, "decision": NO} for item in items],
        "decisions exchanged": [{**item, "decision": NO if item["decision"] == YES else YES} for item in items],
        "the other side of the entry": [{**item, "account": "2100"} for item in items],
        "swapped-entity": [{**item, "amount": items[n - 1]["amount"]} for n, item in enumerate(items)],
        "rejected items left out": [dict(item) for item in items if item["decision"] == YES],
    }
    if late:
        versions["T18:withdrawn later"] = [{**i, "decision": YES} if i["no"] == late else dict(i) for i in items]
    listed = [dict(item) for item in items]
    return tuple(
        Wrong(name, {"items": made}, "every cell", "T18" if name.startswith("T18") else "")
        for name, made in versions.items()
        if made != listed
    )


def _checks(items: Sequence[Mapping[str, Any]], hard: list[int]) -> tuple[Check, ...]:
    columns: list[dict[str, Any]] = [{"name": name.capitalize()} for name in KEYS]
    cells = [
        [
            item["no"],
            {"one_of": [item["account"], int(item["account"])]},
            {"date": item["posted"]},
            item["amount"],
            item["decision"],
        ]
        for item in items
    ]
    last = len(items) + 2
    total = sum(item["amount"] for item in items if item["decision"] == YES)
    first = next(n for n, item in enumerate(items, start=2) if item["decision"] == YES)
    moved = total - items[first - 2]["amount"] + 123_456
    trial = {"set": {f"{SHEET}!D{first}": 123_456.0}, "expect": {f"{SHEET}!D{last}": float(moved)}}
    return (
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("no errors", "xlsx.no_errors", {"file": FILE}, kind="gate", no_op="pass"),
        *matrix_checks(FILE, columns, cells, [(n, 4) for n in hard], key=["No"], sheet=SHEET, trap_ids=("T18",)),
        Check("total", "xlsx.cells", {"file": FILE, "cells": {f"{SHEET}!D{last}": total}, "tol": {"abs": 0.6}},
              weight=0.05, trap_ids=("T18",)),
        Check("follows", "xlsx.follows", {"file": FILE, "trials": [trial], "tol": {"abs": 0.6}}, weight=0.05),
    )  # fmt: skip


def layout(answer: Answer, form: str = "plain") -> list[dict[str, Any]]:
    """One row per item, and the sum of those that stand, a formula unless numbers are typed."""
    items = answer["items"]
    rows = [[item.get(key) for key in KEYS] for item in items]
    last = len(items) + 1
    total: Any = f'=SUMIF(E2:E{last},"{YES}",D2:D{last})'
    if form == "typed":
        total = sum(item["amount"] for item in items if item["decision"] == YES)
    return [sheet(SHEET, [key.capitalize() for key in KEYS], [*rows, ["Total", None, None, total, None]])]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"Management of {office.setting.company} proposes adjustments to EBITDA; the lenders ask which hold.",
        f"The quality-of-earnings report on {office.setting.company} needs a decision on each proposed adjustment.",
        f"Which of the add-backs of {office.setting.company} would a buyer accept?",
    ))  # fmt: skip
    numbers, last = ", ".join(ask["numbers"]), len(ask["numbers"]) + 2
    return f"""{opener}

Take the items {numbers} of the proposed adjustments in deals. An item is accepted when it does not recur and is
evidenced, otherwise rejected. The background of each was given by mail; what colleagues wrote later, also in the chat
of the finance team, counts as well. Where and when each was booked stands in the general ledger in finance.

Save `artifacts/{FILE}` with a sheet `{SHEET}`, headers in row 1 and one row per item from row 2, in the order above.
Columns A to E: `No`; `Account` (number of the account that was debited); `Posted` (date of the entry, ISO 8601);
`Amount` (in whole {ask["currency"]}); `Decision` (`{YES}` or `{NO}`). Row {last} is `Total`, with the sum of the
accepted amounts in column D, as a formula.
"""
