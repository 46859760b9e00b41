"""IB7: a compliance certificate: three covenants tested at the last quarter's end, each with the clause that sets it.

What makes it hard: an amendment has replaced one level, and its Word copy may bear a change that was declined; the test
looks back over four quarters and not over a fiscal year, costs that are exceptional do not count, and undrawn
commitments are no debt.
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
from journeyman.worlds.templates.banking.declined import is_marked, what_stays
from journeyman.worlds.templates.banking.ib4_equity import DEBT, read_debts
from journeyman.worlds.templates.banking.sheets import one_file, sheet_rows
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "compliance_certificate.docx"
NAMES = {"leverage": "Leverage", "interest_cover": "Interest cover", "liquidity": "Minimum liquidity"}
COLUMNS = ("Covenant", "Clause", "Actual", "Required", "Result", "Source", "Page")
KEYS = ("covenant", "clause", "actual", "required", "result", "source", "page")
ITEMS = {"net_debt": "Total Net Debt", "ebitda": "EBITDA", "interest": "Interest Expense", "cash": "Liquidity"}
AMOUNT = {"abs": 4.0, "rel": 1e-7}
RATIO = {"abs": 0.006}

STATED = {
    "leverage": (r"\(\"Leverage\"\) shall not exceed ([\d.,]+) to 1", "The Borrower ensures that the ratio of Total"),
    "interest_cover": (r"Interest Expense for the Relevant Period[^;]*?Test Date is not less than ([\d.,]+) to",
                       "The Borrower ensures that the ratio of EBITDA"),
    "liquidity": (r"Liquidity on each Test Date is not less than (.+?)\.(?= [A-Z]|$)", "Liquidity on each Test Date"),
}  # fmt: skip
"""Covenant -> its level in the agreement, and how its paragraph begins."""

Places = Mapping[str, tuple[str, str]]
"""Covenant -> (path, page) that sets its level."""


@dataclass(frozen=True)
class IB7:
    """See the module."""

    id: str = "IB7"
    domain: str = "banking"
    title: str = "compliance certificate under a facilities agreement"
    traps: tuple[str, ...] = ("T1", "T5", "T9", "T17")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        setting, last = office.setting, office.setting.years[-1]
        quarters = [f"Q3 FY{last}", f"Q4 FY{last}", f"Q1 FY{last + 1}", f"Q2 FY{last + 1}"]
        test = setting.label(setting.months[-1])
        levels = office.truth.as_of(office.today).rows(
            "SELECT name, clause_no, threshold FROM covenant_at ORDER BY name"
        )
        before = office.truth.value("SELECT threshold FROM covenant WHERE id = 'CV-leverage'")
        required = {row["name"]: (int(row["clause_no"]), float(row["threshold"])) for row in levels}
        if set(required) != set(NAMES) or not office.of_kind("debt_overview"):
            raise Unbindable("not the three covenants, or no overview of the debt")
        parts = {
            key: int(office.truth.value("SELECT amount FROM debt WHERE id = :i", i=f"DB{code}"))
            for code, key in DEBT.items()
        }
        income = {item: sum(_fact(office, q, item) for q in quarters) for item in ("ebitda", "interest")}
        year = {item: _fact(office, f"FY{last}", item) for item in ("ebitda", "interest")}
        facts = {
            "leverage": "covenant:leverage:amended",
            **{n: f"covenant:{n}" for n in ("interest_cover", "liquidity")},
        }
        marked = office.trap("T17", "covenant:leverage")
        shown = {**facts, "leverage": "covenant:leverage:proposed"} if marked else facts
        places = {name: _place(office, fact) for name, fact in shown.items()}
        planted = office.trap("T9", "debt:2510")
        table_says = {**parts, "revolver": int(planted.wrong["revolver"])} if planted else parts
        answer = certified(parts, income, required, places)
        if any(abs(row["actual"] - row["required"]) < 0.02 for row in answer["covenants"]) or income["interest"] <= 0:
            raise Unbindable("a ratio lies next to its level")
        stale = {**required, "leverage": (required["leverage"][0], float(before))}
        agreement = places["interest_cover"]
        old = {**places, "leverage": (agreement[0], agreement[1])}
        ask = {"quarters": quarters, "test": test, "currency": setting.currency, "file": FILE}
        baits, blind = {}, certified(table_says, year, stale, old)
        if planted:
            baits["T9:commitment for drawn"] = certified(table_says, income, required, places)
        if marked:
            wish = {**required, "leverage": (required["leverage"][0], float(marked.wrong["level"]))}
            baits["T17:level of the tracked change"] = certified(parts, income, wish, places)
            blind = certified(table_says, year, wish, places)
        found = {"stale-version": ("T1", "covenant:leverage"), "fiscal year for four quarters": ("T5", "quarters:")}
        traps = {name: trap for name, (trap, site) in found.items() if office.trap(trap, site)}
        wrong = _wrong(answer, parts, income, year, required, stale, places, old, baits, traps)
        hops = [[{"path": one.path, "locator": one.locator} for one in office.where(fact)] for fact in shown.values()]
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(answer, hops),
            (FILE,), wrong, trap_blind=blind,
            single=certified(dict.fromkeys(parts, 0), dict.fromkeys(income, 1.0), stale, old),
            facts=(*facts.values(), "debt:2500", "debt:2520", "debt:1000",
                   *(f"income:group:{q}:{item}" for q in quarters for item in income)),
            reads=(office.of_kind("credit_agreement")[0].path, office.of_kind("credit_amendment")[0].path),
            traps=tuple(sorted({one.trap for one in wrong if one.trap})), unordered=("covenants", "computation"),
            knobs=knobs, notes={"passes": sum(row["result"] == "pass" for row in answer["covenants"])},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: docx_bytes(layout(bound.ask, answer))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        path = yield from one_file("*senior*facilities*agreement*.pdf")
        raw = yield from reading.addressed_text(path)
        required, places = _levels(reading.without_addresses(raw), raw, path)
        amendment = yield from one_file("*facilities*agreement*amendment*")
        other = yield from reading.addressed_text(amendment)
        flat = " ".join(reading.without_addresses(other).split())
        new = re.search(r"In clause (\d+) \(Leverage\).*?Leverage shall not exceed ([\d.,]+) to 1", flat)
        if new and reading.is_signed(flat):
            level = new[2]
            if is_marked(other):
                level = yield from what_stays("amendment no. 1: change not accepted", "The ratio stays at", " to 1")
            required["leverage"] = (int(new[1]), _ratio(level))
            places["leverage"] = (amendment, reading.place_of(other, "In clause") or "p1")
        income = {"ebitda": 0.0, "interest": 0.0}
        for quarter in ask["quarters"]:
            number, year = quarter.split()
            rows = yield from sheet_rows((yield from one_file(f"*management*accounts*{number}*{year}*.xlsx")))
            for row in rows.values():
                if row and str(row[0]).startswith("EBITDA before"):
                    income["ebitda"] += float(row[4])
                elif row and row[0] == "Interest":
                    income["interest"] += abs(float(row[4]))
        parts = read_debts((yield from reading.document_text((yield from one_file("*debt*overview*.pdf")))))
        yield save_document(FILE, layout(ask, certified(parts, income, required, places)))


def certified(
    parts: Mapping[str, int], income: Mapping[str, float], required: Mapping[str, tuple[int, float]], places: Places
) -> Answer:
    """The certificate: covenants in the order of their clauses, and what they were computed from."""
    debt = parts["term_loan"] + parts["revolver"] + parts["leases"] - parts["cash"]
    actual = {
        "leverage": round(debt / income["ebitda"], 2),
        "interest_cover": round(income["ebitda"] / income["interest"], 2),
        "liquidity": parts["cash"],
    }
    rows = []
    for name, label in NAMES.items():
        clause, level = required[name]
        is_met = actual[name] <= level if name == "leverage" else actual[name] >= level
        values = (label, clause, actual[name], level, "pass" if is_met else "fail", *places[name])
        rows.append(dict(zip(KEYS, values, strict=True)))
    amounts = {"net_debt": debt, "ebitda": income["ebitda"], "interest": income["interest"], "cash": parts["cash"]}
    return {"covenants": rows, "computation": [{"item": ITEMS[k], "amount": v} for k, v in amounts.items()]}


def _fact(office: Office, period: str, item: str) -> float:
    found = office.facts.get(f"income:group:{period}:{item}")
    if found is None:
        raise Unbindable(f"no {item} of {period}")
    return float(found.value)


def _place(office: Office, fact: str) -> tuple[str, str]:
    found = office.where(fact)
    if not found:
        raise Unbindable(f"{fact} can be read nowhere")
    return found[0].path, found[0].locator.partition("/")[0]


def _ratio(text: str) -> float:
    return float(text.strip().rstrip(".,").replace(",", "."))


def _levels(text: str, raw: str, path: str) -> tuple[dict[str, tuple[int, float]], dict[str, tuple[str, str]]]:
    """Clause and level of each covenant as the agreement was signed, and where they stand. Raises Lost."""
    flat, found, places = " ".join(text.split()), {}, {}
    for name, (pattern, start) in STATED.items():
        level = re.search(pattern, flat)
        number = re.search(rf"^\W*(\d+)\. {re.escape(NAMES[name])}\s*$", text, re.M | re.I)
        if level is None or number is None:
            raise Lost(f"no covenant on {name}")
        value = float(reading.whole_number(level[1])) if name == "liquidity" else _ratio(level[1])
        found[name], places[name] = (int(number[1]), value), (path, reading.place_of(raw, start) or "p1")
    return found, places


def _wrong(
    answer: Answer, parts: Mapping[str, int], income: Mapping[str, float], year: Mapping[str, float],
    required: Mapping[str, tuple[int, float]], stale: Mapping[str, tuple[int, float]], places: Places, old: Places,
    baits: Mapping[str, Answer], traps: Mapping[str, str],
) -> tuple[Wrong, ...]:  # fmt: skip
    rows: list[dict[str, Any]] = answer["covenants"]
    shifted = [{**row, "actual": rows[n - 1]["actual"]} for n, row in enumerate(rows)]
    flipped = [{**row, "result": "fail" if row["result"] == "pass" else "pass"} for row in rows]
    versions: dict[str, Answer] = {
        "stale-version": certified(parts, income, stale, old),
        "fiscal year for four quarters": certified(parts, year, required, places),
        "cash not deducted": certified(
            {**parts, "term_loan": parts["term_loan"] + parts["cash"]}, income, required, places
        ),
        "swapped-entity": {**answer, "covenants": shifted},
        "results the other way": {**answer, "covenants": flipped},
        **baits,
    }
    return tuple(
        Wrong(name, made, "certificate", name.partition(":")[0] if name in baits else traps.get(name, ""))
        for name, made in versions.items()
        if made["covenants"] != rows
    )


def _checks(answer: Answer, hops: Sequence[Sequence[Mapping[str, str]]]) -> tuple[Check, ...]:
    rows = [[row[key] for key in KEYS[:5]] for row in answer["covenants"]]
    for row in rows:
        row[1] = {"one_of": [row[1], f"clause {row[1]}"]}
    columns: list[dict[str, Any]] = [{"name": name} for name in COLUMNS[:5]]
    columns[2]["tol"] = columns[3]["tol"] = RATIO
    certificate = {"file": FILE, "columns": columns, "rows": rows}
    amounts = [[row["item"], row["amount"]] for row in answer["computation"]]
    return (
        Check("document", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("certificate", "table", certificate, weight=0.6, trap_ids=("T9", "T17")),
        Check("leverage", "table", {**certificate, "rows": rows[:1], "extra": "ignored"}, weight=0.1,
              trap_ids=("T9", "T17")),
        Check("computation", "table", {"file": FILE, "rows": amounts, "columns": [
            {"name": "Item"}, {"name": "Amount", "tol": AMOUNT},
        ]}, weight=0.15, stage="intermediate", trap_ids=("T9",)),
        Check("citations", "cites", {"file": FILE, "columns": ["Source", "Page"], "hops": [list(hop) for hop in hops],
              "spare": 0}, weight=0.1, stage="intermediate"),
        Check("headings", "doc.headings", {"file": FILE, "headings": ["Covenants", "Computation"]}, weight=0.05,
              stage="intermediate"),
    )  # fmt: skip


def layout(ask: Mapping[str, Any], answer: Answer) -> list[dict[str, Any]]:
    """Two headings with a table each."""
    rows = [[row.get(key) for key in KEYS] for row in answer["covenants"]]
    amounts = [[row.get("item"), row.get("amount")] for row in answer["computation"]]
    return [
        heading("Covenants"),
        paragraph(f"Test Date: the end of {ask['test']}."),
        table(COLUMNS, rows),
        heading("Computation"),
        table(["Item", "Amount"], amounts),
    ]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"The lender of {office.setting.company} waits for the compliance certificate.",
        f"The chief financial officer of {office.setting.company} is to sign the compliance certificate today.",
        f"Does {office.setting.company} keep its covenants? The certificate is due.",
    ))  # fmt: skip
    return f"""{opener}

Prepare it for the Test Date at the end of {ask["test"]}, as the facilities agreement in legal/finance defines its
terms and as it has been amended; a change that is only tracked in a filed copy and was declined by mail does not count.
The Relevant Period is {", ".join(ask["quarters"])}: EBITDA (before exceptional items) and interest as the management
accounts of these quarters in finance show them; debt and cash from the debt overview in finance.

Save `artifacts/{FILE}`, a Word file with two headings and a table under each:

- `Covenants`: columns `Covenant` ({"; ".join(f"`{name}`" for name in NAMES.values())}), `Clause` (its number), `Actual`
  and `Required` (ratios as plain numbers with two decimals, such as 1.25; liquidity in whole {ask["currency"]}),
  `Result` (`pass` or `fail`), `Source` (path of the file that sets the level now in force) and `Page` (where it stands
  there: a page such as p2 in a PDF, the paragraph's address, `para:...`, in a Word file)
- `Computation`: columns `Item` ({"; ".join(f"`{name}`" for name in ITEMS.values())}) and `Amount`, in whole
  {ask["currency"]}, all positive unless cash exceeds debt
"""
