"""S3: what the record holds and what it does not, and whom to ask where it is silent.

What makes it hard: for what was not recorded there is a figure of the year before, or a rumour, close at hand. A guess
makes the whole answer worthless. Long variants also ask who approved payments, which their vouchers say one by one;
some were never approved.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import json_bytes
from journeyman.worlds.events.records import UNSIGNED
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "findings.json"
ABSENT = "not in the record"
APPROVER = "approver of payment "

PAYMENTS = {1: (16, 28), 2: (100, 125)}
"""Knob ``length`` -> least and most payments that are asked about as well."""


@dataclass(frozen=True)
class S3:
    """See the module."""

    id: str = "S3"
    domain: str = "search"
    title: str = "what is not in the record, and whom to ask"
    traps: tuple[str, ...] = ("T11",)

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        planted = [one for one in office.planted if one.trap == "T11" and one.site.startswith("absent:")]
        if len(planted) < 2:
            raise Unbindable("nothing is known to be missing")
        figures = _key_figures(office)
        items: list[dict[str, Any]] = []
        for number, one in enumerate(sorted(planted, key=lambda p: p.site), start=1):
            topic, year = one.site.split(":", 2)[2].rsplit(":", 1)
            whom, earlier = (office.where(f"absent:{number}:{what}") for what in ("whom", "earlier"))
            items.append({"topic": topic, "period": year, "value": ABSENT, "whom": str(one.right["whom"]),
                          "where": whom, "careless": one.wrong["value"]})  # fmt: skip
            before = f"FY{int(year[2:]) - 1}"
            items.append({"topic": topic, "period": before, "value": one.wrong["value"], "whom": "", "where": earlier,
                          "careless": ABSENT})  # fmt: skip
        absent = [one for one in items if one["value"] == ABSENT]
        present = [one for one in items if one["value"] != ABSENT]
        chosen = [*rng.sample(absent, rng.randint(2, len(absent))), *rng.sample(present, rng.randint(1, len(present)))]
        chosen += rng.sample(figures, min(len(figures), 2 + knobs.fan_out))
        rng.shuffle(chosen)
        if knobs.length:
            chosen += _payments(office, rng, PAYMENTS[min(knobs.length, 2)])
        ask = {"items": [{"topic": one["topic"], "period": one["period"]} for one in chosen], "file": FILE}
        answer = {"items": [{"no": i, "value": one["value"], "whom": one["whom"]} for i, one in enumerate(chosen, 1)]}
        answer |= {"citations": [_cited(one) for one in chosen]}
        guessed = {**answer, "items": [
            {**row, "value": one["careless"], "whom": ""} if one["value"] == ABSENT else row
            for row, one in zip(answer["items"], chosen, strict=True)
        ]}  # fmt: skip
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(chosen), (FILE,),
            _wrong(chosen, answer, guessed), trap_blind=guessed,
            single={"items": [{**row, "value": ABSENT, "whom": ""} for row in answer["items"][1:]], "citations": []},
            facts=(*(f"absent:{i}:whom" for i in range(1, len(planted) + 1)), *_vouched(chosen)),
            traps=("T11",), knobs=knobs, unordered=("citations",),
            notes={"items": len(chosen), "absent": sum(c["value"] == ABSENT for c in chosen)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: json_bytes(answer)}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        books = yield from reading.list_files("*kpi*workbook*.xlsx")
        is_long = any(number_of(item["topic"]) for item in ask["items"])
        vouchers = (yield from reading.list_files("*voucher*.txt", "procurement")) if is_long else []
        if len(books) != 1:
            raise Lost(f"{len(books)} workbooks of key figures")
        table = yield from key_figures(books[0])
        messages = yield from _channel("general")
        items, cited = [], []
        for number, item in enumerate(ask["items"], start=1):
            if (item["topic"], item["period"]) in table:
                value, place = table[item["topic"], item["period"]]
                items.append({"no": number, "value": value, "whom": ""})
                cited.append({"file": books[0], "place": place})
                continue
            if payment := number_of(item["topic"]):
                found = yield from _approval(vouchers, payment)
                items.append({"no": number, "value": found[0], "whom": found[1]})
                cited.append({"file": found[2], "place": found[3]})
                continue
            topic = next((m["topic_id"] for m in messages if item["topic"] in m["text"]), None)
            thread = [m for m in messages if m["topic_id"] == topic]
            found = _said(thread, item["period"])
            items.append({"no": number, "value": found[0], "whom": found[1]})
            cited.append({"file": "chat", "place": found[2]})
        yield from reading.deliver_text(FILE, json_bytes({"items": items, "citations": cited}))


def number_of(topic: str) -> str:
    """The payment whose approver is asked for; empty for other topics."""
    return topic.removeprefix(APPROVER) if topic.startswith(APPROVER) else ""


def _payments(office: Office, rng: random.Random, bounds: tuple[int, int]) -> list[dict[str, Any]]:
    rows = office.truth.rows(
        "SELECT v.spend_id AS no, v.approver, v.requester, s.date FROM voucher v JOIN spend s ON s.id = v.spend_id"
        " ORDER BY v.spend_id"
    )
    count = rng.randint(*bounds)
    if len(rows) < count:
        raise Unbindable("too few payments")
    return [
        {"topic": f"{APPROVER}{row['no']}", "period": row["date"][:7], "value": row["approver"] or ABSENT,
         "whom": "" if row["approver"] else row["requester"], "where": office.where(f"voucher:{row['no']}:approver"),
         "careless": ABSENT if row["approver"] else row["requester"]}
        for row in sorted(rng.sample(rows, count), key=lambda one: str(one["no"]))
    ]  # fmt: skip


def _vouched(chosen: Sequence[Mapping[str, Any]]) -> list[str]:
    payments = [number_of(one["topic"]) for one in chosen]
    return [f"voucher:{payment}:approver" for payment in payments if payment]


def _approval(vouchers: Sequence[str], payment: str) -> reading.Reading:
    """Approver, whom to ask where there is none, path and line of a voucher."""
    path = next((one for one in vouchers if one.lower().endswith(f"{payment.lower()}.txt")), "")
    if not path:
        raise Lost(f"no voucher of {payment}")
    lines = (yield from reading.plain_text(path)).splitlines()
    at = next((number for number, line in enumerate(lines, 1) if line.startswith("Approved by:")), 0)
    if not at:
        raise Lost(f"{path} does not say who approved")
    name = lines[at - 1].partition(":")[2].partition(",")[0].strip()
    if name != UNSIGNED:
        return name, "", path, f"line:{at}"
    return ABSENT, reading.words_between("\n".join(lines), "Requested by:"), path, f"line:{at}"


def key_figures(path: str) -> reading.Reading:
    """(key figure, quarter) -> value and cell of the workbook."""
    text = yield from reading.tab(f"/{path}")
    rows = {int(m[1]): json.loads(m[2]) for m in re.finditer(r"^(\d+): (\[.*\])$", text, re.MULTILINE)}
    head = next((row for row in rows.values() if row[0] == "Key figure"), None)
    if head is None:
        raise Lost(f"{path} has no table of key figures")
    found = {}
    for number, row in rows.items():
        for column, (period, value) in enumerate(zip(head[1:], row[1:], strict=False), start=1):
            if isinstance(value, int | float):
                found[str(row[0]), str(period)] = value, f"KPI!{chr(65 + column)}{number}"
    return found


def _channel(name: str) -> reading.Reading:
    """All messages of a channel."""
    text = yield ToolCall("chat_get_channel_history", {"channel_id": name, "limit": 1000})
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def _said(thread: Sequence[Mapping[str, Any]], period: str) -> tuple[Any, str, str]:
    """Value, whom to ask, and the message, by the talk about a topic."""
    for message in thread:
        if match := re.search(rf"never recorded for {period}\b.*it is ([^.]+)\.", message["text"]):
            return ABSENT, match[1], message["message_id"]
        if match := re.search(rf"For {period} it was (\d+(?:\.\d+)?)", message["text"]):
            return int(match[1]), "", message["message_id"]
    raise Lost(f"nobody speaks of {period}")


def _key_figures(office: Office) -> list[dict[str, Any]]:
    found = []
    for document in office.of_kind("kpi_workbook"):
        for fact_id, fact in office.facts.items():
            head, name, period = (*fact_id.split(":"), "", "")[:3]
            where = tuple(one for one in office.where(fact_id) if one.path == document.path)
            if head == "kpi" and where:
                found.append({"topic": name, "period": period, "value": fact.value, "whom": "", "where": where,
                              "careless": ABSENT})  # fmt: skip
    return sorted(found, key=lambda one: (one["topic"], one["period"]))


def _cited(item: Mapping[str, Any]) -> dict[str, str]:
    place = _places(item)[0]
    return {"file": place["path"], "place": place["locator"]}


def _places(item: Mapping[str, Any]) -> list[dict[str, str]]:
    """Where an item is said; a message of the chat also by the id that the application gives it."""
    found = []
    for one in item["where"]:
        if "/" in one.locator and one.locator.startswith("#"):
            stamp = one.locator.rpartition("/")[2]
            found.append({"path": "chat", "locator": f"msg-{stamp}"})
        found.append({"path": one.path, "locator": one.locator})
    return found


def _wrong(chosen: Sequence[Mapping[str, Any]], answer: Answer, guessed: Answer) -> tuple[Wrong, ...]:
    rows = answer["items"]
    silent = {**answer, "items": [{**row, "value": ABSENT} for row in rows]}
    people = sorted({row["whom"] for row in rows if row["whom"]})
    other = {name: people[i - 1] for i, name in enumerate(people)}
    asked = {**answer, "items": [{**row, "whom": other.get(row["whom"], "")} for row in rows]}
    unknown = {**answer, "items": [{**row, "whom": ""} for row in rows]}
    values = [row["value"] for row in rows if row["value"] != ABSENT]
    turned = iter([*values[1:], *values[:1]])
    swapped = {**answer, "items": [
        row if row["value"] == ABSENT else {**row, "value": next(turned)} for row in rows
    ]}  # fmt: skip
    found = (
        Wrong("T11:guessed", guessed, "nothing invented", "T11"),
        Wrong("nothing is in the record", silent, "answers"),
        Wrong("asks the wrong person", asked, "answers"),
        Wrong("asks nobody", unknown, "answers"),
        Wrong("swapped-entity", swapped, "answers"),
    )
    return tuple(one for one in found if one.answer != answer)


def _checks(chosen: Sequence[Mapping[str, Any]]) -> tuple[Check, ...]:
    base = {"file": FILE, "tol": {"abs": 0.001}}
    absent = [i for i, one in enumerate(chosen) if one["value"] == ABSENT]
    present = [i for i, one in enumerate(chosen) if one["value"] != ABSENT]
    return (
        Check("shape", "json.shape", {"file": FILE, "keys": {"items": "list", "citations": "list"}}, kind="gate"),
        Check("nothing invented", "json.fields", {**base, "fields": {
            f"items.{i}.value": {"absent": True} for i in absent
        }}, kind="gate", trap_ids=("T11",)),
        Check("answers", "json.fields", {**base, "fields": {
            **{f"items.{i}.whom": chosen[i]["whom"] for i in absent},
            **{f"items.{i}.value": chosen[i]["value"] for i in present},
            **{f"items.{i}.no": i + 1 for i in range(len(chosen))},
        }}, weight=0.8, trap_ids=("T11",)),
        *_halves(chosen),
        Check("one answer each", "members", {
            "file": FILE, "path": "items", "member": "no", "items": [str(i) for i in range(1, len(chosen) + 1)],
        }, weight=0.05, stage="intermediate"),
        Check("citations", "cites", {"file": FILE, "path": "citations", "hops": [_places(one) for one in chosen],
                                     "spare": 0}, weight=0.2, stage="intermediate"),
    )  # fmt: skip


def _halves(chosen: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
    """Payments in two parts, so that who lost one part is told of the other."""
    asked = [i for i, one in enumerate(chosen) if number_of(one["topic"])]
    for name, part in (("first", asked[: len(asked) // 2]), ("second", asked[len(asked) // 2 :])):
        if part:
            said = {f"items.{i}.value": {"absent": True} if chosen[i]["value"] == ABSENT else chosen[i]["value"]
                    for i in part}  # fmt: skip
            yield Check(f"payments, {name} half", "json.fields", {"file": FILE, "fields": said}, weight=0.05,
                        stage="intermediate")  # fmt: skip


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"Somebody preparing a talk about {office.setting.company} wants figures, and wants none that nobody recorded.",
        f"Please find out for the annual review of {office.setting.company} which of these figures exist.",
        f"An auditor asks {office.setting.company} for figures. Some of them may never have been recorded.",
    ))  # fmt: skip
    lines = "\n".join(
        f"{i}. {one['topic']}, {one['period']}" for i, one in enumerate(ask["items"], 1) if not number_of(one["topic"])
    )
    asked = [number_of(one["topic"]) for one in ask["items"] if number_of(one["topic"])]
    more = whom = ""
    if asked:
        first, last = len(ask["items"]) - len(asked) + 1, len(ask["items"])
        more = f"""
Further, as items {first} to {last} in this order, who approved these payments, by their vouchers in
procurement/vouchers: {", ".join(asked)}.
"""
        whom = """ For a voucher, `place` is
  the line that says who approved, as `line:12`; the value is a full name, and where nobody approved, `whom` is who
  requested the payment."""
    return f"""{opener}

{lines}
{more}
Search files, chats and mails; key figures count as the newest workbook has them. What was not recorded is answered with
`{ABSENT}`: an estimate, another period's figure or a rumour makes the whole answer worthless.

Save `artifacts/{FILE}`, a JSON object with

- `items`: a list in the order above of objects with `no`, `value` (the number as recorded, or `{ABSENT}`) and `whom`
  (where it is not in the record, the full name of the person who may know according to those who looked; otherwise
  empty)
- `citations`: one object with `file` and `place` for each item: the path and the cell (`Sheet!B4`) of a workbook; for a
  chat message file `chat` and its message_id. For what is not in the record, cite the message that says so.{whom}
"""
