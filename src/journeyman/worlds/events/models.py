"""Models in workbooks: a discounted cash flow with an empty sensitivity grid, and a debt schedule with a cash sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from journeyman.worlds.content import Book, Cell, Sheet
from journeyman.worlds.draft import Draft
from journeyman.worlds.render.xlsx import column_letters
from journeyman.worlds.simulate.figures import figures_at, labels
from journeyman.worlds.truth.store import Row

YEARS = 5
Pasted = Mapping[tuple[str, int], float]
"""(line of the debt schedule, year from 1) -> the number that stands there instead of a formula."""

Line = Callable[[str, str], str]
"""Formula of a line from the letters of its column and of the one before (empty in the first year)."""
GRID_RATES = (-0.01, -0.005, 0.0, 0.005, 0.01)


def models_built(draft: Draft, event: Row) -> None:
    """Both models, with their assumptions as rows of the truth."""
    dcf, debt = dcf_assumptions(draft), debt_assumptions(draft)
    rows = [
        {"id": f"{model}:{name}", "model": model, "name": name, "value": value}
        for model, values in (("dcf", dcf), ("debt", debt))
        for name, value in values.items()
    ]
    draft.truth.add("assumption", rows, event=event["id"], at=event["date"])
    author = draft.roles["associate"]["name"]
    path = f"deals/{draft.setting.file_name('dcf model')}.xlsx"
    draft.document(
        path, "dcf_model", dcf_book(draft, dcf), event["id"], day=event["date"], author=author, subject="deal:D1"
    )
    path = f"deals/{draft.setting.file_name('debt model')}.xlsx"
    draft.document(
        path, "debt_model", debt_book(draft, debt), event["id"], day=event["date"], author=author, subject="deal:D1"
    )


def dcf_assumptions(draft: Draft) -> dict[str, float]:
    """Inputs of the model; revenue is that of the last complete fiscal year."""
    rng, setting = draft.rng("dcf"), draft.setting
    income = figures_at(draft).income(labels(draft, setting.year_months(setting.years[-1])))
    balance = figures_at(draft).group_balance(setting.label(setting.months[-1]))
    return {
        "revenue": income.revenue,
        "growth": round(rng.uniform(0.03, 0.12), 3),
        "margin": round(max(0.08, income.ebitda / income.revenue), 3),
        "da": round(rng.uniform(0.03, 0.06), 3),
        "capex": round(rng.uniform(0.03, 0.06), 3),
        "nwc": round(rng.uniform(0.08, 0.16), 3),
        "tax": rng.choice((0.21, 0.25, 0.28, 0.3)),
        "wacc": round(rng.uniform(0.08, 0.115), 3),
        "terminal_growth": rng.choice((0.015, 0.02, 0.025)),
        "net_debt": -sum(balance[code] for code in ("2500", "2510", "2520")) - balance["1000"],
    }


def dcf_values(given: dict[str, float], pasted: dict[int, float] | None = None) -> dict[str, Any]:
    """What the model comes to: yearly lines, enterprise and equity value, and the grid over WACC and growth.

    ``pasted`` gives EBITDA of years (1 to 5) that are numbers instead of formulas.
    """
    revenue, before = [], given["revenue"]
    for _ in range(YEARS):
        before *= 1 + given["growth"]
        revenue.append(before)
    ebitda = [(pasted or {}).get(n, value * given["margin"]) for n, value in enumerate(revenue, start=1)]
    da = [value * given["da"] for value in revenue]
    taxes = [-(e - d) * given["tax"] for e, d in zip(ebitda, da, strict=True)]
    capex = [-value * given["capex"] for value in revenue]
    prior = [given["revenue"], *revenue[:-1]]
    nwc = [-(value - last) * given["nwc"] for value, last in zip(revenue, prior, strict=True)]
    flows = [sum(parts) for parts in zip(ebitda, taxes, capex, nwc, strict=True)]

    def worth(wacc: float, growth: float) -> float:
        present = sum(flow / (1 + wacc) ** n for n, flow in enumerate(flows, start=1))
        return present + flows[-1] * (1 + growth) / (wacc - growth) / (1 + wacc) ** YEARS

    wacc, growth = given["wacc"], given["terminal_growth"]
    grid = [[worth(wacc + a, growth + b) for b in GRID_RATES] for a in GRID_RATES]
    present = sum(flow / (1 + wacc) ** n for n, flow in enumerate(flows, start=1))
    terminal = flows[-1] * (1 + growth) / (wacc - growth)
    return {
        "revenue": revenue,
        "ebitda": ebitda,
        "da": da,
        "taxes": taxes,
        "capex": capex,
        "nwc": nwc,
        "flows": flows,
        "present": present,
        "terminal": terminal,
        "enterprise": worth(wacc, growth),
        "equity": worth(wacc, growth) - given["net_debt"],
        "grid": grid,
    }


INPUTS = (
    ("revenue", "Revenue, last fiscal year", "input_int"),
    ("growth", "Revenue growth", "input_percent"),
    ("margin", "EBITDA margin", "input_percent"),
    ("da", "Depreciation, share of revenue", "input_percent"),
    ("capex", "Capital expenditure, share of revenue", "input_percent"),
    ("nwc", "Working capital, share of added revenue", "input_percent"),
    ("tax", "Tax rate", "input_percent"),
    ("wacc", "WACC", "input_percent"),
    ("terminal_growth", "Terminal growth", "input_percent"),
    ("net_debt", "Net debt", "input_int"),
)


def dcf_book(draft: Draft, given: dict[str, float], pasted: dict[int, float] | None = None) -> Book:
    """Sheets Inputs, DCF and Sensitivity; the grid of the last is left to be filled."""
    inputs, where = _dcf_inputs(draft, given)
    values, right = dcf_values(given, pasted), dcf_values(given)
    year = draft.setting.years[-1]
    cells = {(0, 0): Cell(f"Discounted cash flow, {draft.setting.currency}", style="title")}
    for n in range(YEARS):
        cells[2, n + 1] = Cell(f"FY{year + 1 + n}", style="head")
    lines: tuple[tuple[str, str, Line], ...] = (
        ("revenue", "Revenue", lambda c, p: f"={p or where['revenue']}*(1+{where['growth']})"),
        ("ebitda", "EBITDA", lambda c, p: f"={c}4*{where['margin']}"),
        ("da", "Depreciation", lambda c, p: f"={c}4*{where['da']}"),
        ("taxes", "Taxes on EBIT", lambda c, p: f"=-({c}5-{c}6)*{where['tax']}"),
        ("capex", "Capital expenditure", lambda c, p: f"=-{c}4*{where['capex']}"),
        ("nwc", "Change in working capital", lambda c, p: f"=-({c}4-{p or where['revenue']})*{where['nwc']}"),
        ("flows", "Free cash flow", lambda c, p: f"={c}5+{c}7+{c}8+{c}9"),
    )
    for row, (name, label, formula) in enumerate(lines, start=3):
        cells[row, 0] = Cell(label)
        for n in range(YEARS):
            letter = column_letters(n + 1)
            before = f"{column_letters(n)}4" if n else ""
            is_pasted = name == "ebitda" and n + 1 in (pasted or {})
            cells[row, n + 1] = Cell(values[name][n], "" if is_pasted else formula(letter, before), "int")
    rate, growth = where["wacc"], where["terminal_growth"]
    results = (
        ("present", "Present value of flows", f"=NPV({rate},B10:F10)"),
        ("terminal", "Terminal value", f"=F10*(1+{growth})/({rate}-{growth})"),
        ("enterprise", "Enterprise value", f"=B13+B14/(1+{rate})^{YEARS}"),
        ("equity", "Equity value", f"=B15-{where['net_debt']}"),
    )
    for row, (name, label, text) in enumerate(results, start=12):
        draft.fact(f"dcf:{name}", "", right[name], "currency", subject="model:dcf", currency=draft.setting.currency)
        fact = f"dcf:{name}" if values[name] == right[name] else ""
        cells[row, 0], cells[row, 1] = Cell(label, style="bold"), Cell(values[name], text, "total", fact)
    grid = _dcf_grid(given, rate, growth)
    return Book(
        (
            Sheet("Inputs", inputs, (40, 18)),
            Sheet("DCF", cells, (30, *(18.0,) * 5)),
            Sheet("Sensitivity", grid, (14, *(18.0,) * 5)),
        ),
        "DCF model",
    )


def _dcf_inputs(draft: Draft, given: dict[str, float]) -> tuple[dict[tuple[int, int], Cell], dict[str, str]]:
    """Cells of the inputs, and where each of them lies."""
    inputs: dict[tuple[int, int], Cell] = {(0, 0): Cell("Assumptions", style="title")}
    where = {}
    for row, (name, label, style) in enumerate(INPUTS, start=2):
        fact = f"dcf:{name}"
        draft.fact(
            fact,
            "",
            given[name],
            "currency" if style == "input_int" else "ratio",
            subject="model:dcf",
            predicate=name,
            currency=draft.setting.currency if style == "input_int" else "",
            rows=(f"assumption:dcf:{name}",),
        )
        inputs[row, 0], inputs[row, 1] = Cell(label), Cell(given[name], style=style, fact=fact)
        where[name] = f"Inputs!$B${row + 1}"
    return inputs, where


def _dcf_grid(given: dict[str, float], rate: str, growth: str) -> dict[tuple[int, int], Cell]:
    grid = {
        (0, 0): Cell("Enterprise value by WACC and terminal growth", style="title"),
        (1, 0): Cell(
            "To be completed: WACC down, growth across, each from the base case in steps of half a point.", style="note"
        ),
        (3, 0): Cell("WACC \\ g", style="head"),
    }
    for n, step in enumerate(GRID_RATES, start=1):
        grid[3, n] = Cell(given["terminal_growth"] + step, f"={growth}+{step}", "percent")
        grid[3 + n, 0] = Cell(given["wacc"] + step, f"={rate}+{step}", "percent")
    return grid


def debt_assumptions(draft: Draft) -> dict[str, float]:
    """Opening balances, cash before debt service by year, rates and the share of cash that is swept."""
    rng = draft.rng("debt model")
    base = 10_000 * rng.randrange(80, 900)
    given: dict[str, float] = {
        "opening_term": 1000 * round(base * rng.uniform(2.4, 3.6) / 1000),
        "opening_cash": 1000 * round(base * 0.4 / 1000),
        "minimum_cash": 1000 * round(base * 0.2 / 1000),
        "rate": rng.choice((0.055, 0.06, 0.065, 0.07)),
        "amortisation": 1000 * round(base * 0.18 / 1000),
        "sweep": rng.choice((0.5, 0.75, 1.0)),
    }
    for n in range(1, YEARS + 1):
        given[f"cash_flow_{n}"] = 1000 * round(base * rng.uniform(0.75, 1.2) / 1000)
    return given


def debt_values(given: dict[str, float], wrong_year: int = 0, pasted: Pasted | None = None) -> list[dict[str, float]]:
    """The schedule, year by year; interest is on the opening balance, so nothing is circular.

    In ``wrong_year`` the sweep is added to the loan instead of deducted. Of the lines, ``interest`` and ``available``
    may be ``pasted``.
    """
    rows, debt, cash = [], given["opening_term"], given["opening_cash"]
    typed = pasted or {}
    for n in range(1, YEARS + 1):
        interest = typed.get(("interest", n), debt * given["rate"])
        scheduled = min(given["amortisation"], debt)
        room = max(0.0, cash + given[f"cash_flow_{n}"] - interest - scheduled - given["minimum_cash"])
        room = typed.get(("available", n), room)
        swept = min(room * given["sweep"], debt - scheduled)
        rows.append(
            {
                "opening": debt,
                "cash_flow": given[f"cash_flow_{n}"],
                "interest": interest,
                "scheduled": scheduled,
                "available": room,
                "swept": swept,
                "closing": debt - scheduled + (swept if n == wrong_year else -swept),
                "cash": cash + given[f"cash_flow_{n}"] - interest - scheduled - swept,
            }
        )
        debt, cash = rows[-1]["closing"], rows[-1]["cash"]
    return rows


DEBT_INPUTS = (
    ("opening_term", "Term loan, opening"),
    ("opening_cash", "Cash, opening"),
    ("minimum_cash", "Minimum cash"),
    ("rate", "Interest rate"),
    ("amortisation", "Scheduled repayment a year"),
    ("sweep", "Share of available cash swept"),
)


def debt_book(draft: Draft, given: dict[str, float], wrong_year: int = 0, pasted: Pasted | None = None) -> Book:
    """Sheets Inputs and Schedule; in ``wrong_year`` the closing loan has a wrong sign, ``pasted`` cells are numbers."""
    inputs: dict[tuple[int, int], Cell] = {(0, 0): Cell("Inputs", style="title")}
    for row, (name, label) in enumerate(DEBT_INPUTS, start=2):
        fact = f"debt_model:{name}"
        draft.fact(
            fact,
            "",
            given[name],
            "ratio" if given[name] <= 1 else "currency",
            subject="model:debt",
            predicate=name,
            rows=(f"assumption:debt:{name}",),
        )
        inputs[row, 0] = Cell(label)
        inputs[row, 1] = Cell(given[name], style="input_percent" if given[name] <= 1 else "input_int", fact=fact)
    cells = {(0, 0): Cell(f"Debt schedule, {draft.setting.currency}", style="title")}
    values, right = debt_values(given, wrong_year, pasted), debt_values(given)
    lines: tuple[tuple[str, str, Line], ...] = (
        ("opening", "Term loan, opening", lambda c, p: f"={p}10" if p else "=Inputs!$B$3"),
        ("cash_flow", "Cash flow before debt service", lambda c, p: ""),
        ("interest", "Interest", lambda c, p: f"={c}4*Inputs!$B$6"),
        ("scheduled", "Scheduled repayment", lambda c, p: f"=MIN(Inputs!$B$7,{c}4)"),
        (
            "available",
            "Available for sweep",
            lambda c, p: f"=MAX(0,{p + '11' if p else 'Inputs!$B$4'}+{c}5-{c}6-{c}7-Inputs!$B$5)",
        ),
        ("swept", "Cash sweep", lambda c, p: f"=MIN({c}8*Inputs!$B$8,{c}4-{c}7)"),
        ("closing", "Term loan, closing", lambda c, p: f"={c}4-{c}7-{c}9"),
        ("cash", "Cash, closing", lambda c, p: f"={p + '11' if p else 'Inputs!$B$4'}+{c}5-{c}6-{c}7-{c}9"),
    )
    for n in range(YEARS):
        cells[2, n + 1] = Cell(f"Year {n + 1}", style="head")
    for row, (name, label, formula) in enumerate(lines, start=3):
        cells[row, 0] = Cell(label)
        for n in range(YEARS):
            letter, before = column_letters(n + 1), column_letters(n) if n else ""
            text = formula(letter, before)
            if name == "closing" and n + 1 == wrong_year:
                text = f"={letter}4-{letter}7+{letter}9"
            cells[row, n + 1] = Cell(values[n][name], text, "int" if text else "input_int")
            if (name, n + 1) in (pasted or {}):
                fact = f"debt_model:pasted:{name}:{n + 1}"
                draft.fact(fact, "", values[n][name], "currency", subject="model:debt", currency=draft.setting.currency)
                cells[row, n + 1] = Cell(values[n][name], "", "int", fact)
    for n in range(YEARS):
        fact = f"debt_model:closing:{n + 1}"
        draft.fact(fact, "", right[n]["closing"], "currency", subject="model:debt", currency=draft.setting.currency)
    return Book((Sheet("Inputs", inputs, (36, 18)), Sheet("Schedule", cells, (32, *(16.0,) * 5))), "Debt model")
