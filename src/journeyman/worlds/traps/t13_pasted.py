"""T13: a number was pasted over a formula, and everything below follows the stale number."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from journeyman.worlds.content import Cell, Sheet
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.key_figures import FIRST, MONTHS, QUARTERS
from journeyman.worlds.events.models import (
    YEARS,
    dcf_assumptions,
    dcf_book,
    dcf_values,
    debt_assumptions,
    debt_book,
    debt_values,
)
from journeyman.worlds.plan import Planted
from journeyman.worlds.render.xlsx import column_letters
from journeyman.worlds.traps.edits import one_of_kind, revise_sheet, with_cells
from journeyman.worlds.traps.operator import Operator

LINES = {"interest": 6, "available": 8}
"""Line of the debt schedule that may hold a pasted number -> its row."""

FELT = 1000
"""By how much a pasted number must move a closing balance of the loan."""

BALANCE = 4
"""Column of the balance in a trial balance; debit and credit stand two and one before it."""


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """One number of an earlier version in the cash flow model, the debt schedule, a trial balance, the key figures."""
    return [*_cash_flows(draft, rng), *_schedule(draft, rng), *_trial_balance(draft, rng), *_key_figure(draft, rng)]


def _cash_flows(draft: Draft, rng: Random) -> list[Planted]:
    """EBITDA of one year of the cash flow model."""
    found = one_of_kind(draft, "dcf_model")
    assert found is not None
    given = dcf_assumptions(draft)
    year = rng.randrange(2, YEARS + 1)
    right = dcf_values(given)
    pasted = round(right["ebitda"][year - 1] * rng.choice((0.91, 0.94, 1.07, 1.1)))
    wrong = dcf_values(given, {year: pasted})
    draft.plan.revise(found.path, dcf_book(draft, given, {year: pasted}))
    cell = f"DCF!{column_letters(year)}5"
    return [
        Planted(
            "T13",
            f"model:dcf:{cell}",
            ("dcf:margin", "dcf:wacc"),
            {"enterprise": wrong["enterprise"], "cell": pasted},
            {"enterprise": right["enterprise"], "cell": right["ebitda"][year - 1]},
        )
    ]


def _schedule(draft: Draft, rng: Random) -> list[Planted]:
    """Interest, or what is available for the sweep, of one year of the debt schedule; a wrong sign of T6 stays in it.

    The site names line and year as well: ``model:debt:Schedule!D6:interest:3``.
    """
    found = one_of_kind(draft, "debt_model")
    assert found is not None
    given, right = debt_assumptions(draft), debt_values(debt_assumptions(draft))
    signs = [one.site for one in draft.plan.planted if one.trap == "T6" and one.site.startswith("model:debt:")]
    wrong_year = "ABCDEF".index(signs[0].partition("!")[2][0]) if signs else 0
    factor, places = rng.choice((0.88, 0.92, 1.09, 1.13)), [(line, n) for line in LINES for n in range(2, YEARS + 1)]
    for line, year in rng.sample(places, len(places)):
        pasted = {(line, year): float(round(right[year - 1][line] * factor))}
        moved = [
            max(abs(a["closing"] - b["closing"]) for a, b in zip(shown, other, strict=True))
            for shown, other in (
                (debt_values(given, 0, pasted), right),
                (debt_values(given, wrong_year, pasted), debt_values(given, wrong_year)),
            )
        ]
        if min(moved) < FELT:
            continue
        draft.plan.revise(found.path, debt_book(draft, given, wrong_year, pasted))
        wrong = debt_values(given, 0, pasted)
        return [
            Planted(
                "T13",
                f"model:debt:Schedule!{column_letters(year)}{LINES[line]}:{line}:{year}",
                ("debt_model:rate", "debt_model:opening_term", "debt_model:minimum_cash"),
                {"closing": wrong[-1]["closing"], "cell": pasted[line, year]},
                {"closing": right[-1]["closing"], "cell": right[year - 1][line]},
                (f"debt_model:pasted:{line}:{year}",),
            )
        ]
    return []


def _trial_balance(draft: Draft, rng: Random) -> list[Planted]:
    """Balances of a subsidiary are formulas of debit and credit, but for one."""
    last = draft.setting.label(draft.setting.months[-1])
    taken = {one.site.split(":")[1] for one in draft.plan.planted if one.trap == "T6"}
    entity = rng.choice([one for one in ("S1", "S2") if one not in taken])
    found = draft.plan.of_kind("trial_balance", f"{entity}:{last}")[0]
    base = f"balance:{entity}:{last}"
    owned = [code for code in ("1100", "1200", "1300") if int(draft.plan.facts[f"{base}:{code}"].value) > FELT]
    if not owned:
        return []
    code, factor = rng.choice(owned), rng.choice((0.86, 0.91, 1.08, 1.12))
    fact = draft.plan.facts[f"{base}:{code}"]
    right, stale = int(fact.value), round(int(fact.value) * factor)
    bait = f"{fact.fact_id}:shown"
    draft.fact(bait, "", stale, "currency", currency=fact.currency, as_of=fact.as_of)

    def change(sheet: Sheet) -> Sheet:
        cells = dict(sheet.cells)
        for (row, column), cell in sheet.cells.items():
            if column == BALANCE and cell.fact == fact.fact_id:
                cells[row, column] = Cell(stale, style="int", fact=bait)
                cells[row, 2] = replace(cells[row, 2], fact=fact.fact_id)
            elif column == BALANCE and cell.fact:
                cells[row, column] = replace(cell, formula=f"=C{row + 1}-D{row + 1}")
            elif column == BALANCE and cell.formula:
                cells[row, column] = replace(cell, value=int(cell.value or 0) + stale - right)
        return replace(sheet, cells=cells)

    revise_sheet(draft, found.path, "TB", change)
    return [Planted("T13", fact.fact_id, (fact.fact_id,), {code: stale}, {code: right}, (bait,))]


def _key_figure(draft: Draft, rng: Random) -> list[Planted]:
    """A quarter among the last four, of the key figure that was restated where one was, but another quarter."""
    found = one_of_kind(draft, "kpi_workbook")
    assert found is not None
    names = draft.setting.trade["kpis"]
    restated = [one.site.split(":")[1] for one in draft.plan.planted if one.trap == "T2" and one.site[:4] == "kpi:"]
    name, back, apart = (restated or [rng.choice(names)])[0], rng.choice((1, 3, 4)), rng.choice((-2.3, -1.6, 1.4, 2.2))
    period = draft.notes["periods"][-back]
    row, column = FIRST + names.index(name), 7 - back
    right = float(draft.plan.facts[f"kpi:{name}:{period}"].value)
    stale, bait = round(right + apart, 1), f"kpi_pasted:{name}:{period}"
    draft.fact(bait, "", stale, "index", subject=f"kpi:{name}", predicate=period)
    months = {
        column: f"kpi_month:{name}:{period}:{n}" for n, column in enumerate(range(3 * column - 2, 3 * column + 1))
    }

    def stated(sheet: Sheet) -> Sheet:
        for place, fact in months.items():
            draft.fact(fact, "", float(sheet.cells[row, place].value or 0), "index", subject=f"kpi:{name}")
        return with_cells(sheet, {(row, at): replace(sheet.cells[row, at], fact=fact) for at, fact in months.items()})

    revise_sheet(draft, found.path, MONTHS, stated)
    revise_sheet(draft, found.path, QUARTERS, lambda s: with_cells(s, {(row, column): Cell(stale, "", "one", bait)}))
    return [Planted("T13", f"kpi:{name}:{period}", tuple(months.values()), {"value": stale}, {"value": right}, (bait,))]


T13 = Operator("T13", "stale number inside formulas", "plan", apply)
