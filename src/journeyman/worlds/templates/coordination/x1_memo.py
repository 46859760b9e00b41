"""X1: a memo to the investment committee out of four pieces of work that do not depend on each other.

Peers, the cash flow model, the bids and the contracts are the tasks IB2, IB3, IB5 and CL1, each with its own files and
checks; the memo needs the results of all four, so the longest piece and the memo are the critical path. What makes it
hard: a late mail changes a price or must not, and a figure that is wrong in its part is wrong in the memo.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.papers import docx_bytes, heading, paragraph, save_document, table
from journeyman.worlds.template import FOLDER, Answer, Bound, Files, Lost, Solving, Template, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.banking import ib2_peers, ib3_sensitivity, ib5_bids
from journeyman.worlds.templates.banking.sheets import sheet_rows
from journeyman.worlds.templates.law import cl1_clauses
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

MEMO = "committee_memo.docx"
PARTS: dict[str, Template] = {
    "IB2": ib2_peers.IB2(), "IB3": ib3_sensitivity.IB3(), "IB5": ib5_bids.IB5(), "CL1": cl1_clauses.CL1(),
}  # fmt: skip
"""Pieces of work; none needs another, the memo needs all."""

TITLES = {"IB2": "Peers", "IB3": "Cash flow model", "IB5": "Bids", "CL1": "Contracts"}
PART_SHARE = 0.09
"""Weight of one part; the memo has the rest."""

MOST_KINDS = 5
"""Of contracts, less one, that the matrix takes: the contracts are the long piece of work."""

HEADINGS = ("Recommendation", "Key figures", "Conditions")
COUNTED = ("term", "payment_days", "confidentiality", "warranty", "renewal_notice")
"""Clauses of which the memo names the highest value; at least one must be among those of the matrix."""


@dataclass(frozen=True)
class X1:
    """See the module."""

    id: str = "X1"
    domain: str = "coordination"
    title: str = "committee memo out of peers, cash flow model, bids and contracts"
    traps: tuple[str, ...] = ("T1", "T3", "T4", "T5", "T7", "T13", "T17", "T18", "T20", "T21")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        many = replace(knobs, fan_out=min(MOST_KINDS, knobs.fan_out + 2))
        parts = {name: part.bind(office, rng, many if name == "CL1" else knobs) for name, part in PARTS.items()}
        if not {"T18", "T21"} & set(parts["IB5"].traps):
            raise Unbindable("no late mail changes a price, or tries to")
        counted = [one for one in COUNTED if one in parts["CL1"].ask["types"]]
        if not counted:
            raise Unbindable("no clause of the matrix can be counted")
        ask = {"parts": {name: dict(one.ask) for name, one in parts.items()}, "counted": counted[0],
               "currency": office.setting.currency}  # fmt: skip
        answer = _answer(ask, {name: one.answer for name, one in parts.items()})
        wrong = _wrong(ask, parts, answer)
        blind = _answer(ask, {name: one.trap_blind for name, one in parts.items()})
        alone = _answer(ask, {name: one.single or one.trap_blind for name, one in parts.items()})
        if len(wrong) < 4:
            raise Unbindable("what goes wrong in the parts does not show in the memo")
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, parts, rng), ask, answer,
            _checks(ask, parts, answer), (MEMO, *(name for one in parts.values() for name in one.deliverables)), wrong,
            trap_blind=blind, single={**alone, "figures": [{**row, "value": 0} for row in alone["figures"]]},
            facts=tuple(dict.fromkeys(fact for one in parts.values() for fact in one.facts)),
            reads=tuple(dict.fromkeys(path for one in parts.values() for path in one.reads)),
            originals=tuple(path for one in parts.values() for path in one.originals),
            traps=tuple(sorted({one.trap for one in wrong if one.trap})), knobs=knobs,
            unordered=("parts.IB5.bids", "parts.CL1.contracts"),
            notes={"parts": len(parts), "pasted": parts["IB3"].notes["pasted"], "late": sorted(
                {"T18", "T21"} & set(parts["IB5"].traps))},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        made = {MEMO: docx_bytes(memo(answer))}
        for name, part in PARTS.items():
            made |= part.write(_part(bound, name), answer["parts"][name], world, form)
        return made

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        for name, part in PARTS.items():
            yield from part.solve(ask["parts"][name])
        by_revenue, by_ebitda = yield from _peers_left()
        grid = yield from _model_left()
        bids = yield from _bids_left()
        contracts, highest = yield from _matrix_left(ask["counted"])
        figures = _table(by_revenue, by_ebitda, grid, [price for price, _ in bids], contracts, highest)
        yield save_document(MEMO, memo({"figures": figures, "best": bids[0][1]}))


def _part(bound: Bound, name: str) -> Bound:
    """What a part's writer needs of its own binding."""
    return replace(bound, ask=bound.ask["parts"][name], answer=bound.answer["parts"][name])


