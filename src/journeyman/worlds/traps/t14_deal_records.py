"""T14 in the papers of a deal: a debt, a ledger entry and a document to be signed, each listed twice."""

from __future__ import annotations

from dataclasses import replace

from journeyman.worlds.content import Block, Cell, Paragraph, Sheet, Table, mark
from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.edits import one_of_kind, revise_blocks, revise_rows, revise_sheet

COUNTED = {
    "2500": ("term_loan", "Term loan", "one term loan"),
    "2520": ("leases", "Lease liabilities", "one line for all leases"),
}
"""Account -> name of the amount, its line in the debt overview, and what the overview says of it in words."""

DEBIT, JOURNAL = 6, 2
"""Columns of the ledger."""


def listed_twice(draft: Draft) -> list[Planted]:
    """A debt in the overview, a journal entry in the ledger, an item of the closing checklist."""
    return [*_debt(draft), *_entry(draft), *_item(draft)]


def _debt(draft: Draft) -> list[Planted]:
    """The overview repeats a line; its words say how many instruments there are."""
    found = one_of_kind(draft, "debt_overview")
    if found is None:
        return []
    codes = [code for code in COUNTED if f"debt:{code}:restated" not in draft.plan.facts]
    code = draft.rng("debt listed twice").choice(codes)
    key, name, words = COUNTED[code]
    said = {one: text for one, (_, _, text) in COUNTED.items()}
    count = said[code] = draft.fact(f"debt:{code}:count", words, 1, "count")
    note = f"The list comes to {said['2500']}, one revolving facility and {said['2520']}, and the cash of all accounts."

    def change(blocks: list[Block]) -> list[Block]:
        made: list[Block] = []
        for block in blocks:
            if isinstance(block, Table):
                again = next(row for row in block.rows if row[0] == name)
                block = replace(block, rows=(*block.rows[:-1], again, block.rows[-1]))
                made += [block, Paragraph(note)]
            else:
                made.append(block)
        return made

    assert count in note
    revise_blocks(draft, found.path, change)
    amount = int(draft.plan.facts[f"debt:{code}"].value)
    return [Planted("T14", f"debt:{code}", (f"debt:{code}:count",), {key: 2 * amount}, {key: amount},
                    (f"debt:{code}",))]  # fmt: skip


def _entry(draft: Draft) -> list[Planted]:
    """The extract of the ledger holds an entry twice, line ids and all, and management proposes what it sums to."""
    ledger, proposed = one_of_kind(draft, "general_ledger"), one_of_kind(draft, "addbacks")
    accepted = draft.truth.rows("SELECT * FROM addback WHERE accepted = 1 ORDER BY id")
    if ledger is None or proposed is None or not accepted:
        return []
    rng = draft.rng("entry listed twice")
    chosen = rng.choice(accepted)
    booked, amount = f"addback:{chosen['id']}:amount", int(chosen["amount"])
    stated = mark(booked, str(amount))

    def repeat(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        at = [number for number, row in enumerate(rows) if row[JOURNAL] == chosen["journal_id"]]
        for number in at:
            row = rows[number]
            if row[DEBIT] == str(amount):
                rows[number] = (*row[:DEBIT], stated, *row[DEBIT + 1 :])
        entry = [rows[number] for number in at]
        place = min(len(rows), at[-1] + 1 + rng.randrange(3, 30))
        return [*rows[:place], *entry, *rows[place:]]

    def propose(sheet: Sheet) -> Sheet:
        fact = f"addback:{chosen['id']}:proposed"
        draft.fact(fact, "", 2 * amount, "currency", currency=draft.setting.currency)
        cells = {place: Cell(2 * amount, style=cell.style, fact=fact) if cell.fact == booked else cell
                 for place, cell in sheet.cells.items()}  # fmt: skip
        for place, cell in cells.items():
            if cell.formula and isinstance(cell.value, int):
                cells[place] = replace(cell, value=cell.value + amount)
        return replace(sheet, cells=cells)

    revise_rows(draft, ledger.path, repeat)
    revise_sheet(draft, proposed.path, "Proposed", propose)
    return [Planted("T14", f"addback:{chosen['id']}", (booked,), {"amount": 2 * amount}, {"amount": amount},
                    (f"addback:{chosen['id']}:proposed",))]  # fmt: skip


def _item(draft: Draft) -> list[Planted]:
    """The closing checklist repeats a line, number and all."""
    found = one_of_kind(draft, "checklist")
    items = draft.truth.rows("SELECT id, item FROM checklist ORDER BY id")
    if found is None:
        return []
    rng = draft.rng("item listed twice")
    chosen = rng.choice(items[:-1])
    fact = f"checklist:{chosen['id']}:number"
    draft.fact(fact, "", chosen["id"], subject="checklist", predicate="number", rows=(f"checklist:{chosen['id']}",))

    def change(sheet: Sheet) -> Sheet:
        first = next(row for (row, column), cell in sheet.cells.items() if (column, cell.value) == (0, chosen["id"]))
        place = min(first + rng.randrange(2, 9), first + len(items) - int(chosen["id"][2:]) + 1)
        line = {column: cell for (row, column), cell in sheet.cells.items() if row == first}
        line[0] = replace(line[0], fact=fact)
        cells = {(row + (row >= place), column): cell for (row, column), cell in sheet.cells.items()}
        again = {(row, column): cell for row in (first, place) for column, cell in line.items()}
        return replace(sheet, cells=cells | again)

    revise_sheet(draft, found.path, "Checklist", change)
    return [Planted("T14", f"checklist:{chosen['id']}", (fact,), {"lines": len(items) + 1}, {"lines": len(items)},
                    (fact,))]  # fmt: skip
