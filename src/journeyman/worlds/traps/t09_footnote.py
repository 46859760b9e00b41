"""T9: a footnote changes what the table says."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from journeyman.worlds.content import Block, Paragraph, Prose, Table, unmarked
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.reports import INCOME
from journeyman.worlds.events.statements import ITEMS
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.edits import one_of_kind, revise_blocks
from journeyman.worlds.traps.operator import Operator


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """The debt overview shows the commitment of the revolver, its note what is drawn; likewise a basket, and EBITDA of
    a half year."""
    return [_debt(draft, rng), _basket(draft, rng), _half_year(draft, rng)]


def _debt(draft: Draft, rng: Random) -> Planted:
    found = one_of_kind(draft, "debt_overview")
    assert found is not None
    fact = draft.plan.facts["debt:2510"]
    drawn = int(fact.value)
    commitment = 1000 * round(drawn * rng.uniform(1.4, 2.2) / 1000 + 1)
    bait = draft.fact(
        "debt:2510:commitment",
        draft.setting.number(commitment) + " (1)",
        commitment,
        "currency",
        currency=draft.setting.currency,
        as_of=fact.as_of,
    )
    note = draft.fact(
        "debt:2510:drawn",
        draft.setting.money(drawn),
        drawn,
        "currency",
        currency=draft.setting.currency,
        as_of=fact.as_of,
    )

    def change(blocks: list[Block]) -> list[Block]:
        made: list[Block] = []
        for block in blocks:
            if isinstance(block, Table):
                rows = [(name, bait if name == "Revolving facility" else text) for name, text in block.rows]
                made += [
                    replace(block, rows=tuple(rows)),
                    Paragraph(
                        f"(1) Total commitment. Drawn at the reporting date: {note}. Only drawn amounts are debt.",
                        "small",
                    ),
                ]
            else:
                made.append(block)
        return made

    revise_blocks(draft, found.path, change)
    facts = draft.plan.facts
    debt = sum(
        int(facts.get(f"debt:{code}:restated", facts[f"debt:{code}"]).value) for code in ("2500", "2510", "2520")
    )
    cash = int(draft.plan.facts["debt:1000"].value)
    return Planted(
        "T9",
        "debt:2510",
        ("debt:2510:drawn",),
        {"revolver": commitment, "net_debt": debt - drawn + commitment - cash},
        {"revolver": drawn, "net_debt": debt - cash},
        ("debt:2510:commitment",),
    )


def _basket(draft: Draft, rng: Random) -> Planted:
    """The table of the term sheet states another basket than the note that was agreed at signing."""
    found = one_of_kind(draft, "term_sheet")
    assert found is not None
    right = int(draft.notes["terms"]["agreed"]["basket"])
    wrong = right + 50_000 * rng.randrange(1, 4)
    bait = draft.fact(
        "term_sheet:basket:table",
        draft.setting.money(wrong) + " (1)",
        wrong,
        "currency",
        currency=draft.setting.currency,
    )
    stated = draft.fact(
        "term_sheet:basket",
        draft.setting.money(right),
        right,
        "currency",
        subject="deal:D1",
        predicate="basket",
        currency=draft.setting.currency,
        as_of=draft.notes["terms"]["date"],
        known=draft.notes["terms"]["date"],
        rows=("assumption:term sheet:basket",),
    )

    def change(blocks: list[Block]) -> list[Block]:
        made: list[Block] = []
        for block in blocks:
            if isinstance(block, Table):
                rows = [(name, bait if name == "Basket" else text) for name, text in block.rows]
                made += [
                    replace(block, rows=tuple(rows)),
                    Paragraph(f"(1) Agreed at signing: {stated} instead.", "small"),
                ]
            else:
                made.append(block)
        return made

    revise_blocks(draft, found.path, change)
    return Planted(
        "T9",
        "term_sheet:basket",
        ("term_sheet:basket",),
        {"basket": wrong},
        {"basket": right},
        ("term_sheet:basket:table",),
    )


def _half_year(draft: Draft, rng: Random) -> Planted:
    """The last interim report misprints EBITDA of the half year before; the note below its table says so."""
    year, label = draft.setting.years[-1], ITEMS["ebitda"]
    (found,) = draft.plan.of_kind("interim_report", f"H1 FY{year + 1}")
    assert isinstance(found.content, Prose)
    table = next(block for block in found.content.blocks if isinstance(block, Table) and block.caption == INCOME)
    column = table.rows[0].index(f"H1 FY{year}")
    stated = next(row[column] for row in table.rows if row[0] == label)
    ((fact_id, _),) = unmarked(stated)[1]
    fact = draft.plan.facts[fact_id]
    right = int(fact.value)
    wrong = 1000 * round(right * rng.choice((0.92, 0.95, 1.04, 1.07)) / 1000)
    bait = draft.fact(
        f"{fact_id}:printed", draft.setting.number(wrong / 1000) + " (1)", wrong, "currency", currency=fact.currency,
        as_of=fact.as_of,
    )  # fmt: skip

    def change(blocks: list[Block]) -> list[Block]:
        made: list[Block] = []
        for block in blocks:
            if isinstance(block, Table) and block.caption == INCOME:
                rows = [(*row[:column], bait, *row[column + 1 :]) if row[0] == label else row for row in block.rows]
                note = f"(1) Misprint: {label} of H1 FY{year} is {stated}; the other lines are right."
                made += [replace(block, rows=tuple(rows)), Paragraph(note, "small")]
            else:
                made.append(block)
        return made

    revise_blocks(draft, found.path, change)
    return Planted("T9", f"income:group:H1 FY{year}:ebitda", (fact_id,), {"ebitda": wrong}, {"ebitda": right},
                   (f"{fact_id}:printed",))  # fmt: skip


T9 = Operator("T9", "footnote overrides the table", "plan", apply)
