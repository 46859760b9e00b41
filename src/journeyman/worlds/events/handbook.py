"""The handbook for assistants: what must be asked and confirmed before a meeting is entered or a document goes out."""

from __future__ import annotations

from journeyman.worlds.content import Block, Heading, Paragraph, Prose, Table
from journeyman.worlds.draft import Draft
from journeyman.worlds.truth.store import Row

MEETINGS = (
    "An assistant who is asked for a meeting asks the person who wants it for its kind, its subject, the people,"
    " the day, the time and the place, and assumes none of them.",
    "Everybody else who is to attend is asked whether day and time suit. When all have agreed, the person who"
    " wants the meeting is asked to confirm day, time, length and place. Nothing is entered in the calendar before"
    " that is confirmed in writing.",
    "Until it is confirmed that person may change the request once. The change counts. What others agreed to"
    " before it does not count any more: they are asked again, and then the person who wants the meeting is asked"
    " to confirm again.",
    "The entry is called by kind and subject with a colon between them, such as Review: pension plan. It invites"
    " everybody who attends, the person who wants the meeting included. Times are UTC. The kind decides how long"
    " it is:",
)
RELEASES = (
    "An assistant who is asked to send documents to somebody outside asks the person who wants it for the"
    " recipient, the reference and the documents, and assumes none of them.",
    "For every document the owner of its folder is asked to approve that this file goes to this recipient; the"
    " request names both. What an owner refuses stays inside, and nobody else can approve it.",
    "When every owner has answered, the person who wants the release is asked to confirm the list of files that"
    " will be sent. Until then that person may change the list once. The change counts, and a file that it adds"
    " needs the approval of its owner before the list is put up for confirmation again.",
    "Confirmed files go out in one mail, attached to it as they are, with the reference in its subject and a copy"
    " to the person who wanted the release. Nothing is sent outside before that, and nothing else goes with it."
    " Owners are:",
)


def handbook_issued(draft: Draft, event: Row) -> None:
    """One document with both sets of rules."""
    sql = "SELECT name, value FROM assumption WHERE model = :m ORDER BY id"
    kinds = [
        (row["name"], draft.fact(f"handbook:{row['name']}", str(row["value"]), row["value"], "count"))
        for row in draft.truth.rows(sql, m="handbook")
    ]
    people = {row["email"]: row["name"] for row in draft.roles.values()}
    owners = [(row["name"], people[row["value"]], row["value"]) for row in draft.truth.rows(sql, m="handbook owner")]
    blocks: tuple[Block, ...] = (
        Heading("Handbook for assistants", 0),
        Heading("1. Meetings"),
        *(Paragraph(text) for text in MEETINGS),
        Table((("Kind", "Minutes"), *kinds)),
        Heading("2. Documents for people outside"),
        *(Paragraph(text) for text in RELEASES),
        Table((("Folder", "Owner", "Address"), *owners)),
    )
    draft.document(
        f"people/{draft.setting.file_name('handbook for assistants')}.docx",
        "handbook",
        Prose(blocks, "Handbook for assistants"),
        event["id"],
        day=event["date"],
        author=draft.roles["chro"]["name"],
    )
