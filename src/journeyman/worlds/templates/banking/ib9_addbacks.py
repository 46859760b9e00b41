"""IB9: quality of earnings: which proposed add-backs stand, from the ledger, the mails on each, and what came later.

What makes it hard: management's list says nothing about the reasons and may add up an entry that the extract of the
ledger holds twice, one item that a mail supports is withdrawn in the chat, and of another nobody knows anything.
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
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "addbacks.xlsx"
SHEET, SUMMARY = "Adjustments", "Summary"
YES, NO, OPEN = "accepted", "rejected", "open"
NOBODY = "none"
KEYS = ("no", "account", "posted", "amount", "decision", "ask")
BOOKED = ("Account", "Posted", "Amount")
SUMS = ("Accepted", "Rejected", "Open", "Booked", "Proposed", "Difference")
"""Lines of the summary, from row 2."""
AGAINST = ("recurs every", "annually", "ordinary cycle", "third project", "no evidence")
"""Words of a background that speaks against an item."""
UNKNOWN, WHOM = "holds nothing on it", re.compile(r"If anybody knows, it is ([^.]+)\.")
"""What a mail says where there is no background, and whom it names."""
TRAPS = ("T11", "T14", "T18")


@dataclass(frozen=True)
class IB9:
    """See the module."""

    id: str = "IB9"
    domain: str = "banking"
    title: str = "proposed add-backs, accepted or rejected on their evidence"
    traps: tuple[str, ...] = TRAPS

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        rows = office.truth.rows("SELECT * FROM addback ORDER BY id")
        found = {trap: office.trap(trap, "addback:") for trap in TRAPS}
        traps = {trap: one.site.partition(":")[2] for trap, one in found.items() if one}
        kept = {row["id"] for row in rng.sample(rows, max(0, min(len(rows), 5 + knobs.fan_out)))} | set(traps.values())
        plain = {row["accepted"]: row["id"] for row in rows if row["id"] != traps.get("T11")}  # one of each decision
        rows = [row for row in rows if row["id"] in kept | set(plain.values())]
        unknown = found["T11"]
        items = [_item(office, row, unknown.right if unknown and row["id"] == traps["T11"] else {}) for row in rows]
        if len(items) < 5 or not {YES, NO} <= {item["decision"] for item in items}:
            raise Unbindable("too few items, or none accepted or none rejected")
        shown = {item["no"]: item["amount"] * (1 + (item["no"] == traps.get("T14"))) for item in items}
        ask = {"numbers": [item["no"] for item in items], "file": FILE, "currency": office.setting.currency}
        answer = {"items": items, "proposed": sum(shown.values())}
        careless = [_taken(item, traps) if traps else {**item, "decision": YES} for item in items]
        numbers = [item["decision"] for item in items]
        mixed = {numbers.index(YES), numbers.index(NO), *(ask["numbers"].index(one) for one in traps.values())}
        listed = [{**item, "account": "", "posted": "", "amount": shown[item["no"]], "decision": YES, "ask": NOBODY}
                  for item in items]  # fmt: skip
        facts = [f"addback:{item['no']}:{what}" for item in items for what in ("amount", "reason")
                 if what == "amount" or item["decision"] != OPEN]  # fmt: skip
        said = {"T11": "whom", "T18": "withdrawn"}
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer,
            _checks(answer, sorted(mixed)), (FILE,), _wrong(answer, traps), trap_blind={**answer, "items": careless},
            single={**answer, "items": listed},
            facts=(*facts, *(f"addback:{traps[trap]}:{what}" for trap, what in said.items() if trap in traps)),
            reads=tuple(office.of_kind(kind)[0].path for kind in ("addbacks", "general_ledger")),
            traps=tuple(traps), unordered=(), knobs=knobs, notes={"items": len(items), "traps": len(traps)},
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
        items, proposed = [], 0
        for row in table:
            if row["No"] not in ask["numbers"]:
                continue
            output = yield from reading.shell(f"grep -h ',{row['Journal']},' '{ledger}'")
            lines = {line[0]: line for line in csv.reader(output.splitlines()) if int(line[6]) > 0}
            if len({line[3] for line in lines.values()}) != 1:
                raise Lost(f"{row['Journal']} debits no account, or several")
            reason = " ".join((yield from _background(row["No"])).split())
            is_against = row["No"] in withdrawn or any(word in reason for word in AGAINST)
            name = WHOM.search(reason) if UNKNOWN in reason else None
            decision = OPEN if name else NO if is_against else YES
            first, amount = next(iter(lines.values())), sum(int(line[6]) for line in lines.values())
            values = (row["No"], first[3], first[1], amount, decision, name[1] if name else NOBODY)
            items.append(dict(zip(KEYS, values, strict=True)))
            proposed += int(row[f"Amount {ask['currency']}"])
        yield from reading.deliver_workbook(FILE, layout({"items": items, "proposed": proposed}))
        yield from reading.tab(f"/artifacts/{FILE}")


def _background(number: str) -> reading.Reading:
    """What the mail on an item says. Raises Lost when there is none."""
    found = yield ToolCall("mail_search_mail", {"subject": f"Background on {number}"})
    for line in found.splitlines():
        if line.startswith("{") and json.loads(line)["subject"].endswith(f" {number}"):
            return (yield ToolCall("mail_read_mail", {"mail_id": json.loads(line)["mail_id"]}))
    raise Lost(f"no mail about {number}")


def _item(office: Office, row: Mapping[str, Any], unknown: Mapping[str, Any]) -> dict[str, Any]:
    line = office.truth.one(
        "SELECT l.account_id, l.dr, j.date FROM journal_line l JOIN journal j ON j.id = l.journal_id"
        " WHERE l.journal_id = :j AND l.dr > 0",
        j=row["journal_id"],
    )
    decision = unknown.get("decision") or (YES if row["accepted"] else NO)
    values = (row["id"], line["account_id"], line["date"], line["dr"], decision, unknown.get("whom", NOBODY))
    return dict(zip(KEYS, values, strict=True))


def _taken(item: Mapping[str, Any], traps: Mapping[str, str]) -> dict[str, Any]:
    """The item as somebody has it who falls for these traps."""
    made = dict(item)
    if item["no"] in (traps.get("T11"), traps.get("T18")):
        made |= {"decision": YES, "ask": NOBODY}
    if item["no"] == traps.get("T14"):
        made["amount"] = 2 * item["amount"]
    return made


def _wrong(answer: Answer, traps: Mapping[str, str]) -> tuple[Wrong, ...]:
    items: list[dict[str, Any]] = answer["items"]
    other = {YES: NO, NO: YES, OPEN: OPEN}
    versions: dict[str, tuple[list[dict[str, Any]], str, str]] = {
        "stale-version": ([{**item, "decision": YES, "ask": NOBODY} for item in items], "decisions", ""),
        "everything rejected": ([{**item, "decision": NO, "ask": NOBODY} for item in items], "decisions", ""),
        "decisions exchanged": ([{**item, "decision": other[item["decision"]]} for item in items], "reconciled", ""),
        "the other side of the entry": ([{**item, "account": "2100"} for item in items], "bookings", ""),
        "swapped-entity": (
            [{**item, "amount": items[n - 1]["amount"]} for n, item in enumerate(items)],
            "bookings",
            "",
        ),
        "rejected items left out": ([dict(item) for item in items if item["decision"] == YES], "reconciled", ""),
    }
    names = {"T11": "T11:assumed to hold", "T14": "T14:booked twice", "T18": "T18:withdrawn later"}
    fails = {"T11": "decisions", "T14": "bookings", "T18": "decisions"}
    for trap, number in traps.items():
        versions[names[trap]] = ([_taken(item, {trap: number}) for item in items], fails[trap], trap)
    if "T11" in traps:
        guessed = [
            {**item, "decision": NO, "ask": NOBODY} if item["decision"] == OPEN else dict(item) for item in items
        ]
        versions["rejected for want of support"] = (guessed, "decisions", "")
    return tuple(
        Wrong(name, {**answer, "items": made}, check, trap)
        for name, (made, check, trap) in versions.items()
        if made != items
    )


def _checks(answer: Answer, contested: Sequence[int]) -> tuple[Check, ...]:
    """Bookings against the ledger, decisions against the record, and sums that reconcile both to what was proposed.

    Args:
        contested: positions of the items of traps, and of one item that stands and one that does not.
    """
    items: list[dict[str, Any]] = answer["items"]
    evidence = {"file": FILE, "sheet": SHEET, "key": ["No"], "columns": [{"name": key.capitalize()} for key in KEYS]}
    book = [
        [item["no"], {"one_of": [item["account"], int(item["account"])]}, {"date": item["posted"]}, item["amount"],
         item["decision"], item["ask"]]
        for item in items
    ]  # fmt: skip
    sums = _sums(answer)
    at = next(n for n, item in enumerate(items) if item["decision"] == YES)
    moved = {"items": [{**item, "amount": 123_456} if n == at else item for n, item in enumerate(items)],
             "proposed": 7_654_321}  # fmt: skip
    trial = {
        "set": {f"{SHEET}!D{at + 2}": 123_456.0, _place("Proposed"): 7_654_321.0},
        "expect": {_place(line): float(amount) for line, amount in _sums(moved).items()},
    }
    return (
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("no errors", "xlsx.no_errors", {"file": FILE}, kind="gate", no_op="pass"),
        Check("decisions", "table", {**evidence, "rows": book, "only": ["Decision", "Ask"]}, weight=0.2,
              trap_ids=("T11", "T18")),
        Check("bookings", "table", {**evidence, "rows": book, "only": list(BOOKED)}, weight=0.2, trap_ids=("T14",),
              stage="intermediate"),
        Check("contested", "table", {**evidence, "rows": [book[n] for n in contested], "extra": "ignored"}, weight=0.3,
              trap_ids=TRAPS, stage="intermediate"),
        Check("reconciled", "xlsx.cells", {"file": FILE, "cells": {_place(line): sums[line] for line in SUMS},
              "tol": {"abs": 0.6}}, weight=0.2, trap_ids=TRAPS),
        Check("most of it", "table", {**evidence, "rows": book, "credit": "f1"}, weight=0.05, stage="intermediate",
              required=False),
        Check("follows", "xlsx.follows", {"file": FILE, "trials": [trial], "tol": {"abs": 0.6}}, weight=0.05),
    )  # fmt: skip


def _place(line: str) -> str:
    """Where a line of the summary stands."""
    return f"{SUMMARY}!B{SUMS.index(line) + 2}"


def _sums(answer: Answer) -> dict[str, Any]:
    """The summary: booked by decision and in all, what was proposed, and how much of it was never booked."""
    by = [sum(item.get("amount") or 0 for item in answer["items"] if item.get("decision") == word) for word in
          (YES, NO, OPEN)]  # fmt: skip
    booked, proposed = sum(item.get("amount") or 0 for item in answer["items"]), answer.get("proposed")
    return dict(zip(SUMS, (*by, booked, proposed, (proposed or 0) - booked), strict=True))


def layout(answer: Answer, form: str = "plain") -> list[dict[str, Any]]:
    """One row per item, and the sums on a sheet of their own, formulas unless numbers are typed."""
    rows = [[item.get(key) for key in KEYS] for item in answer["items"]]
    last = len(rows) + 1
    amounts, decisions = (f"{SHEET}!${column}$2:${column}${last}" for column in "DE")
    lines: dict[str, Any] = _sums(answer)
    if form != "typed":
        words = zip(SUMS, (YES, NO, OPEN), strict=False)
        lines |= {line: f'=SUMIF({decisions},"{word}",{amounts})' for line, word in words}
        lines |= {"Booked": f"=SUM({amounts})", "Difference": "=B6-B5"}
    return [
        sheet(SHEET, [key.capitalize() for key in KEYS], rows),
        sheet(SUMMARY, ["Item", "Amount"], [list(line) for line in lines.items()]),
    ]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"Management of {office.setting.company} proposes adjustments to EBITDA; the lenders ask which hold.",
        f"The quality-of-earnings report on {office.setting.company} needs a decision on each proposed adjustment.",
        f"Which of the add-backs of {office.setting.company} would a buyer accept?",
    ))  # fmt: skip
    return f"""{opener}

Take the items {", ".join(ask["numbers"])} of the proposed adjustments in deals.

An item is accepted when it does not recur and is evidenced, otherwise rejected. It stays open where whoever was asked
could give no background at all. The background of each was asked for by mail; what colleagues wrote later, also in the
chat of the finance team, counts as well. Where, when and how much was booked stands in the general ledger in finance,
whose `line_id` tells lines apart.

Save `artifacts/{FILE}` with two sheets, headers in row 1:

- `{SHEET}`: one row per item from row 2, in the order above; columns A to F: `No`; `Account` (number of the account
  that was debited); `Posted` (date of the entry, ISO 8601); `Amount` (what was booked, in whole {ask["currency"]});
  `Decision` (`{YES}`, `{NO}` or `{OPEN}`); `Ask` (for an open item the full name of the person who, by the record,
  might know; otherwise `{NOBODY}`)
- `{SUMMARY}`: columns A and B: `Item`, `Amount`; rows 2 to 7: `Accepted`, `Rejected` and `Open`, the amounts of these
  decisions; `Booked`, the amounts of all the items; `Proposed`, what management's list has for these items together;
  `Difference`, `Proposed` less `Booked`. All but `Proposed` are formulas, of the sheet `{SHEET}` or of other lines.
"""
