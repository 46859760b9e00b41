"""Checks of a journal: what was obtained before an act, how calendar and mailbox end, and what was not to be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from verifier_here import MalformedDeliverable, graded, score

from journeyman.worlds.verify import Check

HOST, GUEST, DESK = "ann@a.example", "ben@a.example", "desk@a.example"
EVENT = {"summary": "Review: price list", "start": "2025-03-06T09:00:00Z", "end": "2025-03-06T10:30:00Z",
         "location": "Room 4", "people": [HOST, GUEST]}  # fmt: skip


def mail(to: str, **more: Any) -> dict[str, Any]:
    stored = {"from_email": DESK, "to": [to], "cc": [], "subject": "Question", "attachments": [], **more}
    return {"by": "agent", "tool": "mail_send_mail", "arguments": {"to_email": [to]}, "stored": stored}


def says(who: str, *marks: str) -> dict[str, Any]:
    return {"by": who, "tool": "mail_send_mail", "marks": list(marks), "body": "Yes."}


def made(number: int = 1, **more: Any) -> dict[str, Any]:
    fields = {"summary": "Review: price list", "start": {"dateTime": "2025-03-06T10:00:00+01:00"}, "location": "room 4",
              "end": {"dateTime": "2025-03-06T10:30:00", "timeZone": "UTC"}, **more,
              "attendees": [{"email": one} for one in more.get("people", [GUEST, HOST])]}  # fmt: skip
    return {
        "by": "agent",
        "tool": "calendar_create_event",
        "arguments": fields,
        "stored": {"id": f"e{number}", **fields},
    }


def changed(number: int, **fields: Any) -> dict[str, Any]:
    return {"by": "agent", "tool": "calendar_update_event", "arguments": {"event_id": f"e{number}", **fields}}


def kept(fn: str, entries: list[Any], **params: Any) -> float:
    check = Check("journal", f"journal.{fn}", {"file": "journal.json", **params})
    return score(check, {"journal.json": json.dumps({"seal": "s", "entries": entries}).encode()})


TALK = [mail(HOST), says(HOST, "confirmed"), mail(GUEST), says(GUEST, "agrees")]


def test_the_calendar_is_right_when_it_ends_right_whatever_its_zones_and_order():
    assert kept("events", [*TALK, made()], events=[EVENT], needs=["confirmed", "agrees"]) == 1.0
    late = made(start={"dateTime": "2025-03-06T11:00:00Z"}, end={"dateTime": "2025-03-06T12:30:00Z"})
    assert kept("events", [late], events=[EVENT]) == 0.0
    right = {"start": {"dateTime": "2025-03-06T09:00:00Z"}, "end": {"dateTime": "2025-03-06T10:30:00Z"}}
    assert kept("events", [late, changed(1, **right)], events=[EVENT]) == 1.0
    gone = {"by": "agent", "tool": "calendar_delete_event", "arguments": {"event_id": "e2"}}
    assert kept("events", [made(), made(2), gone], events=[EVENT]) == 1.0


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [made(people=[HOST])],
        [made(people=[HOST, GUEST, DESK])],
        [made(summary="Review")],
        [made(location="Room 1")],
        [made(start={"date": "2025-03-06"})],
        [made(), made(2)],
        [made(), changed(9, location="Room 1")],
        [{**made(), "by": HOST}],
    ],
)
def test_another_calendar_is_wrong(entries):
    assert kept("events", entries, events=[EVENT]) == 0.0


def test_what_was_obtained_too_late_or_said_by_the_agent_does_not_count():
    act = {"tool": "calendar_create_event"}
    assert kept("obtained", [*TALK, made()], marks=["confirmed", "agrees"], before=act) == 1.0
    assert kept("obtained", [*TALK[:2], made(), *TALK[2:]], marks=["confirmed", "agrees"], before=act) == 0.0
    assert (
        kept("obtained", [*TALK[:2], made(), *TALK[2:]], marks=["confirmed", "agrees"], before=act, credit="share")
        == 0.5
    )
    assert kept("obtained", TALK, marks=["confirmed"], before=act) == 0.0
    assert kept("obtained", TALK, marks=["confirmed"]) == 1.0
    assert (
        kept("obtained", [{**says(HOST, "confirmed"), "by": "agent"}, made()], marks=["confirmed"], before=act) == 0.0
    )
    assert kept("events", [made(), *TALK, made(2)], events=[EVENT], needs=["confirmed"]) == 0.0


def test_a_mail_outside_is_right_with_its_receivers_files_and_reference_only():
    out = {"to": ["x@b.example"], "cc": [HOST], "attachments": ["legal/K001.pdf"], "subject": "REL-7"}
    sent = mail("X@b.example", cc=[HOST], attachments=["/legal/K001.pdf"], subject="Release REL-7")

    def ends(*entries: Any, **params: Any) -> float:
        return kept("mails", list(entries), known=[HOST, GUEST], mails=[out], **params)

    assert ends(*TALK, sent, needs=["confirmed"]) == 1.0
    assert ends(sent, *TALK, needs=["confirmed"]) == 0.0
    assert ends() == 0.0
    assert ends(sent, sent) == 0.0
    assert ends(sent, mail("y@b.example")) == 0.0
    for wrong in ({"cc": []}, {"attachments": []}, {"attachments": ["/legal/K002.pdf"]}, {"subject": "Release"}):
        assert ends({**sent, "stored": {**sent["stored"], **wrong}}) == 0.0


def test_a_mail_to_somebody_else_another_sender_or_another_tool_is_noticed():
    def clean(*entries: Any) -> float:
        tools = ["mail_send_mail", "calendar_create_event"]
        return kept("only", list(entries), agent=DESK, people=[HOST, GUEST], tools=tools)

    assert clean(*TALK, made()) == 1.0
    assert clean(*TALK, mail("eve@b.example")) == 0.0
    assert clean(*TALK, mail(GUEST, bcc=["eve@b.example"])) == 0.0
    assert clean(mail(HOST, from_email=GUEST)) == 0.0
    assert clean(*TALK, {"by": "agent", "tool": "chat_post_message", "arguments": {}}) == 0.0


def test_a_journal_without_the_seal_is_none_and_nonsense_is_malformed():
    assert kept("sealed", TALK, seal="s") == 1.0
    assert kept("sealed", TALK, seal="t") == 0.0
    check = Check("journal", "journal.sealed", {"file": "journal.json", "seal": "s"})
    for data in (b"[]", b'{"entries": 3}', b'{"entries": [1]}', b"nonsense"):
        with pytest.raises(MalformedDeliverable):
            graded([check], {"journal.json": data})
