"""From the bytes of a calendar to its tree: events, tasks and notes with what is known about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from ..node import Document, Node
from .lines import Component, Line, components_of, unescaped
from .times import Time, Zones, duration_of, time_of

KINDS = {"vevent": "event", "vtodo": "todo", "vjournal": "note"}
TEXTS = {
    "DESCRIPTION": "description",
    "LOCATION": "location",
    "STATUS": "status",
    "URL": "url",
    "CLASS": "class",
    "TRANSP": "transparency",
    "PRIORITY": "priority",
    "SEQUENCE": "sequence",
    "RRULE": "rule",
}
"""Property -> attribute that holds its text."""
TIMES = {"DTSTART": "start", "DTEND": "end", "DUE": "due", "CREATED": "created_at", "LAST-MODIFIED": "modified_at"}


@dataclass(slots=True)
class Reading:
    """A calendar file that was read.

    Attributes:
        data: its bytes.
        name: file name.
        calendars: components of the file.
        entries: address -> component.
        zones: of the file.
        warnings: for the document.
    """

    data: bytes
    name: str
    calendars: list[Component] = field(default_factory=list)
    entries: dict[str, Component] = field(default_factory=dict)
    zones: Zones = field(default_factory=Zones)
    warnings: list[str] = field(default_factory=list)


def read_entries(data: bytes, name: str) -> tuple[Document, Reading]:
    """Read a calendar. Raises WrongKind, TooLarge or UnreadableDocument."""
    reading = Reading(data, name)
    reading.calendars = components_of(data, name, reading.warnings)
    metadata: dict[str, Any] = {}
    for calendar in reading.calendars:
        for source, key in (("X-WR-CALNAME", "title"), ("NAME", "title"), ("METHOD", "method"), ("PRODID", "producer")):
            if text := calendar.text(source):
                metadata.setdefault(key, text)
        for zone in calendar.children:
            if zone.kind == "vtimezone":
                reading.zones.definitions[zone.text("TZID")] = data[zone.start : zone.end]
    nodes: list[Node] = []
    for calendar in reading.calendars:
        for component in calendar.children:
            if component.kind in KINDS:
                nodes.append(_entry(reading, component, len(nodes) + 1))
    return Document("ics", name, tuple(nodes), metadata, tuple(dict.fromkeys(reading.warnings))), reading


def _entry(reading: Reading, component: Component, number: int) -> Node:
    uid = component.text("UID")
    address = f"{KINDS[component.kind]}:{uid or number}"
    if (recurrence := component.first("RECURRENCE-ID")) is not None:
        address += f"/{recurrence.value.strip()}"
    unique, times = address, 2
    while unique in reading.entries:
        unique, times = f"{address}~{times}", times + 1
    reading.entries[unique] = component
    return Node(KINDS[component.kind], unique, component.text("SUMMARY"), facts_of(reading, component))


def facts_of(reading: Reading, component: Component) -> dict[str, Any]:
    """What is known about an entry, JSON values; times in ISO 8601."""
    facts: dict[str, Any] = {"uid": component.text("UID")} if component.text("UID") else {}
    if (recurrence := component.first("RECURRENCE-ID")) is not None:
        facts["recurrence_id"] = recurrence.value.strip()
    for source, key in TIMES.items():
        if (moment := time_of(component.first(source), reading.zones, reading.warnings)) is not None:
            facts[key] = moment.isoformat()
    start = component.first("DTSTART")
    if start is not None and start.parameters.get("TZID"):
        facts["time_zone"] = start.parameters["TZID"]
    begins = time_of(start, reading.zones, [])
    if begins is not None and not isinstance(begins, datetime):
        facts["all_day"] = True
    length = duration_of(component.text("DURATION")) if component.first("DURATION") else None
    if length is not None and begins is not None and "end" not in facts:
        facts["end"] = (begins + length).isoformat()
    for source, key in TEXTS.items():
        if text := component.text(source):
            facts[key] = text
    if (organizer := component.first("ORGANIZER")) is not None:
        facts["organizer"] = person_of(organizer)
    if attendees := [person_of(line) for line in component.all("ATTENDEE")]:
        facts["attendees"] = attendees
    if categories := [unescaped(one) for line in component.all("CATEGORIES") for one in split_list(line.value)]:
        facts["categories"] = categories
    for source, key in (("EXDATE", "excluded"), ("RDATE", "added")):
        if moments := times_of(component, source, reading.zones):
            facts[key] = [one.isoformat() for one in moments]
    alarms = [one.text("TRIGGER") for one in component.children if one.kind == "valarm"]
    return facts | ({"alarms": alarms} if alarms else {})


def times_of(component: Component, name: str, zones: Zones) -> list[Time]:
    """All dates and times of a property that may list several."""
    from .times import stamp_of

    found = []
    for line in component.all(name):
        for one in line.value.split(","):
            moment = stamp_of(one.partition("/")[0].strip(), line.parameters.get("TZID", ""), zones)
            if moment is not None:
                found.append(moment)
    return found


def split_list(value: str) -> list[str]:
    """Parts of a list of texts; escaped commas belong to a text."""
    parts, at, begin = [], 0, 0
    while at < len(value):
        if value[at] == "\\":
            at += 1
        elif value[at] == ",":
            parts.append(value[begin:at])
            begin = at + 1
        at += 1
    return [one for one in [*parts, value[begin:]] if one]


def person_of(line: Line) -> dict[str, str]:
    """Address, name, role and answer of an organizer or attendee."""
    address = line.value.strip()
    address = address[7:] if address.lower().startswith("mailto:") else address
    keys = (("name", "CN"), ("status", "PARTSTAT"), ("role", "ROLE"))
    return {"address": address} | {key: line.parameters[source] for key, source in keys if line.parameters.get(source)}


def length_of(component: Component, zones: Zones) -> timedelta:
    """How long an entry takes: by its end, its duration, or a day for whole days."""
    start, end = time_of(component.first("DTSTART"), zones, []), time_of(component.first("DTEND"), zones, [])
    if start is not None and end is not None and isinstance(start, datetime) == isinstance(end, datetime):
        if isinstance(start, datetime) and isinstance(end, datetime) and (start.tzinfo is None) != (end.tzinfo is None):
            return timedelta(0)
        return end - start
    if (length := duration_of(component.text("DURATION"))) is not None:
        return length
    return timedelta(days=1) if isinstance(start, date) and not isinstance(start, datetime) else timedelta(0)
