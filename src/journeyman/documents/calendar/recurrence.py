"""Occurrences of recurring events in a span of time: rules, added and excluded dates, and changed occurrences.

Rules run on local times, so an event at nine stays at nine when the clocks change. Rule semantics: RFC 5545, 3.8.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import islice

from ..errors import TooLarge, UnreadableDocument
from ..node import Document, Node
from .lines import Component
from .reader import Reading, length_of, read_entries, times_of
from .times import Time, stamp, stamp_of, time_of

MAX_STEPS = 100_000
"""Occurrences of one rule that are looked at, those before the span included."""
MAX_FOUND = 10_000


def occurrences(data: bytes, name: str, start: date | datetime, end: date | datetime) -> Document:
    """The calendar with its events in a span, one node per occurrence, in order of time.

    Args:
        data: the file.
        name: file name.
        start, end: of the span, end excluded; without a zone they are taken in UTC.

    Returns:
        Occurrences as ``event:UID/<recurrence id>``, events that do not recur as ``event:UID``; ``start`` and ``end``
        are those of the occurrence.

    Raises:
        TooLarge: more occurrences than the limits. UnreadableDocument: as in ``read``, or a rule that is none.
    """
    document, reading = read_entries(data, name)
    first, last = _instant(start), _instant(end)
    changed: dict[str, set[str]] = {}
    for node in document.nodes:
        if "recurrence_id" in node.attributes and node.kind == "event":
            changed.setdefault(str(node.attributes.get("uid", "")), set()).add(node.attributes["recurrence_id"])
    found: list[tuple[datetime, Node]] = []
    for node in document.nodes:
        component = reading.entries[node.address]
        begins = time_of(component.first("DTSTART"), reading.zones, [])
        if node.kind != "event" or begins is None:
            continue
        length = length_of(component, reading.zones)
        skipped = (
            changed.get(str(node.attributes.get("uid", "")), set()) if "recurrence_id" not in node.attributes else set()
        )
        for moment in _moments(reading, node, component, begins, last):
            if _key(moment, begins, reading) in skipped or stamp(moment) in skipped:
                continue
            if _instant(moment) < last and (_instant(moment) + length > first or _instant(moment) >= first):
                found.append((_instant(moment), _occurrence(node, component, moment, length)))
                if len(found) > MAX_FOUND:
                    raise TooLarge(name, f"more than {MAX_FOUND} occurrences", remedy="ask for a shorter span")
    nodes = tuple(node for _, node in sorted(found, key=lambda one: (one[0], one[1].address)))
    return Document("ics", name, nodes, document.metadata, document.warnings)


def _moments(reading: Reading, node: Node, component: Component, begins: Time, last: datetime) -> Iterator[Time]:
    """Beginnings of an event up to the end of the span."""
    rules = [line.value for line in component.all("RRULE")]
    added = times_of(component, "RDATE", reading.zones)
    if "recurrence_id" in node.attributes or not (rules or added):
        yield begins
        return
    excluded = {_instant(one) for one in times_of(component, "EXDATE", reading.zones)}
    excluded_days = {one for one in times_of(component, "EXDATE", reading.zones) if not isinstance(one, datetime)}
    seen: set[datetime] = set()
    pools = [_rule_moments(reading, node, rule, begins) for rule in rules] + [iter([begins, *added])]
    for pool in pools:
        for steps, moment in enumerate(pool, start=1):
            if steps > MAX_STEPS:
                raise TooLarge(reading.name, f"a rule of more than {MAX_STEPS} occurrences", place=node.address)
            instant = _instant(moment)
            if instant >= last and pool is not pools[-1]:
                break
            day = moment.date() if isinstance(moment, datetime) else moment
            if instant not in seen and instant not in excluded and day not in excluded_days:
                seen.add(instant)
                yield moment


def _rule_moments(reading: Reading, node: Node, rule: str, begins: Time) -> Iterator[Time]:
    from dateutil.rrule import rrulestr

    zone = begins.tzinfo if isinstance(begins, datetime) else None
    local = begins.replace(tzinfo=None) if isinstance(begins, datetime) else datetime.combine(begins, time())
    try:
        parsed = rrulestr(_with_local_until(rule, zone, reading), dtstart=local)
        for moment in islice(parsed, MAX_STEPS + 1):
            yield moment.replace(tzinfo=zone) if isinstance(begins, datetime) else moment.date()
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise UnreadableDocument(
            reading.name, f"the rule {rule[:80]!r} is none: {error}", place=node.address
        ) from error


def _with_local_until(rule: str, zone: tzinfo | None, reading: Reading) -> str:
    """The rule with the end in local time, as its occurrences are."""
    match = re.search(r"UNTIL=([0-9TZ]+)", rule, re.IGNORECASE)
    until = None if match is None else stamp_of(match[1], "", reading.zones)
    if match is None or until is None:
        return rule
    if isinstance(until, datetime):
        if until.tzinfo is not None and zone is not None:
            until = until.astimezone(zone)
        until = until.replace(tzinfo=None)
    else:
        until = datetime.combine(until, time(23, 59, 59))
    return rule[: match.start(1)] + f"{until:%Y%m%dT%H%M%S}" + rule[match.end(1) :]


def _occurrence(node: Node, component: Component, moment: Time, length: timedelta) -> Node:
    facts = {key: one for key, one in node.attributes.items() if key not in ("rule", "excluded", "added")}
    facts["start"] = moment.isoformat()
    if "end" in facts or component.first("DURATION") is not None:
        facts["end"] = _after(moment, length).isoformat()
    address = node.address
    if "recurrence_id" not in facts and (component.first("RRULE") or component.first("RDATE")):
        facts["recurrence_id"] = stamp(moment)
        address = f"{node.address}/{stamp(moment)}"
    return Node(node.kind, address, node.text, facts)


def _after(moment: Time, length: timedelta) -> Time:
    """The end of an occurrence: so much elapsed time later, whatever the clocks did."""
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return (moment.astimezone(UTC) + length).astimezone(moment.tzinfo)
    return moment + length


def _key(moment: Time, begins: Time, reading: Reading) -> str:
    """How a recurrence id in UTC names an occurrence in a zone."""
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    return stamp(moment)


def _instant(moment: Time) -> datetime:
    if not isinstance(moment, datetime):
        return datetime.combine(moment, time(), UTC)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
