"""Annual and interim reports: what a company publishes, in thousands, two columns, with notes."""

from __future__ import annotations

from journeyman.worlds.content import Block, Heading, Paragraph, Prose, Table
from journeyman.worlds.data import pack
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.statements import ITEMS, income_fact, income_of, scale_words
from journeyman.worlds.simulate.calendars import month_end
from journeyman.worlds.simulate.figures import figures_at, labels
from journeyman.worlds.truth.store import Row

DIVISOR = 1000
INCOME = "Consolidated income statement"
OF_CALENDAR_YEARS = ("revenue", "gross_profit", "ebitda", "ebit", "net_income")
"""Figures that interim reports give for a calendar year, of ``ITEMS``."""


def year_reported(draft: Draft, event: Row) -> None:
    """The annual report of a fiscal year, with the year before as it is known now."""
    setting, year, known = draft.setting, event["payload"]["year"], event["date"]
    years = [y for y in (year, year - 1) if y in setting.years]
    title = f"Annual report FY{year}"
    blocks: list[Block] = [Heading(f"{setting.company}: {title}", 0)]
    blocks += _opening(draft, year, known)
    blocks.append(_income_table(draft, [(f"FY{y}", labels(draft, setting.year_months(y))) for y in years], known))
    blocks += _notes(draft, year, years, known)
    _publish(draft, event, f"FY{year}", title, "annual_report", blocks)


def half_reported(draft: Draft, event: Row) -> None:
    """An interim report, with the same half of the year before."""
    setting, year, known = draft.setting, event["payload"]["year"], event["date"]
    periods = [
        (f"H1 FY{y}", labels(draft, setting.year_months(y)[:6]))
        for y in (year, year - 1)
        if setting.year_months(y)[0] >= setting.first_month
    ]
    title = f"Interim report H1 FY{year}"
    blocks: list[Block] = [Heading(f"{setting.company}: {title}", 0)]
    blocks += _opening(draft, year, known)[:3]
    blocks.append(_income_table(draft, periods, known))
    blocks += _calendar_year(draft, year, known)
    blocks.append(Paragraph("The figures of this interim report have not been audited."))
    _publish(draft, event, f"H1 FY{year}", title, "interim_report", blocks)


def _publish(draft: Draft, event: Row, period: str, title: str, kind: str, blocks: list[Block]) -> None:
    setting = draft.setting
    setter = "typst" if kind == "annual_report" else "plain"
    prose = Prose(tuple(blocks), title, header=f"{setting.company}   {title}", setter=setter)
    path = f"finance/reports/{setting.file_name(title)}.pdf"
    draft.document(
        path,
        kind,
        prose,
        event["id"],
        day=event["date"],
        author=draft.roles["cfo"]["name"],
        as_of=event["payload"]["months"][-1],
        subject=period,
    )


def _calendar_year(draft: Draft, year: int, known: str) -> list[Block]:
    """When the half year ended, and a calendar year beside it: only where trap T5 wants them."""
    shown: int | None = draft.notes.get("calendar years", {}).get(year)
    if shown is None:
        return []
    setting, last = draft.setting, month_end(draft.setting.year_months(year)[5])
    end = draft.fact(
        f"half:FY{year}:end", setting.day(last), last.isoformat(), "date", as_of=last.isoformat(), known=known
    )
    income = income_of(draft, labels(draft, range(12 * shown, 12 * shown + 12)), known)
    rows = [(f"In {scale_words(setting.currency, DIVISOR)}", str(shown))]
    for item in OF_CALENDAR_YEARS:
        value = int(getattr(income, item))
        text = setting.number(value / DIVISOR)
        fact = draft.fact(f"calendar:{shown}:{item}", text, value, "currency", currency=setting.currency,
                          as_of=f"{shown}-12-31", known=known)  # fmt: skip
        rows.append((ITEMS[item], fact))
    return [
        Paragraph(f"This report covers the six months that ended on {end}, the first half of FY{year}."),
        Heading("Twelve months for comparison", 2),
        Paragraph("The calendar year, for comparison with companies whose fiscal year ends in December."),
        Table(tuple(rows)),
    ]


def _income_table(draft: Draft, periods: list[tuple[str, list[str]]], known: str) -> Table:
    head = (f"In {scale_words(draft.setting.currency, DIVISOR)}", *(name for name, _ in periods))
    rows = [
        (label, *(income_fact(draft, name, months, item, known, divisor=DIVISOR) for name, months in periods))
        for item, label in ITEMS.items()
    ]
    return Table((head, *rows), caption=INCOME)


def _opening(draft: Draft, year: int, known: str) -> list[Block]:
    setting, rng = draft.setting, draft.rng(f"report {year} {known}")
    phrases = pack("reports")
    words = {
        "company": setting.short,
        "market": setting.trade["market"],
        "line": rng.choice(setting.trade["lines"]).lower(),
        "segment": rng.choice(setting.trade["segments"]).lower(),
        "supply": rng.choice(setting.trade["supplies"]),
        "kpi": rng.choice(setting.trade["kpis"]),
        "city": setting.city,
        "asset": setting.trade["asset"],
        "end": setting.day(month_end(setting.year_months(year)[-1])),
        "year": f"FY{year}",
    }
    blocks: list[Block] = []
    for heading in ("business", "markets", "people", "risks", "outlook"):
        blocks.append(Heading(phrases[heading]["title"]))
        chosen = rng.sample(phrases[heading]["texts"], min(5, len(phrases[heading]["texts"])))
        blocks += [Paragraph(text.format(**words)) for text in chosen]
    return blocks


def _notes(draft: Draft, year: int, years: list[int], known: str) -> list[Block]:
    setting, figures = draft.setting, figures_at(draft, known)
    periods = {y: labels(draft, setting.year_months(y)) for y in years}
    lines = {y: figures.revenue_lines(months) for y, months in periods.items()}
    head = (f"In {scale_words(setting.currency, DIVISOR)}", *(f"FY{y}" for y in years))
    rows = []
    for number, name in enumerate(setting.trade["lines"], start=1):
        cells = []
        for y in years:
            value = lines[y].get(f"40{number}0", 0)
            fact_id = f"revenue_line:{number}:FY{y}"
            first: dict[str, int] = draft.notes.setdefault("first reported", {})
            on = ""
            if first.setdefault(fact_id, value) != value:
                fact_id += ":restated"
                on = draft.notes.setdefault("restated on", {}).setdefault(fact_id, known)
            shown = setting.number(value / DIVISOR)
            cells.append(
                draft.fact(fact_id, shown, value, "currency", currency=setting.currency, as_of=f"FY{y}", known=on)
            )
        rows.append((name, *cells))
    end = setting.label(setting.year_months(year)[-1])
    balance = figures.group_balance(end)
    names = draft.notes["accounts"]
    held = [
        (names[code], setting.number(amount / DIVISOR))
        for code, amount in sorted(balance.items())
        if code < "3000" and code not in ("2520",)
    ]
    return [
        Heading("Notes to the accounts"),
        Heading("Basis of preparation", 2),
        *(
            Paragraph(text.format(currency=setting.currency, end=setting.day(month_end(setting.year_months(year)[-1]))))
            for text in pack("reports")["policies"]["texts"]
        ),
        Heading("Revenue by line of business", 2),
        Table((head, *rows), caption="Revenue by line"),
        Heading("Balances at the end of the year", 2),
        Table((("Account", scale_words(setting.currency, DIVISOR)), *held), caption=f"Selected balances at {end}"),
    ]
