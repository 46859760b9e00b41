"""Personnel data as exported from the system, and resignations."""

from __future__ import annotations

from journeyman.worlds.content import Book, Cell
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.tables import sheet_of
from journeyman.worlds.truth.store import Row


def hris_rows(draft: Draft, known: str) -> list[Row]:
    """Everybody employed on a day, with their manager, as the truth has them."""
    return draft.truth.as_of(known).rows(
        "SELECT p.id, p.name, p.title, p.unit, p.grade, p.valid_from AS hired, e.manager_id FROM person_at p"
        " LEFT JOIN org_edge_at e ON e.report_id = p.id WHERE p.grade IS NOT NULL ORDER BY p.id"
    )


def personnel_exported(draft: Draft, event: Row) -> None:
    """The export: one line a person, manager by number."""
    draft.document(
        hris_path(draft),
        "hris",
        hris_book(draft, hris_rows(draft, event["date"]), "hris"),
        event["id"],
        day=event["date"],
        author=draft.roles["hrbp"]["name"],
        version="final",
    )


def hris_path(draft: Draft, *words: str) -> str:
    """Where exports lie."""
    return f"people/{draft.setting.file_name('personnel export', *words)}.xlsx"


def hris_book(draft: Draft, rows: list[Row], fact: str, note: str = "") -> Book:
    """Export of rows; who reports to whom is stated as ``<fact>:<person>:manager``."""
    lines = []
    for row in rows:
        manager = row["manager_id"] or ""
        cell = Cell(draft.fact(f"{fact}:{row['id']}:manager", manager, manager) if manager else "")
        lines.append((row["id"], row["name"], row["title"], row["unit"], row["grade"], row["hired"], cell))
    sheet = sheet_of(
        "Personnel",
        ("person_id", "name", "title", "unit", "grade", "hired", "manager_id"),
        lines,
        widths=(12, 28, 32, 16, 8, 12, 12),
        note=note,
    )
    return Book((sheet,), "Personnel export")


def resignation(draft: Draft, event: Row) -> None:
    """Somebody leaves: a mail to people, a message in the channel of the unit, a farewell in the calendar."""
    setting, payload = draft.setting, event["payload"]
    leaver = draft.truth.one("SELECT * FROM person WHERE id = :id", id=payload["person"])
    rng, partner = draft.rng(f"leaver {leaver['id']}"), draft.roles["hrbp"]
    when = setting.instant(event["date"], rng)
    last = draft.fact(
        f"person:{leaver['id']}:last_day",
        setting.day(payload["last_day"]),
        payload["last_day"],
        "date",
        rows=(f"person:{leaver['id']}",),
    )
    draft.mail(
        event["id"],
        when,
        leaver,
        [partner, draft.roles["chro"]],
        "Notice",
        f"Dear {partner['name']},\n\nI give notice to the next possible date. According to my contract my last day"
        f" is {last}. Thank you for the years here.\n\n{leaver['name']}\n",
    )
    channel = leaver["unit"].lower()
    draft.say(
        event["id"],
        when,
        channel,
        leaver,
        "Some of you know already: I am leaving. I will hand over in the coming weeks, please tell me what you need.",
    )
    draft.meet(
        event["id"],
        setting.instant(payload["last_day"], rng),
        45,
        f"Farewell {leaver['name']}",
        "Cake in the kitchen.",
        partner,
        [leaver, draft.roles["chro"]],
        "Kitchen",
    )
