"""S4: what customers owe by the list of open items, and what is left of it after rebates that only side letters grant.

What makes it hard: the list goes over several pages and has no total, a customer's items are spread over them, and a
rebate stands on a scanned page whose gist one mail gives.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import json_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "receivables.json"
ROW = re.compile(r'^\s*(\["INV-.*\])$', re.MULTILINE)
PERCENT = re.compile(r"rebate of ([\d.,]+)")
LEAST_LATER = 3
"""Customers with items behind the first page, so that whoever stops there is found out."""


@dataclass(frozen=True)
class Item:
    """One open invoice, in the order of the list."""

    invoice: str
    customer: str
    amount: int


@dataclass(frozen=True)
class S4:
    """See the module."""

    id: str = "S4"
    domain: str = "search"
    title: str = "open items by customer, net of rebates in side letters"
    traps: tuple[str, ...] = ("T16", "T19")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        long, lists = office.trap("T16", "receivables"), office.of_kind("receivables")
        if long is None or len(lists) != 1:
            raise Unbindable("no list of open items")
        items = _items(office)
        first = items[: int(long.wrong["rows"])]
        later = sorted({one.customer for one in items} - {one.customer for one in first})
        both = sorted({one.customer for one in items[len(first) :]} & {one.customer for one in first})
        if len(later) + len(both) < LEAST_LATER:
            raise Unbindable("few customers have items behind the first page")
        count = 4 + knobs.fan_out
        names = rng.sample(both, min(len(both), count - 1))
        names += rng.sample(later, min(len(later), count - len(names)))
        rebates, letter = _rebates(office)
        names = sorted({*names, *rebates})
        answer = _answer(names, items, rebates)
        ask = {"file": FILE, "customers": names}
        blind = _answer(names, first, {})
        traps = ("T16", "T19") if rebates else ("T16",)
        return Bound(
            self.id, self.domain, office.id, _instruction(office, names, rng), ask, answer, _checks(answer, traps),
            (FILE,), _wrong(names, items, first, rebates, answer), trap_blind=blind,
            single={"customers": [], "total": 0},
            facts=(*(f"receivable:{one.invoice}" for one in items if one.customer in names), *letter),
            reads=(lists[0].path,), traps=traps, unordered=("customers",), knobs=knobs,
            notes={"customers": len(names), "rebates": len(rebates), "first": names[0]},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: json_bytes(answer)}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        paths = yield from reading.list_files("*open*receivables*.pdf", "finance")
        if len(paths) != 1:
            raise Lost(f"{len(paths)} lists of open items")
        text = yield from reading.addressed_text(paths[0])
        rows = [json.loads(row) for row in ROW.findall(text)]
        items = [Item(row[0], row[2], reading.whole_number(row[3])) for row in rows]
        rebates: dict[str, float] = {}
        listed = yield ToolCall("mail_search_mail", {"subject": "scan of the side letter", "limit": 50})
        for line in listed.splitlines():
            if not line.startswith("{"):
                continue
            mail = json.loads((yield ToolCall("mail_read_mail", {"mail_id": json.loads(line)["mail_id"]})))
            said = PERCENT.search(" ".join(mail["body"].split()))
            contract = mail["subject"].partition(":")[0]
            for path in (yield from reading.list_files(f"{contract}*", "legal/contracts")):
                if said is None or "letter" in path or "amendment" in path.lower():
                    continue
                agreed = " ".join((yield from reading.document_text(path)).split())
                rebates |= {name: reading.number(said[1]) for name in ask["customers"] if name in agreed}
        yield from reading.deliver_text(FILE, json_bytes(_answer(ask["customers"], items, rebates)))


def _items(office: Office) -> list[Item]:
    """The list as it stands in the file."""
    rows = office.truth.rows("SELECT i.id, c.name FROM invoice i JOIN customer c ON c.id = i.customer_id ORDER BY i.id")
    names = {row["id"]: str(row["name"]) for row in rows}
    found = {one.fact_id: one for one in office.renderings if one.fact_id.startswith("receivable:")}
    order = sorted(found.values(), key=lambda one: [int(number) for number in re.findall(r"\d+", one.locator)])
    ids = [one.fact_id.partition(":")[2] for one in order]
    return [Item(one, names[one], int(office.facts[f"receivable:{one}"].value)) for one in ids]


def _rebates(office: Office) -> tuple[dict[str, float], tuple[str, ...]]:
    """Customer -> per cent, and the facts that say so."""
    letter = office.trap("T19", "contract:")
    if letter is None:
        return {}, ()
    contract = office.truth.one("SELECT counterparty FROM contract WHERE id = :c", c=letter.site.split(":")[1])
    return {str(contract["counterparty"]): float(letter.right["rebate"])}, letter.fact_ids


def _answer(names: Sequence[str], items: Sequence[Item], rebates: Mapping[str, float]) -> Answer:
    rows = []
    for name in names:
        own = [one.amount for one in items if one.customer == name]
        rebate = rebates.get(name, 0.0)
        rows.append({"customer": name, "open": sum(own), "items": len(own), "rebate": rebate,
                     "net": round(sum(own) * (100 - rebate) / 100, 2)})  # fmt: skip
    return {"customers": rows, "total": sum(row["open"] for row in rows)}


def _wrong(
    names: Sequence[str], items: Sequence[Item], first: Sequence[Item], rebates: Mapping[str, float], answer: Answer
) -> tuple[Wrong, ...]:
    rows = answer["customers"]
    swapped = [{**row, "open": rows[i - 1]["open"], "net": rows[i - 1]["net"]} for i, row in enumerate(rows)]
    added = [{**row, "net": round(row["open"] * (100 + row["rebate"]) / 100, 2)} for row in rows]
    largest = [max((one for one in items if one.customer == name), key=lambda one: one.amount, default=None)
               for name in names]  # fmt: skip
    tried = [
        Wrong("T16:first page only", _answer(names, first, rebates), "every customer", "T16"),
        Wrong("swapped-entity", {**answer, "customers": swapped}, "every customer"),
        Wrong("stale-version", _answer(names, items[: -len(items) // 4], rebates), "every customer"),
        Wrong("largest item of each", _answer(names, [one for one in largest if one], rebates), "every customer"),
        Wrong("one customer left out", {**answer, "customers": rows[:-1]}, "every customer"),
        Wrong("rebate added", {**answer, "customers": added}, "every customer"),
    ]
    if rebates:
        tried.append(Wrong("T19:scan skipped", _answer(names, items, {}), "every customer", "T19"))
    return tuple(one for one in tried if one.answer != answer)


def _checks(answer: Answer, traps: tuple[str, ...]) -> tuple[Check, ...]:
    columns: list[dict[str, Any]] = [
        {"name": "customer"}, {"name": "open", "tol": {"abs": 0.5}}, {"name": "items", "tol": {"abs": 0.0}},
        {"name": "rebate", "tol": {"abs": 0.001}}, {"name": "net", "tol": {"abs": 1.0}},
    ]  # fmt: skip
    rows = [[row[column["name"]] for column in columns] for row in answer["customers"]]
    listed = {"file": FILE, "path": "customers", "key": ["customer"]}
    return (
        Check("opens", "json.shape", {"file": FILE, "keys": {"customers": "list", "total": "number"}}, kind="gate"),
        Check("every customer", "table", {**listed, "columns": columns, "rows": rows}, weight=0.7, trap_ids=traps),
        Check("items counted", "table", {**listed, "columns": [columns[0], columns[2]],
                                         "rows": [[row[0], row[2]] for row in rows]},
              weight=0.15, stage="intermediate", trap_ids=("T16",)),
        Check("total", "json.fields", {"file": FILE, "fields": {"total": answer["total"]}, "tol": {"abs": 0.5}},
              weight=0.15, trap_ids=("T16",)),
    )  # fmt: skip


def _instruction(office: Office, names: Sequence[str], rng: random.Random) -> str:
    opener = rng.choice((
        f"Credit control of {office.setting.company} prepares calls to some customers.",
        f"The auditors of {office.setting.company} ask what some customers owe.",
        f"{office.setting.company} wants to know what it can expect from some of its customers.",
    ))  # fmt: skip
    listed = "\n".join(f"- {name}" for name in names)
    return f"""{opener}

For each of these customers, take all its open items from the list of open receivables in finance:

{listed}

Some contracts have a signed side letter with a rebate on the customer's invoices; what a side letter grants counts,
also where it is filed as a scan. Save `artifacts/{FILE}`, a JSON object with

- `customers`: a list with one object for each of these customers and no other: `customer` (as above), `open` (sum of
  its open items in {office.setting.currency}, 0 where it has none), `items` (how many they are), `rebate` (per cent by
  side letter, 0 where there is none) and `net` (`open` less that rebate, two decimals)
- `total`: the sum of `open`
"""
