"""Preferences that a deed has changed since the cap table: sites of T1 and T17 in the capitalisation."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

from journeyman.worlds.content import Cell, Sheet
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.rights import deed_drafted, deed_signed
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.edits import one_of_kind, revise_blocks, revise_sheet, with_cells, with_change
from journeyman.worlds.truth.store import Row

CLASS_COLUMN, PREFERENCE_COLUMN = 1, 4
"""Of the cap table, from 0."""


def amend_series_a(draft: Draft, rng: Random) -> Planted:
    """The cap table shows what Series A was owed before a signed deed; an unsigned one would change it again (T1)."""
    holding = _holding(draft, "Series A")
    right, before, later = _amounts(rng, int(holding["preference"]))
    day = _day(draft, rng)
    stale = _shown_before(draft, holding, before)
    fact = _fact(draft, holding, right)
    deed_signed(draft, holding, draft.setting.money(before), fact, day, "pdf")
    name = f"security:{holding['id']}:preference"
    bait = draft.fact(f"{name}:draft", draft.setting.money(later), later, "currency", currency=draft.setting.currency)
    after = (date.fromisoformat(day) + timedelta(days=rng.randrange(2, 7))).isoformat()
    deed_drafted(draft, holding, draft.setting.money(right), bait, after)
    baits = (stale, f"{name}:draft")
    return Planted("T1", name, (name,), {"table": before, "draft": later}, {"table": right, "draft": right}, baits)


def mark_deed(draft: Draft, rng: Random) -> Planted:
    """The signed deed on Series B is a Word file in which its holder marked another amount; a mail says no (T17)."""
    holding, setting = _holding(draft, "Series B"), draft.setting
    right, before, wish = _amounts(rng, int(holding["preference"]))
    day, name = _day(draft, rng), f"security:{holding['id']}:preference"
    _shown_before(draft, holding, before)
    path = deed_signed(draft, holding, setting.money(before), _fact(draft, holding, right), day, "docx")
    bait = draft.fact(f"{name}:proposed", setting.money(wish), wish, "currency", currency=setting.currency)
    revise_blocks(draft, path, lambda blocks: with_change(blocks, name, bait, author=str(holding["holder"]), day=day))
    after = (date.fromisoformat(day) + timedelta(days=rng.randrange(1, 5))).isoformat()
    event = draft.event("proposal declined", after, f"Change in the deed on {holding['share_class']} declined")
    stays = draft.plan.state(draft.plan.facts[name], setting.money(right))
    secretary = draft.roles["secretary"]
    draft.mail(
        event,
        setting.instant(after, rng),
        secretary,
        [draft.roles["cfo"], draft.roles["banker"]],
        f"Deed of amendment, {holding['share_class']}: change not accepted",
        f"Hello,\n\nin the Word file of the deed {holding['holder']} has marked another amount. The company did not"
        " accept that change; the deed was signed without it and filed with the mark. The preference stays at"
        f" {stays} in total.\n\n{secretary['name']}\n",
    )
    return Planted("T17", name, (name,), {"preference": wish}, {"preference": right}, (f"{name}:proposed",))


def _holding(draft: Draft, series: str) -> Row:
    return draft.truth.one("SELECT * FROM security WHERE share_class = :s", s=series)


def _amounts(rng: Random, right: int) -> tuple[int, int, int]:
    """The amount itself, and two others that are at least a tenth away from it and from each other."""
    low = min(100_000 * round(right * rng.uniform(0.6, 0.85) / 100_000), right - 100_000)
    high = 100_000 * round(right * rng.uniform(1.2, 1.5) / 100_000 + 1)
    first, second = rng.sample((low, high), 2)
    return right, first, second


def _day(draft: Draft, rng: Random) -> str:
    """After the cap table was confirmed, before today."""
    return (date.fromisoformat(draft.notes["deal"]["start"]) + timedelta(days=rng.randrange(7, 22))).isoformat()


def _fact(draft: Draft, holding: Row, right: int) -> str:
    return draft.fact(
        f"security:{holding['id']}:preference",
        draft.setting.money(right),
        right,
        "currency",
        currency=draft.setting.currency,
        rows=(f"security:{holding['id']}",),
    )


def _shown_before(draft: Draft, holding: Row, before: int) -> str:
    """Let the cap table show the preference that a class had before; the id of what it states now."""
    found = one_of_kind(draft, "cap_table")
    assert found is not None
    stale = f"security:{holding['id']}:preference:before"
    draft.fact(stale, "", before, "currency", currency=draft.setting.currency)

    def change(sheet: Sheet) -> Sheet:
        at = next(row for (row, column), cell in sorted(sheet.cells.items())
                  if column == CLASS_COLUMN and cell.value == holding["share_class"])  # fmt: skip
        return with_cells(sheet, {(at, PREFERENCE_COLUMN): Cell(before, style="int", fact=stale)})

    revise_sheet(draft, found.path, "CapTable", change)
    return stale
