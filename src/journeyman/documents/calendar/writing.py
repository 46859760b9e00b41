"""From what a tree knows about an entry to lines of a calendar, for writing and for edits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ..errors import Unsupported
from ..node import Document, Node
from .lines import escaped, folded
from .reader import KINDS, TEXTS, TIMES
from .times import parsed, stamp

PROPERTY_OF = {key: source for source, key in {**TEXTS, **TIMES}.items()}
"""Attribute -> property."""
UNESCAPED = {"URL", "STATUS", "CLASS", "TRANSP", "PRIORITY", "SEQUENCE", "RRULE"}
DERIVED = {"all_day", "uid", "recurrence_id", "time_zone"}
PRODUCER = "-//journeyman//documents//EN"
STAMP = "19700101T000000Z"
"""Every event must say when it was written down; the same tree must give the same bytes."""


def write(document: Document) -> bytes:
    """The file of a tree, with CRLF line ends and a definition of every zone it uses. Same tree, same bytes.

    Raises:
        Unsupported: an entry or attribute that cannot be written; its address is given.
    """
    end = b"\r\n"
    out = [b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n"]
    known = dict(document.metadata)
    out.append(folded("PRODID", {}, str(known.pop("producer", PRODUCER)), end))
    for key, name in (("method", "METHOD"), ("title", "X-WR-CALNAME")):
        if key in known:
            out.append(folded(name, {}, escaped(str(known.pop(key))), end))
    if known:
        raise Unsupported(document.name, f"the property {sorted(known)[0]!r} of a calendar is not written")
    for zone_id in sorted({str(n.attributes["time_zone"]) for n in document.nodes if "time_zone" in n.attributes}):
        out.append(_zone(document, zone_id))
    kinds = {word: kind.upper() for kind, word in KINDS.items()}
    for node in document.nodes:
        if node.kind not in kinds:
            raise Unsupported(document.name, f"a {node.kind} is not written in a calendar", place=node.address)
        try:
            lines = b"".join(folded(*line, end) for line in entry_lines(node.text, node.attributes))
        except ValueError as error:
            raise Unsupported(document.name, str(error), place=node.address) from error
        out += [f"BEGIN:{kinds[node.kind]}".encode() + end, lines, f"END:{kinds[node.kind]}".encode() + end]
    return b"".join([*out, b"END:VCALENDAR\r\n"])


def entry_lines(summary: str, facts: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str], str]]:
    """Properties of an entry as name, parameters and value. Raises ValueError for what cannot be written."""
    if "uid" in facts:
        yield "UID", {}, escaped(str(facts["uid"]))
    yield "DTSTAMP", {}, STAMP
    zone = str(facts.get("time_zone", ""))
    if "recurrence_id" in facts:
        value = str(facts["recurrence_id"])
        yield "RECURRENCE-ID", value_parameters(value, zone), value
    if summary:
        yield "SUMMARY", {}, escaped(summary)
    for key, fact in facts.items():
        if key in DERIVED:
            continue
        if key in ("excluded", "added"):
            for one in fact:
                yield time_line({"excluded": "EXDATE", "added": "RDATE"}[key], str(one), zone)
        elif key == "attendees":
            for person in fact:
                yield person_line("ATTENDEE", person)
        elif key == "organizer":
            yield person_line("ORGANIZER", fact)
        elif key == "categories":
            yield "CATEGORIES", {}, ",".join(escaped(str(one)) for one in fact)
        elif key in PROPERTY_OF:
            yield property_line(key, str(fact), zone)
        else:
            raise ValueError(f"{key!r} is not written")


def property_line(key: str, text: str, zone: str) -> tuple[str, dict[str, str], str]:
    """One property of an attribute. Raises ValueError when a time is none."""
    name = PROPERTY_OF[key]
    if name in TIMES:
        return time_line(name, text, zone if key in ("start", "end", "due") else "")
    return name, {}, text if name in UNESCAPED else escaped(text)


def time_line(name: str, text: str, zone: str) -> tuple[str, dict[str, str], str]:
    """A property that holds a date or time, given in ISO 8601. Raises ValueError."""
    moment = parsed(text)
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        if not zone or zone == "UTC":
            moment, zone = moment.astimezone(UTC), ""
        else:
            from .times import Zones

            known = Zones().zone(zone)
            moment = moment.astimezone(known) if known is not None else moment
    value = stamp(moment)
    return name, value_parameters(value, zone), value


def value_parameters(value: str, zone: str) -> dict[str, str]:
    """Parameters that a date or time needs."""
    if "T" not in value:
        return {"VALUE": "DATE"}
    return {"TZID": zone} if zone and not value.endswith("Z") else {}


def person_line(name: str, person: Mapping[str, str]) -> tuple[str, dict[str, str], str]:
    """An organizer or attendee."""
    keys = (("CN", "name"), ("PARTSTAT", "status"), ("ROLE", "role"))
    parameters = {source: str(person[key]) for source, key in keys if person.get(key)}
    address = str(person.get("address", ""))
    return name, parameters, f"mailto:{address}" if "@" in address and ":" not in address else address


def _zone(document: Document, zone_id: str) -> bytes:
    from datetime import date

    from icalendar import Timezone

    try:
        made = Timezone.from_tzid(zone_id, first_date=date(1990, 1, 1), last_date=date(2038, 1, 1))
    except Exception as error:  # the library raises its own zoo on unknown zones
        raise Unsupported(
            document.name, f"the time zone {zone_id!r} is unknown", remedy="use a name such as Europe/Berlin"
        ) from error
    text: bytes = made.to_ical()
    return text


def node_state(node: Node | None) -> Any:
    """What a report shows of an entry."""
    return None if node is None else {"summary": node.text, **node.attributes}
