"""A framework award: what sites need, what suppliers quote for it, and the rules of purchasing."""

from __future__ import annotations

from random import Random
from typing import Any

from journeyman.worlds.content import (
    Block,
    Book,
    Cell,
    Content,
    Delimited,
    Heading,
    Paragraph,
    Prose,
    Sheet,
    Text,
    unmarked,
)
from journeyman.worlds.draft import Draft
from journeyman.worlds.truth.store import Row

FOLDER = "procurement/award"
NUM_SUPPLIERS = 8
FOREIGN_STEP = 20
"""Foreign amounts are multiples of this, so that every budget rate gives whole units."""

RATES = (0.8, 1.25, 1.5, 0.75)
SHAPES = ("docx", "txt", "xlsx", "txt", "docx", "txt", "xlsx", "txt")

Quote = dict[str, Any]
"""``id``, ``name``, ``currency``, ``price``, ``lots``, ``freight``: site -> amount, None where nothing is delivered."""


def award_prepared(draft: Draft, event: Row) -> None:
    """Demand of the sites, eight quotes (one of them in two revisions), and the rules."""
    rng, setting = draft.rng("award"), draft.setting
    sites = sorted(setting.locale["city"])
    demand = {site: rng.randrange(9, 33) for site in sites}
    share, rate = rng.choice((25, 30, 35)), rng.choice(RATES)
    quotes = _quotes(draft, rng, sites, sum(demand.values()))
    supply = rng.choice(setting.trade["supplies"])
    draft.notes["award"] = {"quotes": quotes, "supply": supply}
    cut = quotes[rng.randrange(len(quotes))]
    draft.notes["award"]["cut"] = (cut, max(4, cut["lots"] // 2 - rng.randrange(3)))
    for name, value in (("demand", demand), ("share", share), ("rate", rate), ("quotes", quotes)):
        row = {"id": f"award:{name}", "model": "award", "name": name, "value": {"value": value}}
        draft.truth.add("assumption", row, event=event["id"], at=event["date"])
    rows = [(site, draft.fact(f"award:demand:{site}", str(count), count, "count")) for site, count in demand.items()]
    _file(draft, event, "demand.csv", "award_demand", Delimited((("site", "lots"), *rows)))
    _file(draft, event, "award_rules.docx", "award_rules", _rules(draft, supply, share, rate))
    old = quotes[rng.randrange(len(quotes))]
    for number, quote in enumerate(quotes):
        lines = _lines(draft, quote, f"award:{quote['id']}")
        revision = " rev 2" if quote is old else ""
        name = setting.file_name("quote", quote["id"]) + ("-rev2" if revision else "")
        _file(draft, event, f"{name}.{SHAPES[number]}", "quote", _quote(quote, lines, supply, revision, number))
    cheaper = {**old, "price": old["price"] - FOREIGN_STEP * rng.randrange(2, 5)}
    text = _quote(old, _lines(draft, cheaper, ""), supply, " rev 1", 1)
    _file(draft, event, f"{setting.file_name('quote', old['id'])}-rev1.txt", "quote_old", text)
    row = {"id": "award:old", "model": "award", "name": "old", "value": {"value": cheaper}}
    draft.truth.add("assumption", row, event=event["id"], at=event["date"])


def quote_corrected(draft: Draft, event: Row) -> None:
    """A supplier can deliver less than it quoted; purchasing says so in a chat, and nowhere else."""
    quote, lots = draft.notes["award"]["cut"]
    row = {"id": "award:cut", "model": "award", "name": "cut", "value": {"supplier": quote["id"], "lots": lots}}
    draft.truth.add("assumption", row, event=event["id"], at=event["date"])
    shown = draft.fact(f"award:{quote['id']}:lots:corrected", str(lots), lots, "count")
    when = draft.setting.instant(event["date"], draft.rng("award call"))
    text = (
        f"{quote['name']} ({quote['id']}) called about the {draft.notes['award']['supply']} award: they can deliver"
        f" {shown} lots only, not {quote['lots']} as quoted. They will not send a new quote, please use {lots}."
    )
    draft.say(event["id"], when, "operations", draft.roles["procurement"], text)


def _quotes(draft: Draft, rng: Random, sites: list[str], demand: int) -> list[Quote]:
    firms: dict[str, Row] = {}
    for row in draft.notes["suppliers"]:
        firms.setdefault(row["group_name"], row)
    chosen = sorted(rng.sample(sorted(firms), NUM_SUPPLIERS))
    foreign = draft.setting.foreign[0]
    abroad = set(rng.sample(range(NUM_SUPPLIERS), 3))
    made = []
    for number, group in enumerate(chosen):
        step = FOREIGN_STEP if number in abroad else 1
        far = set(rng.sample(sites, rng.randrange(1, 3)))
        made.append({
            "id": firms[group]["id"], "name": firms[group]["name"],
            "currency": foreign if number in abroad else draft.setting.currency,
            "price": step * (rng.randrange(300, 600) // step), "lots": max(8, round(demand * rng.uniform(0.16, 0.34))),
            "freight": {site: None if site in far else step * max(1, rng.randrange(8, 240) // step) for site in sites},
        })  # fmt: skip
    return made


def _lines(draft: Draft, quote: Quote, fact: str) -> list[tuple[str, str, int | None]]:
    """Label, marked text and number of every line of a quote."""

    def state(name: str, value: int, surface: str) -> str:
        return draft.fact(f"{fact}:{name}", surface, value, "count") if fact else surface

    code = quote["currency"]
    lines: list[tuple[str, str, int | None]] = [
        (f"Price per lot in {code}", state("price", quote["price"], str(quote["price"])), quote["price"]),
        ("Lots that we can deliver", state("lots", quote["lots"], str(quote["lots"])), quote["lots"]),
    ]
    for site, freight in quote["freight"].items():
        label = f"Freight per lot to {site} in {code}"
        shown = "no delivery" if freight is None else state(f"freight:{site}", freight, str(freight))
        lines.append((label, shown, freight))
    return lines


def _quote(quote: Quote, lines: list[tuple[str, str, int | None]], supply: str, revision: str, number: int) -> Content:
    title = f"Quote{revision} of {quote['name']} ({quote['id']}): {supply}"
    if SHAPES[number] == "xlsx":
        cells = {(0, 0): Cell(title, style="title")}
        for row, (label, shown, value) in enumerate(lines, start=2):
            fact = next((name for name, _ in unmarked(shown)[1]), "")
            cells[row, 0] = Cell(label)
            cells[row, 1] = Cell("no delivery" if value is None else value, fact=fact)
        return Book((Sheet("Quote", cells, (44.0, 14.0)),), title)
    texts = [f"{label}: {shown}" for label, shown, _ in lines]
    if SHAPES[number] == "txt":
        return Text("\n".join([title, "", *texts, ""]))
    return Prose((Heading(title, 0), *(Paragraph(text) for text in texts)), title)


def _rules(draft: Draft, supply: str, share: int, rate: float) -> Prose:
    setting = draft.setting
    shown = draft.fact("award:share", f"{share}%", share, "percent")
    rated = draft.fact("award:rate", f"{rate:g}", rate, "ratio")
    blocks: list[Block] = [
        Heading(f"Framework award: {supply}", 0),
        Paragraph("A lot is bought whole, from one supplier for one site. Every site gets exactly the lots it needs."),
        Paragraph("Where a supplier sent several revisions of its quote, the highest revision counts. What a supplier"
                  " tells purchasing later counts before its quote."),
        Paragraph(f"No supplier is awarded more than {shown} of all lots of the award, rounded down to whole lots, and"
                  " no more than it can deliver."),
        Paragraph("What a lot costs is its price and its freight to the site. Nothing is bought from a supplier for a"
                  " site to which it does not deliver."),
        Paragraph(f"Quotes in {setting.foreign[0]} are compared at the budget rate: 1 {setting.foreign[0]} is {rated}"
                  f" {setting.currency}."),
    ]  # fmt: skip
    return Prose(tuple(blocks), "Award rules", header=setting.company)


def _file(draft: Draft, event: Row, name: str, kind: str, content: Content) -> None:
    author = draft.roles["procurement"]["name"]
    draft.document(f"{FOLDER}/{name}", kind, content, event["id"], day=event["date"], author=author)
