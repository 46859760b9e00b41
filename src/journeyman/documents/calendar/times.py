"""Dates and times of calendars: all day, floating, in UTC or in a named zone; and the zones that files define."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

from .lines import Line

STAMP = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})(\d{2})?(Z)?)?$")
DURATION = re.compile(r"([+-]?)P(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?$")

Time = date | datetime


@dataclass(slots=True)
class Zones:
    """Time zones of one file.

    Attributes:
        definitions: zone id -> bytes of its VTIMEZONE.
        known: zone id -> zone, None where nothing defines it; filled as they are met.
    """

    definitions: dict[str, bytes] = field(default_factory=dict)
    known: dict[str, tzinfo | None] = field(default_factory=dict)

    def zone(self, zone_id: str) -> tzinfo | None:
        """The zone of an id: by the time zone database, by its Windows name, or as the file defines it."""
        if zone_id not in self.known:
            self.known[zone_id] = self._find(zone_id)
        return self.known[zone_id]

    def _find(self, zone_id: str) -> tzinfo | None:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        for name in (zone_id, zone_id.rpartition("freeassociation.sourceforge.net/")[2], _of_windows(zone_id)):
            try:
                if name:
                    return ZoneInfo(name)
            except (ZoneInfoNotFoundError, ValueError, OSError):
                continue
        definition = self.definitions.get(zone_id)
        if definition is None:
            return None
        from icalendar import Timezone

        try:
            component: Any = Timezone.from_ical(definition)
            zone: tzinfo = component.to_tz()
        except Exception:  # the library raises its own zoo on damaged definitions
            return None
        return zone


def _of_windows(zone_id: str) -> str:
    from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

    return str(WINDOWS_TO_OLSON.get(zone_id, ""))


def time_of(line: Line | None, zones: Zones, warnings: list[str]) -> Time | None:
    """The date or time of a property; None without one or, with a warning, where it is none."""
    if line is None:
        return None
    found = stamp_of(line.value.strip(), line.parameters.get("TZID", ""), zones)
    if found is None:
        warnings.append(f"{line.name} is no date: {line.value[:40]!r}")
    elif line.parameters.get("TZID") and isinstance(found, datetime) and found.tzinfo is None:
        warnings.append(f"the time zone {line.parameters['TZID']!r} is unknown, times in it float")
    return found


def stamp_of(text: str, zone_id: str, zones: Zones) -> Time | None:
    """A date or time as iCalendar writes it; None when it is none."""
    match = STAMP.match(text)
    if match is None:
        return None
    year, month, day = (int(match[at]) for at in (1, 2, 3))
    try:
        if match[4] is None:
            return date(year, month, day)
        second = min(int(match[6] or 0), 59)
        zone = UTC if match[7] else zones.zone(zone_id) if zone_id else None
        return datetime(year, month, day, int(match[4]), int(match[5]), second, tzinfo=zone)
    except ValueError:
        return None


def duration_of(text: str) -> timedelta | None:
    """A duration as iCalendar writes it; None when it is none."""
    match = DURATION.match(text.strip())
    if match is None:
        return None
    weeks, days, hours, minutes, seconds = (int(match[at] or 0) for at in range(2, 7))
    length = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    return -length if match[1] == "-" else length


def stamp(moment: Time) -> str:
    """A date or time as iCalendar writes it: UTC with ``Z``, other zones by their local time."""
    if not isinstance(moment, datetime):
        return f"{moment:%Y%m%d}".zfill(8)
    text = f"{moment:%Y%m%dT%H%M%S}".zfill(15)
    return text + "Z" if moment.tzinfo is UTC else text


def parsed(text: str) -> Time:
    """A date or time in ISO 8601 as trees and edits give it. Raises ValueError."""
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return date.fromisoformat(text)
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.utcoffset() == timedelta(0) else moment
