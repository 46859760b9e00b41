"""Rights of preferred classes that were changed after the capitalisation had been confirmed: deeds of amendment."""

from __future__ import annotations

from journeyman.worlds.content import Block, Heading, Paragraph, Prose
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.contracts import signatures
from journeyman.worlds.truth.store import Row


def deed_blocks(draft: Draft, holding: Row, before: str, now: str, day: str) -> list[Block]:
    """What a deed on the preference of a class says, without its signatures.

    Args:
        holding: row of ``security``.
        before, now: preference until then and from then on, as they are written.
        day: ISO date of the deed.
    """
    series, setting = holding["share_class"], draft.setting
    return [
        Heading(f"Deed of amendment: rights of {series}", 0),
        Paragraph(f"between {setting.company} and {holding['holder']}, dated {setting.day(day)}"),
        Paragraph(
            f"{holding['holder']} holds all shares of {series}. The capitalisation that the company secretary confirmed"
            " was drawn up before this deed."
        ),
        Heading("1. Preference"),
        Paragraph(
            f"The preference of {series}, until now {before}, is replaced with effect from the date"
            f" of this deed by {now}, payable once and in total for the class."
        ),
        Heading("2. Other rights"),
        Paragraph(
            f"Participation, conversion and seniority of {series} remain as they are. The preference does not bear"
            " interest and does not grow with time."
        ),
        Heading("3. Costs"),
        Paragraph("Each party bears its own costs of this deed. The company enters it in its records."),
    ]


def deed_signed(draft: Draft, holding: Row, before: str, now: str, day: str, suffix: str) -> str:
    """File the signed deed of an amendment as ``pdf`` or ``docx``; its path."""
    series = holding["share_class"]
    event = draft.event("rights amended", day, f"Preference of {series} amended by deed")
    blocks = [*deed_blocks(draft, holding, before, now, day), *signatures(draft, holding["holder"], day)]
    return _filed(draft, holding, blocks, event, day, f"signed.{suffix}")


def deed_drafted(draft: Draft, holding: Row, before: str, now: str, day: str) -> str:
    """File a later draft of a deed that nobody signed; its path."""
    event = draft.event("draft circulated", day, f"Unsigned draft of a deed on {holding['share_class']}")
    blocks = [
        *deed_blocks(draft, holding, before, now, day),
        Paragraph("Draft for discussion. Not signed; subject to approval by the holders of the class."),
    ]
    return _filed(draft, holding, blocks, event, day, "v2 final.docx")


def _filed(draft: Draft, holding: Row, blocks: list[Block], event: str, day: str, ending: str) -> str:
    words, _, suffix = ending.rpartition(".")
    series = holding["share_class"]
    path = f"legal/corporate/{draft.setting.file_name('deed of amendment', series, words)}.{suffix}"
    draft.document(
        path,
        "rights_deed" if words == "signed" else "rights_draft",
        Prose(tuple(blocks), f"Deed of amendment {series}", header=words, footer=draft.setting.layout["footer"]),
        event,
        day=day,
        author=draft.roles["secretary"]["name"],
        version="signed" if words == "signed" else "draft 2",
        subject=f"security:{holding['id']}",
    )
    return path