def _answer(ask: Mapping[str, Any], parts: Mapping[str, Answer]) -> Answer:
    """The parts as they are, and the memo that follows from them."""
    ranking = parts["IB5"]["ranking"]
    return {
        "parts": dict(parts), "figures": _figures(ask, parts),
        "best": ranking[0]["bidder"] if ranking else None,
    }  # fmt: skip


def _figures(ask: Mapping[str, Any], parts: Mapping[str, Answer]) -> list[dict[str, Any]]:
    rows = parts["IB2"]["peers"]
    by_revenue, by_ebitda = (median(values) for values in list(zip(*ib2_peers.multiples(rows), strict=True))[1:])
    grid = [value for row in parts["IB3"]["grid"] for value in row]
    prices = [row["price"] for row in parts["IB5"]["ranking"]]
    values = [row.get(ask["counted"]) for row in parts["CL1"]["contracts"]]
    numbers = [value for value in values if isinstance(value, int | float)]
    return _table(by_revenue, by_ebitda, grid, prices, len(values), max(numbers, default=0))


def _table(
    by_revenue: float, by_ebitda: float, grid: Sequence[float], prices: Sequence[float], contracts: int, highest: float
) -> list[dict[str, Any]]:
    """The memo's key figures."""
    middle, best = grid[len(grid) // 2], prices[0] if prices else 0
    values = {
        "Median EV/Revenue": round(by_revenue, 2), "Median EV/EBITDA": round(by_ebitda, 2),
        "Enterprise value, base case": round(middle), "Enterprise value, lowest": round(min(grid)),
        "Enterprise value, highest": round(max(grid)), "Best price": round(best),
        "Second price": round(prices[1]) if len(prices) > 1 else 0, "Best price above base case": round(best - middle),
        "Contracts": contracts, "Highest value": highest,
    }  # fmt: skip
    return [{"item": item, "value": value} for item, value in values.items()]


def memo(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Three headings, a recommendation, the key figures as a table."""
    rows = [[row.get("item"), row.get("value")] for row in answer["figures"]]
    return [
        heading(HEADINGS[0]), paragraph(f"We recommend to go on with {answer['best']}, whose price is the highest."),
        heading(HEADINGS[1]), table(["Item", "Value"], rows),
        heading(HEADINGS[2]), paragraph("The workbooks beside this memo hold the conditions of bids and contracts."),
    ]  # fmt: skip


def _wrong(ask: Mapping[str, Any], parts: Mapping[str, Bound], answer: Answer) -> tuple[Wrong, ...]:
    """Controls of the parts whose mistake shows in the memo, and memos that do not follow from their parts."""
    found = []
    for name, bound in parts.items():
        for one in bound.wrong:
            made = _answer(ask, {**answer["parts"], name: one.answer})
            if _shows(made, answer):
                found.append(Wrong(f"{name} {one.name}", made, "key figures", one.trap))
    kept: dict[str, Wrong] = {}
    for one in found:
        kept.setdefault(one.trap or one.name, one)
    stale = next((one for one in found if one.trap in ("T18", "T21", "T1")), None)
    if stale is not None:
        figures = stale.answer["figures"]
        made = {**answer, "figures": figures, "best": stale.answer["best"]}
        kept["memo"] = Wrong("stale-version", made, "key figures")
    rows = answer["figures"]
    turned = [{**row, "value": rows[i - 1]["value"]} for i, row in enumerate(rows)]
    kept["turned"] = Wrong("swapped-entity", {**answer, "figures": turned}, "key figures")
    return tuple(kept.values())


def _shows(made: Answer, answer: Answer) -> bool:
    pairs = zip(made["figures"], answer["figures"], strict=True)
    return any(abs(one["value"] - other["value"]) > 2 * _tolerance(other["value"]) for one, other in pairs)


def _tolerance(value: float) -> float:
    return 0.006 if abs(value) < 1000 else 1.5


def _checks(ask: Mapping[str, Any], parts: Mapping[str, Bound], answer: Answer) -> tuple[Check, ...]:
    checks = []
    for name, bound in parts.items():
        total = sum(one.weight for one in bound.checks if one.kind == "scored")
        for one in bound.checks:
            weight = PART_SHARE * one.weight / total if one.kind == "scored" else one.weight
            stage = "intermediate" if one.kind == "scored" else one.stage
            checks.append(replace(one, id=f"{name}: {one.id}", weight=weight, stage=stage))
    rest = 1 - PART_SHARE * len(parts)
    figures = {"file": MEMO, "key": ["Item"], "rows": [[row["item"], row["value"]] for row in answer["figures"]],
               "columns": [{"name": "Item"}, {"name": "Value", "tol": {"abs": 0.006}}]}  # fmt: skip
    return (
        *checks,
        Check("memo", "present", {"files": [MEMO]}, kind="gate", no_op="pass"),
        Check("key figures", "table", figures, weight=rest * 0.85,
              trap_ids=tuple(sorted({trap for one in parts.values() for trap in one.traps}))),
        Check("figures one by one", "table", {**figures, "credit": "share"}, weight=rest * 0.03, required=False,
              stage="intermediate"),
        Check("results kept", "agree", {"pairs": _pairs(ask, parts), "tol": {"abs": 0.6}},
              weight=rest * 0.05, stage="intermediate"),
        Check("recommendation", "doc.mentions", {"file": MEMO, "facts": [
            {"value": answer["best"], "near": ["recommend"]},
        ]}, weight=rest * 0.07, trap_ids=("T18", "T21")),
    )  # fmt: skip


def _pairs(ask: Mapping[str, Any], parts: Mapping[str, Bound]) -> list[dict[str, Any]]:
    """Figures of the memo and the places of the parts that they were taken from."""
    last = len(ask["parts"]["IB2"]["names"]) + 2
    places = {
        "Median EV/EBITDA": {"file": parts["IB2"].deliverables[0], "cell": f"{ib2_peers.SHEET}!H{last}"},
        "Enterprise value, base case": {"file": parts["IB3"].deliverables[0], "cell": "Sensitivity!D7"},
        "Best price": {"file": ib5_bids.MEMO, "columns": ["Rank", "Price"], "row": 1},
    }
    return [{"a": {"file": MEMO, "columns": ["Item", "Value"], "row": item}, "b": place}
            for item, place in places.items()]  # fmt: skip


def _peers_left() -> reading.Reading:
    """Both medians of the table that was left."""
    rows = yield from sheet_rows(f"/{FOLDER}/{ib2_peers.FILE}")
    line = next((cells for cells in rows.values() if cells and cells[0] == "Median"), None)
    if line is None:
        raise Lost("the table of peers has no medians")
    return [float(one) for one in line if isinstance(one, int | float)][-2:]


def _model_left() -> reading.Reading:
    rows = yield from sheet_rows(f"/{FOLDER}/{ib3_sensitivity.FILE}", 2)
    return [float(value) for number in ib3_sensitivity.ROWS for value in rows[number][1:6]]


def _bids_left() -> reading.Reading:
    """(price, bidder), the highest first."""
    rows = yield from sheet_rows(f"/{FOLDER}/{ib5_bids.BOOK}")
    return sorted(((line[1], line[0]) for line in list(rows.values())[1:] if line and line[0]), reverse=True)


def _matrix_left(counted: str) -> reading.Reading:
    """How many contracts there are, and the highest value of a clause."""
    rows = list((yield from sheet_rows(f"/{FOLDER}/{cl1_clauses.FILE}")).values())
    column = rows[0].index(cl1_clauses.COLUMNS[counted][0])
    values = [line[column] for line in rows[1:] if line and line[0]]
    return len(values), max(one for one in values if isinstance(one, int | float))


def _instruction(office: Office, ask: Mapping[str, Any], parts: Mapping[str, Bound], rng: random.Random) -> str:
    opener = rng.choice((
        f"The investment committee decides on {office.setting.company} and wants one memo, with the work behind it.",
        f"Prepare the committee's memo on {office.setting.company}: four pieces of work and what follows from them.",
    ))  # fmt: skip
    pieces = "\n".join(
        f"## {number}. {TITLES[name]}\n\n{one.instruction.strip()}\n"
        for number, (name, one) in enumerate(parts.items(), 1)
    )
    column = cl1_clauses.COLUMNS[ask["counted"]][0]
    return f"""{opener}

The four pieces do not need each other and can be done by several people; the memo needs all of them.

{pieces}
## 5. Memo

Save `artifacts/{MEMO}`, a Word document with the headings {", ".join(HEADINGS)}. Under the first, one sentence
recommends the bidder with the highest price by name (We recommend ...). Under the second stands a table with the
columns `Item` and `Value`, bare numbers, and these rows:

- `Median EV/Revenue` and `Median EV/EBITDA`: of the peers, two decimals
- `Enterprise value, base case`: the middle of the grid; `Enterprise value, lowest` and `Enterprise value, highest`: of
  the whole grid; `Best price` and `Second price`: of the bids; `Best price above base case`: negative if it is below;
  all of these in whole {ask["currency"]}
- `Contracts`: rows of the clause matrix; `Highest value`: the highest number in its column `{column}`

Under the third, a sentence or two.
"""
