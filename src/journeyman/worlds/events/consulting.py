"""The material of the study: spend, price waterfall, survey, key figures, market estimates."""

from __future__ import annotations

from journeyman.worlds.content import (
    Block,
    Book,
    Cell,
    Chart,
    Deck,
    Delimited,
    Heading,
    Paragraph,
    Prose,
    Sheet,
    Slide,
    SlideChart,
    Table,
)
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.key_figures import figure_of, figures_book
from journeyman.worlds.events.tables import sheet_of
from journeyman.worlds.simulate.market import STEPS
from journeyman.worlds.truth.store import Row


def spend_extracted(draft: Draft, event: Row) -> None:
    """Spend by payment, and the list of suppliers with the groups they belong to."""
    rows = []
    for row in draft.truth.rows("SELECT * FROM spend WHERE valid_to IS NULL ORDER BY date, id"):
        fact = f"spend:{row['id']}:amount"
        draft.fact(
            fact,
            "",
            row["amount"],
            "currency",
            subject=f"supplier:{row['supplier_id']}",
            predicate="amount",
            currency=draft.setting.currency,
            as_of=row["date"],
            known=row["date"],
            rows=(f"spend:{row['id']}",),
        )
        rows.append(
            (row["id"], row["date"], row["as_written"], row["category"], Cell(row["amount"], style="int", fact=fact))
        )
    sheet = sheet_of(
        "Spend",
        ("Payment", "Date", "Supplier as booked", "Category", f"Amount {draft.setting.currency}"),
        rows,
        widths=(12, 12, 36, 24, 16),
    )
    path = f"procurement/{draft.setting.file_name('supplier spend')}.xlsx"
    draft.document(
        path,
        "spend",
        Book((sheet,), "Supplier spend"),
        event["id"],
        day=event["date"],
        author=draft.roles["procurement"]["name"],
    )
    suppliers = [
        (
            row["id"],
            draft.fact(f"supplier:{row['id']}:group", row["group_name"], row["group_name"]),
            row["name"],
            row["category"],
        )
        for row in draft.notes["suppliers"]
    ]
    path = f"procurement/{draft.setting.file_name('supplier master')}.csv"
    draft.document(
        path,
        "supplier_master",
        Delimited((("supplier_id", "group", "name", "category"), *suppliers), ";"),
        event["id"],
        day=event["date"],
        author=draft.roles["procurement"]["name"],
    )


def price_study(draft: Draft, event: Row) -> None:
    """Steps from list to pocket price by segment; a chart of the first segment."""
    segments = draft.setting.trade["segments"]
    prices = {
        (r["segment"], r["step"]): r["amount"] for r in draft.truth.rows("SELECT * FROM price WHERE valid_to IS NULL")
    }
    cells = {
        (0, 0): Cell(f"Price per {draft.setting.trade['unit']}, {draft.setting.currency}", style="title"),
        (2, 0): Cell("Step", style="head"),
    }
    for column, segment in enumerate(segments, start=1):
        cells[2, column] = Cell(segment, style="head")
        for row, (step, label) in enumerate(STEPS, start=3):
            cells[row, 0] = Cell(label)
            amount = prices[segment, step]
            fact = f"price:{segment}:{step}"
            draft.fact(
                fact,
                "",
                amount,
                "currency",
                subject=f"segment:{segment}",
                predicate=step,
                currency=draft.setting.currency,
                rows=(f"price:{segment}:{step}",),
            )
            letter = "ABCDE"[column]
            formula = f"={letter}4-SUM({letter}5:{letter}9)" if step == "pocket_price" else ""
            cells[row, column] = Cell(amount, formula, "two", fact)
    sheet_name = "Waterfall"
    chart = Chart(
        "column",
        f"Price steps, {segments[0]}",
        f"{sheet_name}!$A$4:$A$10",
        ((segments[0], f"{sheet_name}!$B$4:$B$10"),),
        "G3",
    )
    sheet = Sheet(sheet_name, cells, (24, 18, 18, 18, 18), charts=(chart,))
    path = f"commercial/{draft.setting.file_name('price waterfall')}.xlsx"
    draft.document(
        path,
        "price_waterfall",
        Book((sheet,), "Price waterfall"),
        event["id"],
        day=event["date"],
        author=draft.roles["consultant"]["name"],
    )


def survey_closed(draft: Draft, event: Row) -> None:
    """Responses as CSV, and a note on populations and on what to do about a stratum without responses."""
    rows = []
    for row in draft.truth.rows("SELECT * FROM survey_response WHERE valid_to IS NULL ORDER BY id"):
        score = draft.fact(
            f"survey:{row['id']}:score",
            str(row["score"]),
            row["score"],
            "count",
            subject=f"segment:{row['segment']}",
            predicate="score",
            rows=(f"survey_response:{row['id']}",),
        )
        rows.append((row["id"], row["customer_id"], row["segment"], row["date"], score))
    path = f"commercial/{draft.setting.file_name('survey responses')}.csv"
    draft.document(
        path,
        "survey",
        Delimited((("response", "customer", "segment", "date", "score"), *rows)),
        event["id"],
        day=event["date"],
        author=draft.roles["marketing"]["name"],
    )
    strata = draft.truth.rows("SELECT * FROM stratum ORDER BY id")
    table = [("Stratum", "Customers")]
    for row in strata:
        count = draft.fact(
            f"stratum:{row['id']}:population",
            draft.setting.number(row["population"]),
            row["population"],
            "count",
            rows=(f"stratum:{row['id']}",),
        )
        table.append((row["segment"], count))
    blocks: list[Block] = [
        Heading("Customer survey: method", 0),
        Paragraph(
            "Customers answered one question on a scale from 0 to 10. The net promoter score is the share of scores 9"
            " and 10 less the share of scores 0 to 6, in points."
        ),
        Paragraph(
            "The score of the customer base is the mean of the scores of the strata, weighted with their number of"
            " customers. Scores of strata are not estimated from other strata: a stratum without responses is left"
            " out, the weights of the others are scaled up to one, and its share of customers is stated."
        ),
        Table(tuple(table), caption="Customers by stratum"),
    ]
    path = f"commercial/{draft.setting.file_name('survey method')}.docx"
    draft.document(
        path,
        "survey_method",
        Prose(tuple(blocks), "Survey method", header=draft.setting.company),
        event["id"],
        day=event["date"],
        author=draft.roles["marketing"]["name"],
    )


