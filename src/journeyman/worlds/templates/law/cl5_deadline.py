"""CL5: the last day for an objection in business days, told to the right colleagues in a reply to the statement's mail.

What makes it hard: the period stands in a contract that the mail only names, holidays stand in the calendar, the day of
receipt does not count, a later mail may void the statement, an unsigned draft gives another period, and nobody outside
may get the answer.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.simulate.calendars import add_working_days
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.instructions.contracts import provision
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office
    from journeyman.worlds.plan import Planted

FILE = "reply.eml"
TITLE = "Objection period"
NUMBER = rf"^(\d+)\. {TITLE}|Clause (\d+) \({TITLE}\)"
MESSAGE_ID = re.compile(r"m\d+\.\d+@")
NO_ADDRESS = re.compile(r"[^\w.@-]")
LINES = {"deadline": "Last day", "contract": "Contract", "clause": "Clause", "days": "Period", "balance": "Balance"}
"""Key of the answer -> label of its line in the reply."""


@dataclass(frozen=True)
class CL5:
    """See the module."""

    id: str = "CL5"
    domain: str = "law"
    title: str = "objection deadline in business days, as a reply by mail"
    traps: tuple[str, ...] = ("T1", "T18")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        filings = office.truth.rows("SELECT * FROM filing WHERE item LIKE 'objection under %' ORDER BY valid_from, id")
        if len({one["item"] for one in filings}) != 1:
            raise Unbindable("no statement of account, or several")
        filing = filings[-1]
        contract, event = filing["item"].rpartition(" ")[2], filings[0]["source_event_id"]
        mails = [key for key, one in office.source_of.items() if one == event and MESSAGE_ID.match(key)]
        clause = office.truth.one("SELECT * FROM clause WHERE contract_id = :c AND type = 'objection'", c=contract)
        received, days = filing["valid_from"], int(json.loads(clause["params_json"])["value"])
        off = {row["date"] for row in office.truth.rows("SELECT date FROM holiday")}
        people = {role: office.roles[role]["email"].lower() for role in ("controller", "counsel", "gc")}
        if len(mails) != 1 or len(set(people.values())) != 3:
            raise Unbindable("the mail or the people cannot be told apart")
        ask = {"party": office.truth.value("SELECT counterparty FROM contract WHERE id = :c", c=contract),
               "cc": people["gc"], "file": FILE, "from": office.roles["secretary"]["email"]}  # fmt: skip
        answer = {
            "in_reply_to": mails[0], "to": [people["controller"], people["counsel"]], "cc": [people["gc"]],
            "deadline": filing["due"],
            "contract": contract, "clause": int(clause["no"]), "days": days,
            "balance": int(office.facts[_stated(office)[0]].value),
        }  # fmt: skip
        others = _misread(received, days, off, filing["due"])
        misled = _misled(office.planted, contract)
        outside = f"accounts@{''.join(c for c in ask['party'].lower() if c.isalnum())[:20]}.example"
        blind = {**answer, "deadline": others[0], "to": [outside]}
        for said in misled.values():
            blind |= said
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer,
            _checks(answer, [*others, *(str(said["deadline"]) for said in misled.values())]), (FILE,),
            (*_wrong(answer, others, outside), *_followed(answer, misled)),
            trap_blind=blind,
            single={**answer, "in_reply_to": "", "clause": None, "days": None, "deadline": received},
            facts=(*_stated(office), f"clause:{clause['id']}"), traps=tuple(misled), unordered=("to",), knobs=knobs,
            notes={"days": days, "weekday": date.fromisoformat(filing["due"]).weekday()},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: reply(bound.ask, answer)}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        found = yield ToolCall("mail_search_mail", {"subject": "Statement of account", "limit": 50})
        mails = [json.loads(line) for line in found.splitlines() if line.startswith("{")]
        mails.sort(key=lambda one: str(one["timestamp"]))
        if not mails or len({one["from_email"] for one in mails}) != 1:
            raise Lost(f"{len(mails)} statements of account")
        first = last = json.loads((yield ToolCall("mail_read_mail", {"mail_id": mails[0]["mail_id"]})))
        for mail in mails[1:]:
            full = json.loads((yield ToolCall("mail_read_mail", {"mail_id": mail["mail_id"]})))
            last = full if "This mail takes its place" in " ".join(full["body"].split()) else last
        contract = re.search(r"\b(K\d{3})\b", first["subject"])
        balance = re.search(r"balance in our favour (?:is )?(.+?)\. (?:It|This) ", " ".join(last["body"].split()))
        if contract is None or balance is None:
            raise Lost("the statement names no contract or no balance")
        path, raw, words = yield from provision(contract[1], TITLE)
        text = reading.without_addresses(raw)
        number, days = re.search(NUMBER, text, re.M | re.I), re.search(r"(\d+) Business Days", words)
        if number is None or days is None:
            raise Lost(f"{path} has no objection period")
        period = int(days[1])
        listed = yield ToolCall("calendar_list_events", {"limit": 400})
        off = set()
        for line in listed.splitlines():
            if line.startswith("{") and "Public holiday" in line:
                start = json.loads(line)["start"]
                off.add(str(start.get("date") or start.get("dateTime"))[:10])
        due = add_working_days(date.fromisoformat(last["timestamp"][:10]), period, off)
        answer = {
            "in_reply_to": mails[0]["mail_id"], "to": first["to"], "cc": [ask["cc"]], "deadline": due.isoformat(),
            "contract": contract[1], "clause": int(number[1] or number[2]), "days": period,
            "balance": reading.whole_number(balance[1]),
        }  # fmt: skip
        yield from reading.deliver_text(FILE, reply(ask, answer))


def reply(ask: Mapping[str, Any], answer: Answer) -> bytes:
    """The mail: labelled lines, then a sentence."""
    mail = EmailMessage()
    mail["From"] = ask["from"]
    for field in ("to", "cc"):
        if answer[field]:
            mail[field.capitalize()] = ", ".join(NO_ADDRESS.sub("-", str(one)) for one in answer[field] if one)
    mail["Subject"] = f"Re: Statement of account, {answer['contract']}"
    parent = answer["in_reply_to"]
    if parent:
        mail["In-Reply-To"] = parent if str(parent).startswith("<") else f"<{parent}>"
    unit = {"days": " Business Days"}
    said = [f"{label}: {answer[key]}{unit.get(key, '')}" for key, label in LINES.items() if answer[key] is not None]
    mail.set_content("\n".join([*said, "", "Please object in writing in time."]) + "\n")
    return bytes(mail)


def _misread(received: str, days: int, off: set[str], due: str) -> list[str]:
    """Days that careless counters arrive at, never the right one; the first is plain calendar days."""
    start = date.fromisoformat(received)
    found = [
        start + timedelta(days=days),
        add_working_days(start - timedelta(days=1), days, off),
        add_working_days(start, days + 1, off),
        add_working_days(start, days, set()),
        add_working_days(start, days, off) + timedelta(days=7),
    ]
    return [day for day in dict.fromkeys(one.isoformat() for one in found) if day != due]


def _stated(office: Office) -> tuple[str, ...]:
    """Facts of the statement that counts: its balance, and where a correction took its place, that it did."""
    corrected = ("statement:amount:corrected", "statement:received:corrected")
    return corrected if corrected[0] in office.facts else ("statement:amount",)


def _misled(planted: Sequence[Planted], contract: str) -> dict[str, dict[str, Any]]:
    """Trap -> what whoever falls for it writes."""
    names = {"due": "deadline"}
    return {
        one.trap: {names.get(key, key): value for key, value in one.wrong.items()}
        for one in sorted(planted, key=lambda one: one.trap)
        if one.site == f"statement:{contract}"
    }


def _followed(answer: Answer, misled: Mapping[str, Mapping[str, Any]]) -> tuple[Wrong, ...]:
    names = {"T1": "T1:unsigned draft followed", "T18": "T18:correction overlooked"}
    return tuple(Wrong(names[trap], {**answer, **said}, "last day", trap) for trap, said in misled.items())


def _wrong(answer: Answer, others: Sequence[str], outside: str) -> tuple[Wrong, ...]:
    return (
        *(Wrong(f"counted to {day}", {**answer, "deadline": day}, "last day") for day in others[:3]),
        Wrong("swapped-entity", {**answer, "to": answer["cc"], "cc": answer["to"]}, "recipients"),
        Wrong("sent outside", {**answer, "to": [*answer["to"], outside]}, "recipients"),
        Wrong("no reply", {**answer, "in_reply_to": ""}, "recipients"),
        Wrong("stale-version", {**answer, "deadline": others[-1], "clause": answer["clause"] + 1}, "last day"),
    )


def _checks(answer: Answer, others: Sequence[str]) -> tuple[Check, ...]:
    said = [
        {"value": answer["contract"], "near": ["contract:"]}, {"value": answer["clause"], "near": ["clause:"]},
        {"value": answer["days"], "near": ["period:"]},
        {"value": {"amount": answer["balance"]}, "near": ["balance:"]},
    ]  # fmt: skip
    return (
        Check("recipients", "mail.headers", {
            "file": FILE, "to": answer["to"], "cc": answer["cc"], "in_reply_to": answer["in_reply_to"],
            "inside": sorted({one.rpartition("@")[2] for one in (*answer["to"], *answer["cc"])}),
        }, kind="gate"),
        Check("last day", "doc.mentions", {
            "file": FILE, "facts": [{"value": {"date": answer["deadline"]}, "near": ["last day:"]}],
        }, weight=0.6, trap_ids=("T1", "T18")),
        Check("no other day", "forbids", {"file": FILE, "texts": list(others)}, kind="gate", no_op="pass"),
        Check("grounds", "doc.mentions", {"file": FILE, "facts": said, "tol": {"abs": 0.4}}, weight=0.4,
              stage="intermediate"),
    )  # fmt: skip


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"{ask['party']} sent {office.setting.company} a statement of account that binds unless somebody objects.",
        f"Somebody at {office.setting.company} has to object to the statement of account of {ask['party']} in time.",
        f"The general counsel asks how long {office.setting.company} may object to {ask['party']}'s statement.",
    ))  # fmt: skip
    return f"""{opener}

Find the mail with the statement and the contract under which it was sent. The last day is the last Business Day of the
objection period; what a Business Day is, the contract says. Public holidays at the seat of the company stand in the
calendar; the statement counts as received on the day its mail was sent. Where its sender has since voided it and sent
another mail in its place, day of receipt and balance are those of that mail. The contract counts as both sides have
signed it, with what they have both signed since; drafts change nothing.

Save `artifacts/{FILE}`, a mail in RFC 5322 format from {ask["from"]}.
It answers the first mail with the statement (`In-Reply-To`) but goes to the two colleagues who received it (`To`), with
a copy to the general counsel, {ask["cc"]} (`Cc`), and to nobody else.
Its text is plain and begins with five lines:

- `Last day:` the day, ISO 8601
- `Contract:` the contract's number
- `Clause:` the number of the clause with the objection period
- `Period:` the number of days and the words Business Days
- `Balance:` the balance that the sender claims by the statement that counts, in whole units and without a currency

Name no other day in the text.
"""
