"""MA1: the cheapest award of a framework contract to suppliers with limits, with prices that prove it.

What makes it hard: prices, freights and limits stand in eight quotes of which one has two revisions, a limit was cut in
a chat, a rule bounds every supplier's share, and some quotes are in another currency.
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
from journeyman.worlds.templates.mathematics.transport import cheapest
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "award.json"
Quote = dict[str, Any]


@dataclass(frozen=True)
class MA1:
    """See the module."""

    id: str = "MA1"
    domain: str = "mathematics"
    title: str = "cheapest award under limits, with prices that prove it"
    traps: tuple[str, ...] = ()

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        given = {row["name"]: json.loads(row["value"])
                 for row in office.truth.rows("SELECT name, value FROM assumption WHERE model = 'award'")}  # fmt: skip
        if not given:
            raise Unbindable("no award is prepared")
        demand, quotes = given["demand"]["value"], given["quotes"]["value"]
        sites = sorted(rng.sample(sorted(demand), min(len(demand), 3 + knobs.fan_out)))
        facts = {
            "quotes": quotes, "old": given["old"]["value"], "share": given["share"]["value"],
            "rate": given["rate"]["value"], "cut": given["cut"], "home": office.setting.currency,
            "demand": {site: demand[site] for site in sites},
        }  # fmt: skip
        ask = {"sites": sites, "currency": office.setting.currency, "file": FILE}
        problem = stated(facts)
        answer = solved(problem)
        if answer is None:
            raise Unbindable("the demand cannot be met")
        wrong = _wrong(facts, problem, answer)
        papers = [one for kind in ("award_demand", "award_rules", "quote") for one in office.of_kind(kind)]
        names = [f"award:demand:{site}" for site in sites] + ["award:share", "award:rate"]
        names += [f"award:{quote['id']}:{what}" for quote in quotes for what in ("price", "lots")]
        blind = solved(stated(facts, ("cut", "old", "share", "rate"))) or {**answer, "lots": []}
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(problem, answer),
            (FILE,), wrong, trap_blind=blind, single=_all_from_one(problem, answer),
            facts=(*names, f"award:{facts['cut']['supplier']}:lots:corrected"),
            reads=tuple(one.path for one in papers), unordered=("lots",), knobs=knobs,
            notes={"sites": len(sites), "suppliers": len(quotes), "binding": sum(answer["premiums"].values()) > 0},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: json_bytes(answer)}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        rows = yield from reading.csv_records("procurement/award/demand.csv")
        rules = yield from reading.document_text("procurement/award/award_rules.docx")
        share = re.search(r"more than (\d+)% of all lots", rules)
        rate = re.search(r"1 ([A-Z]{3}) is ([\d.]+) [A-Z]{3}", rules)
        if share is None or rate is None:
            raise Lost("the rules name no share, or no rate")
        demand = {row["site"]: int(row["lots"]) for row in rows if row["site"] in ask["sites"]}
        newest: dict[str, str] = {}
        for path in (yield from reading.list_files("*quote*", "procurement/award")):
            found = re.search(r"(ve\d+)", path, re.IGNORECASE)
            if found:  # sorted by name, so a later revision comes later
                newest[found[1].upper()] = path
        quotes = []
        for supplier, path in newest.items():
            lines = yield from _lines_of(path)
            quotes.append(_read_quote(supplier, lines))
        yield from reading.search("award deliver lots only not as quoted")
        text = yield ToolCall("chat_get_channel_history", {"channel_id": "operations", "limit": 1000})
        cut = re.search(r"\((VE\d+)\) called about the [^\"]* award: they can deliver (\d+) lots only", text)
        facts = {
            "quotes": quotes, "share": int(share[1]), "rate": float(rate[2]), "home": ask["currency"],
            "cut": {"supplier": cut[1], "lots": int(cut[2])} if cut else None, "demand": demand,
        }  # fmt: skip
        answer = solved(stated(facts))
        if answer is None:
            raise Lost("the demand cannot be met")
        yield from reading.deliver_text(FILE, json_bytes(answer))
        yield from reading.shell(f"python3 -m json.tool artifacts/{FILE} /dev/null")


def _lines_of(path: str) -> reading.Reading:
    if path.endswith(".txt"):
        return "\n".join((yield from reading.text_lines(path)))
    if path.endswith(".xlsx"):
        text = yield from reading.tab(f"/{path}")
        return re.sub(r'", ', '": ', text).replace('"', "").replace("[", "").replace("]", "")
    return (yield from reading.document_text(path))


def _read_quote(supplier: str, text: str) -> Quote:
    price = re.search(r"Price per lot in ([A-Z]{3}): (\d+)", text)
    lots = re.search(r"Lots that we can deliver: (\d+)", text)
    if price is None or lots is None:
        raise Lost(f"the quote of {supplier} has no price, or no number of lots")
    freight = {m[1]: int(m[2]) if m[2].isdigit() else None
               for m in re.finditer(r"Freight per lot to ([^:]+?) in [A-Z]{3}: (\d+|no delivery)", text)}  # fmt: skip
    return {"id": supplier, "currency": price[1], "price": int(price[2]), "lots": int(lots[1]), "freight": freight}


def stated(facts: Mapping[str, Any], forgets: Sequence[str] = ()) -> dict[str, Any]:
    """Costs, limits and demand; with what a careless reader forgets left out."""
    demand = facts["demand"]
    bound = sum(demand.values()) if "share" in forgets else sum(demand.values()) * facts["share"] // 100
    costs: dict[str, dict[str, int]] = {}
    limits: dict[str, int] = {}
    for quote in facts["quotes"]:
        one = facts["old"] if "old" in forgets and facts["old"]["id"] == quote["id"] else quote
        lots, cut = one["lots"], facts["cut"]
        if cut and cut["supplier"] == one["id"] and "cut" not in forgets:
            lots = cut["lots"]
        rate = 1.0 if one["currency"] == facts["home"] or "rate" in forgets else facts["rate"]
        limits[one["id"]] = min(lots, bound)
        costs[one["id"]] = {
            site: round((one["price"] + (0 if "freight" in forgets else freight)) * rate)
            for site, freight in one["freight"].items()
            if site in demand and freight is not None
        }
    return {"costs": costs, "limits": limits, "demand": dict(demand)}


def solved(problem: Mapping[str, Any]) -> Answer | None:
    """The deliverable of a problem; None where the demand cannot be met."""
    found = cheapest(problem["costs"], problem["limits"], problem["demand"])
    if found is None:
        return None
    lots = [{"supplier": one, "site": site, "lots": count} for (one, site), count in found.lots.items()]
    return {"lots": lots, "total": found.total, "values": found.value, "premiums": found.premium}


def _greedy(problem: Mapping[str, Any], demand: Mapping[str, int]) -> Answer:
    """Lane by lane, the cheapest first, as long as there is room."""
    room, need = dict(problem["limits"]), dict(demand)
    lots, total = [], 0
    lanes = sorted((cost, one, site) for one, to in problem["costs"].items() for site, cost in to.items())
    for cost, one, site in lanes:
        count = min(room[one], need[site])
        if count:
            lots.append({"supplier": one, "site": site, "lots": count})
            room[one], need[site], total = room[one] - count, need[site] - count, total + cost * count
    return {"lots": lots, "total": total, "values": dict.fromkeys(need, 0), "premiums": dict.fromkeys(room, 0)}


def _all_from_one(problem: Mapping[str, Any], answer: Answer) -> Answer:
    """Who opens one quote only: everything from its supplier."""
    supplier = min(problem["costs"])
    lots = [{"supplier": supplier, "site": site, "lots": count} for site, count in problem["demand"].items()]
    total = sum(problem["costs"][supplier].get(row["site"], 0) * row["lots"] for row in lots)
    return {**answer, "lots": lots, "total": total, "premiums": dict.fromkeys(answer["premiums"], 0)}


def _wrong(facts: Mapping[str, Any], problem: Mapping[str, Any], answer: Answer) -> tuple[Wrong, ...]:
    names = {
        "cut": "limit as quoted", "old": "stale-version", "share": "share forgotten", "rate": "no exchange rate",
        "freight": "freight forgotten",
    }  # fmt: skip
    found = []
    for what, name in names.items():
        made = solved(stated(facts, (what,)))
        if made is not None and made["total"] != answer["total"]:
            found.append(Wrong(name, made, "total"))
    greedy = _greedy(problem, problem["demand"])
    if greedy["total"] != answer["total"]:
        found.append(Wrong("cheapest lane first", greedy, "no better plan"))
    rows = answer["lots"]
    turned = [{**row, "supplier": rows[i - 1]["supplier"]} for i, row in enumerate(rows)]
    found.append(Wrong("swapped-entity", {**answer, "lots": turned}, "within limits"))
    unproved = {**answer, "total": greedy["total"], "values": greedy["values"], "premiums": greedy["premiums"]}
    found.append(Wrong("prices of nothing", unproved, "proof"))
    if len(found) < 5:
        raise Unbindable("what careless readers forget changes nothing here")
    return tuple(found)


def _checks(problem: Mapping[str, Any], answer: Answer) -> tuple[Check, ...]:
    base = {"file": FILE, "path": "lots", **problem}
    proof = {**base, "values": "values", "premiums": "premiums"}
    return (
        Check("shape", "json.shape", {"file": FILE, "keys": {"lots": "list", "total": "number", "values": "object",
                                                             "premiums": "object"}}, kind="gate"),
        Check("within limits", "plan.feasible", base, weight=0.1, stage="intermediate"),
        Check("no better plan", "plan.cheapest", {**base, "best": answer["total"]}, weight=0.4),
        Check("proof", "plan.proved", proof, weight=0.3),
        Check("total", "json.fields", {"file": FILE, "fields": {"total": answer["total"]}, "tol": {"abs": 0.0}},
              weight=0.2),
    )  # fmt: skip


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"Purchasing at {office.setting.company} has to award the framework contract by the end of the week.",
        f"{office.setting.company} collected quotes for a framework contract and wants the cheapest award.",
        f"The award of the framework contract of {office.setting.company} will be audited: it has to be the cheapest.",
    ))  # fmt: skip
    return f"""{opener}

Quotes, needs and rules are in procurement/award; what suppliers told purchasing since then is in the chats. Award the
lots of these sites only, as if there were no others: {", ".join(ask["sites"])}. All lots of the award are the lots of
these sites.

Save `artifacts/{FILE}`, a JSON object with

- `lots`: a list of objects with `supplier` (its number, such as VE012), `site` and `lots`, one for each supplier and
  site with lots, at the least total cost that the rules allow
- `total`: that cost, in whole {ask["currency"]}
- `values` and `premiums`: an object with a value for each of these sites, and one with a premium for each supplier that
  quoted, in {ask["currency"]} a lot, which together prove that no award is cheaper: no premium is negative; on every
  lane that exists, the value of the site less the premium of the supplier is at most the cost of a lot; and the values
  times the lots that sites need, less the premiums times the most that suppliers may be awarded, come to `total`
"""