def key_figures_reported(draft: Draft, event: Row) -> None:
    """The workbook of the last quarter, and the deck of the quarter before, which is to be refreshed from it."""
    periods, period = draft.notes["periods"], event["payload"]["period"]
    position = periods.index(period)
    if position == len(periods) - 1:
        figures_book(draft, event, periods[-6:])
    if position == len(periods) - 2:
        _figures_deck(draft, event, periods[position - 3 : position + 1])


def _figures_deck(draft: Draft, event: Row, periods: list[str]) -> None:
    slides = [Slide(f"Key figures {periods[-1]}", (f"{draft.setting.company}, board pack", "Prepared by planning"))]
    for name in draft.setting.trade["kpis"]:
        values = [figure_of(draft, name, period) for period in periods]
        latest = draft.fact(
            f"deck:{name}:{periods[-1]}",
            draft.setting.number(values[-1], 1),
            values[-1],
            "index",
            as_of=event["date"],
            known=event["date"],
        )
        table = Table((("Quarter", *periods), (name, *(draft.setting.number(v, 1) for v in values))))
        slides.append(
            Slide(
                f"{name[:1].upper()}{name[1:]}",
                (f"{periods[-1]}: {latest}", "Comment: see the notes"),
                table,
                SlideChart("line", name, tuple(periods), ((name, tuple(values)),)),
                f"Source: KPI workbook {periods[-1]}",
                "Read the trend, not the single quarter.",
            )
        )
    slides.append(Slide("Definitions", ("Definitions have not changed.", "Figures are not audited.")))
    path = f"reporting/{draft.setting.file_name('kpi board pack', periods[-1])}.pptx"
    draft.document(
        path,
        "kpi_deck",
        Deck(tuple(slides), f"Key figures {periods[-1]}"),
        event["id"],
        day=event["date"],
        author=draft.roles["fpa"]["name"],
        subject=periods[-1],
    )


def market_studied(draft: Draft, event: Row) -> None:
    """One study per source, and the rule which of them counts."""
    estimates = draft.notes["estimates"]
    for rank in (1, 2, 3):
        rows = [row for row in estimates if row["rank"] == rank]
        _study(draft, event, rows)
    names = [next(row["source"] for row in estimates if row["rank"] == rank) for rank in (1, 2, 3)]
    rule = draft.fact("market:precedence", f"first {names[0]}, then {names[1]}, then {names[2]}", names[0], "text")
    consultant = draft.roles["consultant"]
    draft.mail(
        event["id"],
        draft.setting.instant(event["date"], draft.rng("market mail")),
        consultant,
        [draft.roles["cco"], draft.roles["fpa"]],
        "Market size: which source we use",
        f"Hello,\n\nthe studies of the market for {draft.setting.trade['market']} do not agree. For everything that we"
        f" show the order of precedence is: {rule}. A lower one is used only for years that a higher one does not"
        f" cover, and we do not average.\n\n{consultant['name']}\n{consultant['entity_id']}\n",
    )


def _study(draft: Draft, event: Row, rows: list[Row]) -> None:
    setting, source = draft.setting, rows[0]["source"]
    words = {1000: "thousand", 1_000_000: "million"}
    table = [("Year", f"Market size, {rows[0]['currency']} {words[rows[0]['scale']]}")]
    for row in rows:
        table.append(
            (
                str(row["year"]),
                draft.fact(
                    f"market:{row['rank']}:{row['year']}",
                    setting.number(row["amount"] / row["scale"]),
                    row["amount"],
                    "currency",
                    currency=row["currency"],
                    scale=row["scale"],
                    rows=(f"market_estimate:{row['id']}",),
                ),
            )
        )
    rng = draft.rng(f"study {source}")
    facts = (
        "The market is defined by use, not by technology.",
        "Own production by customers is not counted.",
        "Figures are revenues of suppliers with customers in the region, at current prices.",
        "The panel covers suppliers with more than ten employees; smaller ones are estimated.",
        "Growth comes from outsourcing rather than from end demand.",
        "Prices rose less than costs in the period.",
    )
    blocks: list[Block] = [
        Heading(f"The market for {setting.trade['market']}", 0),
        Paragraph(f"{source}, {setting.day(event['date'])}"),
        Heading("Summary"),
        *(Paragraph(text) for text in rng.sample(facts, 4)),
        Table(tuple(table), caption="Market size"),
        Heading("Segments"),
        *(
            Paragraph(
                f"{segment}: demand {rng.choice(('rose', 'was flat', 'fell slightly'))}; buyers"
                f" {rng.choice(('prefer long contracts', 'buy on the spot', 'qualify two suppliers'))}."
            )
            for segment in setting.trade["segments"]
        ),
        Paragraph("Estimates are made with care, but without liability.", "small"),
    ]
    path = f"market/{setting.file_name('market study', source)}.pdf"
    draft.document(
        path,
        "market_study",
        Prose(tuple(blocks), "Market study", footer=source, setter="rows"),
        event["id"],
        day=event["date"],
        author=source,
        subject=f"source:{rows[0]['rank']}",
    )
