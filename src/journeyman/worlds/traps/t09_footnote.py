"""T9: a footnote changes what the table says."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from journeyman.worlds.content import Block, Paragraph, Table
from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.edits import one_of_kind, revise_blocks
from journeyman.worlds.traps.operator import Operator


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """The debt overview shows the commitment of the revolver, its note what is drawn; likewise a basket."""
    return [_debt(draft, rng), _basket(draft, rng)]


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
    debt = sum(int(draft.plan.facts[f"debt:{code}"].value) for code in ("2500", "2510", "2520"))
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


T9 = Operator("T9", "footnote overrides the table", "plan", apply)
