"""Edits of calendars, on their lines: what is not named keeps every byte. Ops:

- ``set``, some of ``summary description location status url class priority sequence rule start end due``; null removes
  one. Times are ISO 8601; without an offset they are in the event's own zone, a mere date is a whole day.
- ``insert`` ``uid`` ``summary`` ``start`` [``end`` ``location`` ``attendees`` ...]: an event at the calendar's end.
- ``delete``: an entry; of a recurring event, its changed occurrences as well.
- ``exclude`` ``at``: one occurrence of a recurring event.
- ``invite`` ``attendee`` [``name`` ``role``]; ``uninvite`` ``attendee``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..editing import Change, ChangeReport, Edited, changes_of
from ..errors import BadEdit
from .lines import Component, Line, escaped, folded
from .reader import Reading, person_of, read_entries
from .writing import PROPERTY_OF, entry_lines, node_state, person_line, property_line, time_line

Patch = tuple[int, int, bytes]
"""Start, end and what takes the place of these bytes."""

SETTABLE = ("summary", "description", "location", "status", "url", "class", "priority", "sequence", "rule")
SETTABLE_TIMES = ("start", "end", "due")


def edit(data: bytes, name: str, changes: Sequence[Change | Mapping[str, Any]]) -> Edited:
    """Apply changes, see the module for the ops.

    Raises:
        BadEdit: a change cannot be applied. NoSuchAddress: nothing has its address. UnreadableDocument: as in ``read``.
    """
    asked = changes_of(changes, name)
    document, reading = read_entries(data, name)
    patches: list[Patch] = []
    for change in asked:
        change.require(OPS, name)
        component = reading.calendars[-1]
        if change.op != "insert":
            document.find(change.address)
            component = reading.entries[change.address]
        try:
            patches += OPS[change.op](reading, change, component)
        except ValueError as error:
            raise BadEdit(name, f"{change.op}: {error}", place=change.address) from error
    saved = _patched(data, patches, name)
    after = {node.address: node for node in read_entries(saved, name)[0].walk()}
    before = {node.address: node for node in document.walk()}
    reports = []
    for change in asked:
        address = f"event:{change.values['uid']}" if change.op == "insert" else change.address
        reports.append(
            ChangeReport(change.op, address, node_state(before.get(address)), node_state(after.get(address)))
        )
    return Edited(saved, tuple(reports), read_entries(saved, name)[0].warnings)


def _set(reading: Reading, change: Change, component: Component) -> list[Patch]:
    allowed = (*SETTABLE, *SETTABLE_TIMES)
    if not change.values or set(change.values) - set(allowed):
        unknown = sorted(set(change.values) - set(allowed))
        raise ValueError(f"{unknown[0] if unknown else 'nothing'!r} cannot be set; allowed: {', '.join(allowed)}")
    patches: list[Patch] = []
    start = component.first("DTSTART")
    for key, value in change.values.items():
        name = "SUMMARY" if key == "summary" else PROPERTY_OF[key]
        old = component.first(name)
        if value is None:
            patches += [] if old is None else [(old.start, old.end, b"")]
            continue
        if not isinstance(value, str):
            raise ValueError(f"{key!r} is a text or null, got {value!r}")
        line = old or start
        zone = line.parameters.get("TZID", "") if line is not None else ""
        made = ("SUMMARY", {}, escaped(value)) if key == "summary" else property_line(key, value, zone)
        patches.append(_replacing(reading, component, old, made))
        if key == "end" and (duration := component.first("DURATION")) is not None:
            patches.append((duration.start, duration.end, b""))
    return patches


def _insert(reading: Reading, change: Change, component: Component) -> list[Patch]:
    facts = dict(change.values)
    summary = change.text("summary", reading.name)
    del facts["summary"]
    for key in ("uid", "start"):
        change.text(key, reading.name)
    if f"event:{facts['uid']}" in reading.entries:
        raise ValueError(f"an event with the uid {facts['uid']!r} exists")
    end = _line_end(reading)
    lines = [folded(*line, end) for line in entry_lines(summary, facts)]
    block = b"BEGIN:VEVENT" + end + b"".join(lines) + b"END:VEVENT" + end
    return [(component.inner_end, component.inner_end, block)]


def _delete(reading: Reading, change: Change, component: Component) -> list[Patch]:
    related = [one for address, one in reading.entries.items() if address.startswith(f"{change.address}/")]
    return [(one.start, one.end, b"") for one in (component, *related)]


def _exclude(reading: Reading, change: Change, component: Component) -> list[Patch]:
    if component.first("RRULE") is None and component.first("RDATE") is None:
        raise ValueError("the event does not recur")
    start = component.first("DTSTART")
    zone = "" if start is None else start.parameters.get("TZID", "")
    made = time_line("EXDATE", change.text("at", reading.name), zone)
    return [_replacing(reading, component, None, made)]


def _invite(reading: Reading, change: Change, component: Component) -> list[Patch]:
    address = change.text("attendee", reading.name)
    if _attendee(component, address) is not None:
        raise ValueError(f"{address} is invited already")
    person = {"address": address} | {
        key: change.text(key, reading.name) for key in ("name", "role") if key in change.values
    }
    return [_replacing(reading, component, None, person_line("ATTENDEE", person | {"status": "NEEDS-ACTION"}))]


def _uninvite(reading: Reading, change: Change, component: Component) -> list[Patch]:
    address = change.text("attendee", reading.name)
    line = _attendee(component, address)
    if line is None:
        raise ValueError(f"{address} is not invited")
    return [(line.start, line.end, b"")]


OPS: dict[str, Callable[[Reading, Change, Component], list[Patch]]] = {
    "set": _set,
    "insert": _insert,
    "delete": _delete,
    "exclude": _exclude,
    "invite": _invite,
    "uninvite": _uninvite,
}
"""Op -> function that gives the patches."""


def _attendee(component: Component, address: str) -> Line | None:
    lines = component.all("ATTENDEE")
    return next((one for one in lines if person_of(one)["address"].lower() == address.lower()), None)


def _replacing(
    reading: Reading, component: Component, old: Line | None, made: tuple[str, Mapping[str, str], str]
) -> Patch:
    content = folded(*made, _line_end(reading))
    if old is not None:
        return old.start, old.end, content
    at = component.children[0].start if component.children else component.inner_end
    return at, at, content


def _line_end(reading: Reading) -> bytes:
    return b"\r\n" if b"\r\n" in reading.data else b"\n"


def _patched(data: bytes, patches: list[Patch], name: str) -> bytes:
    out, at = [], 0
    for start, end, content in sorted(patches, key=lambda one: (one[0], one[1])):
        if start < at:
            raise BadEdit(name, "two changes of this call touch the same place", place=f"byte {start}")
        out += [data[at:start], content]
        at = end
    return b"".join([*out, data[at:]])
