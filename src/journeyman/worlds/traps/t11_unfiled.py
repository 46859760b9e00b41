"""T11 in the data room: a contract that its index names and that nobody ever put there."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from journeyman.worlds.content import Cell, Sheet
from journeyman.worlds.data import pack
from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.edits import last_row, one_of_kind, revise_sheet, with_cells

EARLIER = (
    ("consent", "their consent to a change of control"),
    ("termination", "a right to end it on a change of control"),
)
"""What the agreement before it provided, as a clause value and in words."""


def unfiled(draft: Draft, rng: Random) -> list[Planted]:
    """A contract that the index of the data room names without a file; a mail says who keeps the original."""
    found = one_of_kind(draft, "room_index")
    if found is None:
        return []
    setting, number = draft.setting, draft.next_id("K")
    kind = rng.choice(("customer", "supply"))
    title = pack("clauses")["kinds"][kind]["title"]
    party = f"{rng.choice(pack('firms')['peers'])} {rng.choice(pack('firms')['customer_words'])}"
    signed = (setting.today - timedelta(days=rng.randrange(300, 900))).isoformat()

    def change(sheet: Sheet) -> Sheet:
        row = last_row(sheet) + 1
        values = (number, title, party, signed)
        return with_cells(sheet, {(row, column): Cell(value) for column, value in enumerate(values)})

    revise_sheet(draft, found.path, "Index", change)
    day = (setting.today - timedelta(days=rng.randrange(3, 20))).isoformat()
    event = draft.event("document missing", day, f"{number} was never put into the data room")
    keeper = draft.roles[rng.choice(("procurement", "sales", "coo", "cco"))]
    provision, words = rng.choice(EARLIER)
    whom = draft.fact(f"unfiled:{number}:whom", keeper["name"], keeper["name"], subject=f"contract:{number}")
    before = draft.fact(f"unfiled:{number}:earlier", words, provision, subject=f"contract:{number}")
    draft.mail(
        event,
        setting.instant(day, rng),
        draft.roles["secretary"],
        [draft.roles["counsel"], draft.roles["associate"]],
        f"{number} {party}: no document",
        f"The index names {number}, the {title} with {party}, but we were never given the document, so nobody can say"
        f" what it provides. The agreement that it replaced provided for {before}, which says nothing about this one."
        f" The original is with {whom}.\n\n{draft.roles['secretary']['name']}\n",
    )
    return [
        Planted(
            "T11",
            f"contract:{number}",
            (f"unfiled:{number}:whom",),
            {"provision": provision},
            {"provision": "not in the record", "whom": keeper["name"], "title": title, "party": party},
            (f"unfiled:{number}:earlier",),
        )
    ]
