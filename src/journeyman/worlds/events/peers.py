"""Listed peers: a workbook of their figures in their own currencies, and a note on how to read it; exchange rates."""

from __future__ import annotations

from journeyman.worlds.content import Book, Cell, Heading, Paragraph, Prose, Table
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.tables import sheet_of
from journeyman.worlds.simulate.setting import MONTHS
from journeyman.worlds.truth.store import Row

MILLION = 1_000_000
COLUMNS = ("revenue_prior", "revenue", "ebitda_prior", "ebitda", "net_debt", "market_cap")


def comparables_drawn(draft: Draft, event: Row) -> None:
    """Workbook, methodology, and a workbook of exchange rates."""
    rows = []
    scales = _scales(draft)
    for peer in draft.notes["comps"]:
        figures = []
        for column in COLUMNS:
            scale = scales.get(column, 1)
            fact = f"peer:{peer['id']}:{column}"
            draft.fact(
                fact,
                "",
                peer[column],
                "currency",
                subject=f"peer:{peer['name']}",
                predicate=column,
                currency=peer["currency"],
                scale=scale,
                rows=(f"comp_company:{peer['id']}",),
                as_of=event["date"],
                known=event["date"],
            )
            is_whole = peer[column] % scale == 0
            shown = peer[column] // scale if is_whole else peer[column] / scale
            figures.append(Cell(shown, style="int" if scale < MILLION else "two", fact=fact))
        rows.append((peer["name"], peer["currency"], MONTHS[peer["fiscal_year_end"] - 1], *figures))
    year = draft.setting.today.year - 1
    head = (
        "Company",
        "Currency",
        "Fiscal year end",
        f"Revenue FY{year - 1}",
        f"Revenue FY{year}",
        f"EBITDA FY{year - 1}",
        f"EBITDA FY{year}",
        "Net debt",
        "Market capitalisation",
    )
    counted = "whole units"
    if scales:
        counted = draft.fact("comps:scale", "thousands", 1000, "ratio")
        million = draft.fact("comps:scale:market_cap", "million", MILLION, "ratio")
        head = (*head[:-1], f"{head[-1]}, {million}")
    sheet = sheet_of(
        "Peers",
        head,
        rows,
        title=f"Peer group, {counted} of each currency",
        widths=(26, 10, 16, *(16,) * 6),
        note="Fiscal year n ends in calendar year n. Net debt and market capitalisation at the last close.",
    )
    path = f"deals/{draft.setting.file_name('peer group data')}.xlsx"
    draft.document(
        path,
        "comps",
        Book((sheet,), "Peer group"),
        event["id"],
        day=event["date"],
        author=draft.roles["associate"]["name"],
        subject="deal:D1",
    )
    _methodology(draft, event, year)
    _rates(draft, event)


def _scales(draft: Draft) -> dict[str, int]:
    """Figure -> what the workbook counts it in; empty where all are whole units. Trap T4 mixes them."""
    if not draft.notes.get("peers in thousands"):
        return {}
    return {column: MILLION if column == "market_cap" else 1000 for column in COLUMNS}


def _methodology(draft: Draft, event: Row, year: int) -> None:
    setting = draft.setting
    blocks = (
        Heading("Peer group: methodology", 0),
        Paragraph(f"This note goes with the workbook of the peer group for {draft.notes['deal']['name']}."),
        Heading("1. Calendarisation"),
        Paragraph(
            f"Figures are brought to the calendar year {year - 1}: with a fiscal year ending in month m, the calendar"
            f" year is m/12 of the fiscal year {year - 1} and (12 - m)/12 of {year}. For companies"
            " whose fiscal year ends in December it is the fiscal year itself."
        ),
        Heading("2. Currency"),
        Paragraph(
            f"Everything is shown in {setting.currency}. Revenue and EBITDA are converted at the average rate of the"
            " last twelve closed months, which is the simple mean of the monthly averages; net debt and market"
            " capitalisation at the closing rate of the last closed month. Using one rate for both is the most"
            " frequent error in such tables."
        ),
        Heading("3. Multiples"),
        Paragraph(
            "Enterprise value is market capitalisation plus net debt. Multiples are enterprise value over calendarised"
            " revenue and over calendarised EBITDA. The group is summarised by its median, not by its mean."
        ),
        Table(
            (
                ("Step", "Rate"),
                ("Revenue, EBITDA", "mean of monthly averages"),
                ("Net debt, market capitalisation", "close"),
            ),
            widths=(3, 3),
        ),
    )
    path = f"deals/{setting.file_name('peer group methodology')}.pdf"
    draft.document(
        path,
        "comps_method",
        Prose(blocks, "Peer group: methodology", footer="Confidential"),
        event["id"],
        day=event["date"],
        author=draft.roles["associate"]["name"],
        subject="deal:D1",
    )


def _rates(draft: Draft, event: Row) -> None:
    rows = []
    for rate in draft.truth.rows(
        "SELECT * FROM fx_rate WHERE kind IN ('avg', 'close') AND known_from <= :known ORDER BY pair, date, kind",
        known=event["date"],
    ):
        fact = f"fx:{rate['pair']}:{rate['date'][:7]}:{rate['kind']}"
        draft.fact(
            fact,
            "",
            rate["rate"],
            "ratio",
            subject=f"fx:{rate['pair']}",
            predicate=rate["kind"],
            as_of=rate["date"],
            known=rate["date"],
            rows=(f"fx_rate:{rate['id']}",),
        )
        kind = {"avg": "monthly average", "close": "closing"}[rate["kind"]]
        rows.append((rate["pair"], rate["date"], kind, Cell(rate["rate"], style="rate", fact=fact)))
    group = draft.setting.currency
    sheet = sheet_of(
        "Rates",
        ("Pair", "Month end", "Kind", "Rate"),
        rows,
        title=f"Exchange rates against {group}",
        note="Pair A/B: units of B for one unit of A.",
        widths=(12, 14, 18, 12),
    )
    path = f"finance/{draft.setting.file_name('exchange rates')}.xlsx"
    draft.document(
        path,
        "fx_rates",
        Book((sheet,), "Exchange rates"),
        event["id"],
        day=event["date"],
        author=draft.roles["treasurer"]["name"],
    )
