"""Calendars: zones and recurrence are read as written, and an edit leaves every line that it does not name."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import icalendar
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journeyman.documents import calendar
from journeyman.documents.errors import BadEdit, NoSuchAddress, TooLarge, UnreadableDocument, Unsupported, WrongKind
from journeyman.documents.node import Document, Node

WEEKLY = (
    b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nX-WR-CALNAME:Team\r\n"
    b"BEGIN:VEVENT\r\nUID:w1\r\nDTSTAMP:20260101T000000Z\r\nSUMMARY:Weekly\\, all\r\n"
    b"DTSTART;TZID=Europe/Berlin:20260323T090000\r\nDTEND;TZID=Europe/Berlin:20260323T100000\r\n"
    b"RRULE:FREQ=WEEKLY;UNTIL=20260420T070000Z\r\nEXDATE;TZID=Europe/Berlin:20260406T090000\r\n"
    b'ATTENDEE;CN="Lee, Ann";PARTSTAT=ACCEPTED:mailto:ann@x.org\r\nX-ODD;FOO=bar:keep\r\n me\r\n'
    b"BEGIN:VALARM\r\nTRIGGER:-PT15M\r\nACTION:DISPLAY\r\nEND:VALARM\r\nEND:VEVENT\r\n"
    b"BEGIN:VEVENT\r\nUID:w1\r\nRECURRENCE-ID;TZID=Europe/Berlin:20260413T090000\r\nSUMMARY:Moved\r\n"
    b"DTSTART;TZID=Europe/Berlin:20260413T140000\r\nDTEND;TZID=Europe/Berlin:20260413T150000\r\nEND:VEVENT\r\n"
    b"BEGIN:VEVENT\r\nUID:d1\r\nSUMMARY:Holiday\r\nDTSTART;VALUE=DATE:20260403\r\nDURATION:P2D\r\nEND:VEVENT\r\n"
    b"BEGIN:VTODO\r\nUID:t1\r\nSUMMARY:File\r\nDUE:20260401T120000Z\r\nEND:VTODO\r\nEND:VCALENDAR\r\n"
)


def test_events_tasks_attendees_and_zones_are_read():
    document = calendar.read(WEEKLY, "c.ics")
    event = document.find("event:w1")
    assert (event.text, document.metadata["title"]) == ("Weekly, all", "Team")
    assert event.attributes["start"] == "2026-03-23T09:00:00+01:00"
    assert event.attributes["time_zone"] == "Europe/Berlin"
    assert event.attributes["attendees"] == [{"address": "ann@x.org", "name": "Lee, Ann", "status": "ACCEPTED"}]
    assert event.attributes["alarms"] == ["-PT15M"]
    assert document.find("event:w1/20260413T090000").text == "Moved"
    holiday = document.find("event:d1").attributes
    assert (holiday["start"], holiday["end"], holiday["all_day"]) == ("2026-04-03", "2026-04-05", True)
    assert document.find("todo:t1").attributes["due"] == "2026-04-01T12:00:00+00:00"
    assert document.warnings == ()


def test_recurrence_keeps_the_local_time_and_knows_exceptions():
    found = calendar.occurrences(WEEKLY, "c.ics", date(2026, 3, 1), date(2026, 5, 1))
    weekly = [(node.address, node.attributes["start"]) for node in found.nodes if "w1" in node.address]
    assert weekly == [
        ("event:w1/20260323T090000", "2026-03-23T09:00:00+01:00"),
        ("event:w1/20260330T090000", "2026-03-30T09:00:00+02:00"),
        ("event:w1/20260413T090000", "2026-04-13T14:00:00+02:00"),
        ("event:w1/20260420T090000", "2026-04-20T09:00:00+02:00"),
    ]
    assert [node.address for node in found.nodes if "d1" in node.address] == ["event:d1"]
    april = calendar.occurrences(WEEKLY, "c.ics", datetime(2026, 4, 13, 12, 30, tzinfo=UTC), date(2026, 4, 14))
    assert [node.text for node in april.nodes] == ["Moved"]


def test_zones_by_windows_name_and_by_definition_are_known():
    start = "DTSTART;TZID={}:20260701T090000\nEND:VEVENT\n"
    zone = "BEGIN:VTIMEZONE\nTZID:Own\nBEGIN:STANDARD\nDTSTART:19700101T000000\nTZOFFSETFROM:+0330\nTZOFFSETTO:+0330\n"
    zone += "END:STANDARD\nEND:VTIMEZONE\n"
    for zone_id, offset in (("W. Europe Standard Time", "+02:00"), ("Own", "+03:30")):
        text = f"BEGIN:VCALENDAR\n{zone}BEGIN:VEVENT\nUID:a\n{start.format(zone_id)}END:VCALENDAR\n"
        node = calendar.read(text.encode(), "z.ics").find("event:a")
        assert node.attributes["start"] == f"2026-07-01T09:00:00{offset}"
    text = f"BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:a\n{start.format('Nowhere')}END:VCALENDAR\n"
    document = calendar.read(text.encode(), "z.ics")
    assert document.find("event:a").attributes["start"] == "2026-07-01T09:00:00"
    assert "Nowhere" in document.warnings[0]


def test_an_edit_replaces_the_lines_it_names_and_no_other():
    changes = [
        {"op": "set", "address": "event:w1", "summary": "Größe; neu", "start": "2026-03-23T10:00:00"},
        {"op": "set", "address": "event:d1", "location": "Hall, 2"},
        {"op": "invite", "address": "event:w1", "attendee": "bo@x.org", "name": "Bo"},
    ]
    edited = calendar.edit(WEEKLY, "c.ics", changes)
    assert edited.changed[0].after["start"] == "2026-03-23T10:00:00+01:00"
    assert edited.changed[1].after["location"] == "Hall, 2"
    old, new = WEEKLY.split(b"\r\n"), edited.data.split(b"\r\n")
    assert [line for line in old if line not in new] == [old[6 + 1], old[8]]
    assert sorted(line.split(b":")[0] for line in new if line not in old) == [
        b"ATTENDEE;CN=Bo;PARTSTAT=NEEDS-ACTION",
        b"DTSTART;TZID=Europe/Berlin",
        b"LOCATION",
        b"SUMMARY",
    ]
    seen = {str(one["SUMMARY"]) for one in icalendar.Calendar.from_ical(edited.data).walk("VEVENT")}
    assert "Größe; neu" in seen


def test_events_are_inserted_excluded_and_deleted():
    changes = [
        {
            "op": "insert",
            "uid": "n1",
            "summary": "New",
            "start": "2026-05-01T09:00:00+02:00",
            "end": "2026-05-01T10:00:00+02:00",
        },
        {"op": "exclude", "address": "event:w1", "at": "2026-03-30T09:00:00"},
        {"op": "uninvite", "address": "event:w1", "attendee": "ANN@x.org"},
        {"op": "delete", "address": "todo:t1"},
    ]
    edited = calendar.edit(WEEKLY, "c.ics", changes)
    assert edited.changed[0].after["start"] == "2026-05-01T07:00:00+00:00"
    found = calendar.occurrences(edited.data, "c.ics", date(2026, 3, 29), date(2026, 4, 1))
    assert found.nodes == ()
    with pytest.raises(NoSuchAddress):
        calendar.read(edited.data, "c.ics").find("todo:t1")
    gone = calendar.edit(WEEKLY, "c.ics", [{"op": "delete", "address": "event:w1"}])
    assert [node.address for node in calendar.read(gone.data, "c.ics").nodes] == ["event:d1", "todo:t1"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"op": "set", "address": "event:w1", "colour": "red"}, "allowed: summary"),
        ({"op": "set", "address": "event:w1", "start": "soon"}, "set"),
        ({"op": "exclude", "address": "event:d1", "at": "2026-04-03"}, "does not recur"),
        ({"op": "insert", "uid": "w1", "summary": "x", "start": "2026-04-03"}, "exists"),
        ({"op": "uninvite", "address": "event:w1", "attendee": "x@x"}, "not invited"),
        ({"op": "set", "address": "event:w1", "status": "A\nATTENDEE:x"}, "control"),
    ],
)
def test_a_change_that_cannot_be_made_says_why(change, problem: str):
    with pytest.raises(BadEdit, match=problem):
        calendar.edit(WEEKLY, "c.ics", [change])


def test_damaged_files_are_typed_errors_or_warnings():
    cut = calendar.read(WEEKLY[: WEEKLY.index(b"END:VEVENT")], "c.ics")
    assert cut.find("event:w1").text == "Weekly, all"
    assert any("cut off" in warning for warning in cut.warnings)
    with pytest.raises(WrongKind):
        calendar.read(b"Subject: hello\n\n", "c.ics")
    with pytest.raises(UnreadableDocument):
        calendar.read(b" ", "c.ics")
    with pytest.raises(TooLarge):
        calendar.read(b"BEGIN:VCALENDAR\n" * 20, "c.ics")
    endless = WEEKLY.replace(b"FREQ=WEEKLY;UNTIL=20260420T070000Z", b"FREQ=MINUTELY")
    with pytest.raises(TooLarge):
        calendar.occurrences(endless, "c.ics", date(2026, 3, 1), date(2036, 3, 1))
    with pytest.raises(UnreadableDocument, match="rule"):
        calendar.occurrences(WEEKLY.replace(b"FREQ=WEEKLY", b"FREQ=OFTEN"), "c.ics", date(2026, 3, 1), date(2026, 4, 1))
    with pytest.raises(Unsupported):
        calendar.write(Document("ics", "x.ics", (Node("event", "event:1", "", {"mood": "good"}),)))


TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), include_characters="\n"), min_size=1, max_size=60
)
NAMES = st.text("abcdefgh XYZ,;:", min_size=1, max_size=12)
STARTS = st.datetimes(datetime(1995, 1, 1), datetime(2037, 1, 1)).map(lambda one: one.replace(microsecond=0))


@st.composite
def events(draw, number: int) -> Node:
    from zoneinfo import ZoneInfo

    start, form = draw(STARTS), draw(st.sampled_from(["day", "utc", "floating", "zone"]))
    facts: dict = {"uid": f"{number}@x"}
    if form == "day":
        facts |= {"start": start.date().isoformat(), "end": (start.date() + timedelta(days=1)).isoformat()}
        tail = {"all_day": True}
    else:
        zone = {"utc": UTC, "floating": None, "zone": ZoneInfo("America/New_York")}[form]
        begins = start.replace(hour=12, tzinfo=zone)
        facts |= {"start": begins.isoformat(), "end": (begins + timedelta(hours=1)).isoformat()}
        tail = {"time_zone": "America/New_York"} if form == "zone" else {}
    facts |= tail
    if draw(st.booleans()):
        facts["description"] = draw(TEXT)
    if draw(st.booleans()):
        facts |= {"rule": "FREQ=DAILY;COUNT=3"}
    if draw(st.booleans()):
        facts["attendees"] = [{"address": "a@x.org", "name": draw(NAMES).strip() or "n"}]
    if draw(st.booleans()):
        facts["categories"] = draw(st.lists(TEXT, min_size=1, max_size=3))
    return Node("event", f"event:{number}@x", draw(TEXT), facts)


@settings(max_examples=60, deadline=None)
@given(st.tuples(events(1), events(2)))
def test_what_was_written_is_read_back_equal(nodes: tuple[Node, Node]):
    document = Document("ics", "x.ics", nodes, {"producer": "-//x//y", "title": "T"})
    data = calendar.write(document)
    assert calendar.read(data, "x.ics") == document
    assert len(icalendar.Calendar.from_ical(data).walk("VEVENT")) == 2
    assert max(len(line) for line in data.split(b"\r\n")) <= 75


@settings(max_examples=60, deadline=None)
@given(events(1), TEXT)
def test_any_text_can_be_set_and_all_else_stays(node: Node, text: str):
    data = calendar.write(Document("ics", "x.ics", (node,), {"producer": "p"}))
    edited = calendar.edit(data, "x.ics", [{"op": "set", "address": node.address, "description": text}])
    after = calendar.read(edited.data, "x.ics").nodes[0]
    assert after == Node(node.kind, node.address, node.text, {**node.attributes, "description": text})
