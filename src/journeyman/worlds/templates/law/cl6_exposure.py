"""CL6: what a seller owes on the claims that were notified, under the limits that the parties agreed.

What makes it hard: small claims do not count, foreign amounts are converted at the rate that the list names, the basket
tips or it does not, a note replaces the basket of the table, and the draft agreement has other figures.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.papers import docx_bytes, heading, paragraph, save_document, table
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.law.terms import term_sheet
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "exposure.docx"
TOLERANCE = {"abs": 1.5}
RESULT = ("Basket", "Total", "Payable")
"""Figures that every misreading changes at least one of."""

CLAUSES = {"De minimis": "8.1", "Basket": "8.2", "Cap": "8.4"}
"""Figure -> clause of the draft agreement that deals with it."""

PROVISIONS = {
    "De minimis": "not liable for a Claim unless the Loss exceeds",
    "Basket": "total of all Claims that exceed the threshold",
    "Cap": "total liability of the Seller for Claims is limited",
}
LISTED = re.compile(r'\["(CL\d+)", "(?:[^"\\]|\\.)*", "[\d.]+", "([A-Z]{3})", ([\d.]+)\]')


@dataclass(frozen=True)
class CL6:
    """See the module."""

    id: str = "CL6"
    domain: str = "law"
    title: str = "indemnity exposure under threshold, basket and cap"
    traps: tuple[str, ...] = ("T3", "T9")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        rows = office.truth.rows("SELECT id, amount, currency FROM claim ORDER BY id")
        terms, drafted = _terms(office, "term sheet"), _terms(office, "spa draft")
        if len(rows) < 6 or not terms:
            raise Unbindable("too few claims, or no terms")
        rows = rows[: max(5, len(rows) - rng.randrange(3))]
        month, group = office.setting.label(office.setting.months[-1]), office.setting.currency
        ask = {"first": rows[0]["id"], "last": rows[-1]["id"], "month": month, "currency": group, "file": FILE}
        rates = {kind: _rates(office, {row["currency"] for row in rows}, group, kind) for kind in ("close", "avg")}
        claims = [(row["id"], row["amount"], row["currency"]) for row in rows]
        answer = exposure(claims, terms, rates["close"])
        if any(abs(row["amount"] - terms["de_minimis"]) < 2 for row in answer["claims"]):
            raise Unbindable("a claim is as large as the threshold")
        trap = office.trap("T9", "term_sheet:basket")
        bait = int(trap.wrong["basket"]) if trap is not None else 0
        wrong = _wrong(claims, terms, drafted, rates, bait, answer, "T3" if office.trap("T3", "claim:") else "")
        if len(wrong) < 4:
            raise Unbindable("the readings of these claims cannot be told apart")
        bad = {**terms, "basket": bait or drafted["basket"] * 2, "de_minimis": 0}
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(answer), (FILE,),
            wrong, trap_blind=exposure(claims, bad, dict.fromkeys(rates["close"], 1.0)),
            single={"claims": [{"no": no, "amount": amount, "counts": "yes"} for no, amount, _ in claims],
                    "figures": []},
            facts=(*(f"claim:{row['id']}:amount" for row in rows), *(f"term_sheet:{name}" for name in terms)),
            reads=tuple(d.path for kind in ("claims", "term_sheet", "spa", "fx_rates") for d in office.of_kind(kind)),
            traps=tuple(sorted({one.trap for one in wrong if one.trap})), unordered=("claims",), knobs=knobs,
            notes={"claims": len(rows), "kind": terms["basket_type"], "foreign": len(rates["close"]) - 1},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: docx_bytes(layout(answer))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        listed = yield from reading.list_files("*claims*notified*.xlsx")
        drafts = yield from reading.list_files("*share*purchase*agreement*.docx", "deals")
        books = yield from reading.list_files("*exchange*rates*.xlsx")
        if not listed or not drafts or not books:
            raise Lost("no list of claims, no draft agreement or no exchange rates")
        text = yield from reading.tab(listed[0])
        claims = [(no, round(float(amount)), code) for no, code, amount in LISTED.findall(text)]
        claims = [one for one in claims if ask["first"] <= one[0] <= ask["last"]]
        agreed = yield from term_sheet()
        terms = {
            "price": reading.whole_number(agreed["Base price"]), "basket": reading.whole_number(agreed["Basket"]),
            "de_minimis": reading.whole_number(agreed["De minimis"]), "basket_type": agreed["Basket type"],
            "cap_percent": reading.number(agreed["Cap on liability"].removesuffix(" per cent")),
        }  # fmt: skip
        rates = {ask["currency"]: 1.0}
        for cells in ("A1:D300", "A301:D700"):
            text = yield from reading.tab(books[0], cells=cells)
            for code, rate in re.findall(
                rf'\["([A-Z]{{3}})/{ask["currency"]}", "{ask["month"]}-\d\d", "closing", ([\d.]+)\]', text
            ):
                rates[code] = float(rate)
        answer = exposure(claims, terms, rates)
        draft = yield from reading.document_text(drafts[0])
        for row in answer["figures"]:
            words = PROVISIONS.get(row["item"])
            line = next((one for one in draft.splitlines() if words and words in one), "")
            row["clause"] = line.split(" ", 1)[0] if words else None
        yield save_document(FILE, layout(answer))


def exposure(claims: Sequence[tuple[str, int, str]], terms: Mapping[str, Any], rates: Mapping[str, float]) -> Answer:
    """Each claim in the group's currency and whether it counts; limits, total and what is payable.

    A claim counts that exceeds the threshold. Above the basket a tipping basket makes the whole total payable, a
    deductible one the excess; never more than the cap.
    """
    lines: list[dict[str, Any]] = []
    for number, amount, currency in claims:
        converted = round(amount * rates[currency])
        lines.append({"no": number, "amount": converted, "counts": "yes" if converted > terms["de_minimis"] else "no"})
    total = sum(row["amount"] for row in lines if row["counts"] == "yes")
    cap = round(terms["price"] * terms["cap_percent"] / 100)
    over = total if terms["basket_type"] == "tipping" else total - terms["basket"]
    payable = min(cap, over) if total > terms["basket"] else 0
    amounts = {"De minimis": terms["de_minimis"], "Basket": terms["basket"], "Cap": cap, "Total": total,
               "Payable": payable}  # fmt: skip
    figures = [{"item": item, "amount": value, "clause": CLAUSES.get(item)} for item, value in amounts.items()]
    return {"claims": lines, "figures": figures}


def _terms(office: Office, model: str) -> dict[str, Any]:
    names = ("price", "cap_percent", "basket", "de_minimis", "basket_type")
    rows = office.truth.rows("SELECT name, value FROM assumption WHERE model = :m", m=model)
    return {row["name"]: row["value"] for row in rows if row["name"] in names}


def _rates(office: Office, currencies: set[str], group: str, kind: str) -> dict[str, float]:
    month = office.setting.label(office.setting.months[-1])
    sql = "SELECT rate FROM fx_rate WHERE pair = :p AND kind = :k AND date LIKE :m"
    found = {
        one: float(office.truth.value(sql, p=f"{one}/{group}", k=kind, m=f"{month}%"))
        for one in sorted(currencies - {group})
    }
    return {**found, group: 1.0}


def _figure(answer: Answer, item: str) -> Any:
    return next(row["amount"] for row in answer["figures"] if row["item"] == item)


def _wrong(
    claims: Sequence[tuple[str, int, str]], terms: Mapping[str, Any], drafted: Mapping[str, Any],
    rates: Mapping[str, Mapping[str, float]], bait: int, answer: Answer, mixed: str,
) -> tuple[Wrong, ...]:  # fmt: skip
    close = rates["close"]
    other = "deductible" if terms["basket_type"] == "tipping" else "tipping"
    payable, total = (_figure(answer, item) for item in ("Payable", "Total"))
    exchanged = [{**row, "amount": {"Payable": total, "Total": payable}.get(row["item"], row["amount"])}
                 for row in answer["figures"]]  # fmt: skip
    tried = [
        ("stale-version", exposure(claims, drafted, close), ""),
        ("swapped-entity", {**answer, "figures": exchanged}, ""),
        ("the other kind of basket", exposure(claims, {**terms, "basket_type": other}, close), ""),
        ("small claims counted", exposure(claims, {**terms, "de_minimis": 0}, close), ""),
        ("not converted", exposure(claims, terms, dict.fromkeys(close, 1.0)), mixed),
        ("average rate", exposure(claims, terms, rates["avg"]), mixed),
        ("the cap taken for the claim", exposure([(claims[0][0], 10**9, claims[0][2]), *claims[1:]], terms, close), ""),
    ]
    if bait:
        tried.append(("T9:basket of the table", exposure(claims, {**terms, "basket": bait}, close), "T9"))
    return tuple(
        Wrong(name, given, "result", trap)
        for name, given, trap in tried
        if any(abs(_figure(given, item) - _figure(answer, item)) > 2 for item in RESULT)
    )


def _checks(answer: Answer) -> tuple[Check, ...]:
    rows = answer["figures"]
    amounts = [{"name": "Item"}, {"name": "Amount", "tol": TOLERANCE}]
    limits = [[row["item"], row["amount"]] for row in rows]
    cited = [[row["item"], {"one_of": [row["clause"], f"clause {row['clause']}"]}] for row in rows if row["clause"]]
    return (
        Check("memo", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("result", "table", {"file": FILE, "columns": amounts, "extra": "ignored",
                                   "rows": [line for line in limits if line[0] in RESULT]},
              weight=0.6, trap_ids=("T9",)),
        Check("figures", "table", {"file": FILE, "columns": amounts, "rows": limits}, weight=0.15,
              stage="intermediate"),
        Check("claims", "table", {
            "file": FILE, "columns": [{"name": "Claim"}, {"name": "Amount", "tol": TOLERANCE}, {"name": "Counts"}],
            "rows": [[row["no"], row["amount"], row["counts"] == "yes"] for row in answer["claims"]],
        }, weight=0.15, stage="intermediate"),
        Check("clauses", "table", {"file": FILE, "columns": [{"name": "Item"}, {"name": "Clause"}], "rows": cited,
                                   "extra": "ignored"}, weight=0.1, stage="intermediate"),
    )  # fmt: skip


def layout(answer: Answer) -> list[dict[str, Any]]:
    """A memo: the result, the figures, the claims."""
    figures = [[row.get("item"), row.get("amount"), row.get("clause")] for row in answer["figures"]]
    claims = [[row.get("no"), row.get("amount"), row.get("counts")] for row in answer["claims"]]
    return [
        heading("Exposure"),
        paragraph("The table states what the seller owes and the limits that lead there."),
        table(("Item", "Amount", "Clause"), figures),
        heading("Claims"),
        table(("Claim", "Amount", "Counts"), claims),
    ]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"Claims were notified under the sale of {office.setting.company}, and the seller asks what it owes.",
        f"The other side claims under the warranties of the sale of {office.setting.company}.",
        f"Estimate the exposure under the warranties of the sale of {office.setting.company}.",
    ))  # fmt: skip
    return f"""{opener}

Take the claims {ask["first"]} to {ask["last"]} (both included) of the list of claims notified (folder legal), each for
itself. The threshold, basket and cap are those of the signed term sheet, with its notes, in the folder deals; the draft
purchase agreement has other figures in places, but says how threshold, basket and cap work. Convert foreign amounts at
the closing rate of {ask["month"]} (finance), each rounded to whole units of {ask["currency"]}, before comparing.

Save `artifacts/{FILE}`, a Word document with

- a table with the columns `Item`, `Amount` and `Clause` and the rows `De minimis`, `Basket`, `Cap`, `Total` (of the
  claims that count against the basket) and `Payable` (what the seller owes); amounts in whole {ask["currency"]}, bare
  numbers; `Clause` is the number of the paragraph of the draft agreement, such as 2.1, that provides for the threshold,
  the basket and the cap, and empty for the last two rows
- a table with the columns `Claim`, `Amount` (converted) and `Counts` (yes or no), one row per claim
"""
