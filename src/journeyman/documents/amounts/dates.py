"""Dates as people and spreadsheets write them: order of day and month, epoch of serial numbers, zone, precision."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Literal

from .words import locale_of

Precision = Literal["year", "quarter", "month", "day", "minute", "second"]

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier janv enero januari",
            "february feb februar février fevrier févr fevr febrero februari",
            "march mar märz maerz mrz mars marzo",
            "april apr avril avr abril",
            "may mai mayo maj",
            "june jun juni juin junio",
            "july jul juli juillet juil julio",
            "august aug août aout agosto augusti",
            "september sep sept septembre septiembre",
            "october oct oktober okt octobre octubre",
            "november nov novembre noviembre",
            "december dec dezember dez décembre decembre déc diciembre",
        ),
        start=1,
    )
    for name in names.split()
}
ZONES = {"z": 0, "utc": 0, "gmt": 0, "wet": 0, "bst": 60, "cet": 60, "west": 60, "cest": 120, "eet": 120, "eest": 180}
ZONES |= {"msk": 180, "jst": 540, "kst": 540, "aest": 600, "aedt": 660, "nzst": 720, "nzdt": 780}
ZONES |= {"est": -300, "edt": -240, "cdt": -300, "mst": -420, "mdt": -360, "pst": -480, "pdt": -420}
"""Abbreviation -> minutes from UTC. ``IST`` and ``CST`` name several zones and are not here."""
PIVOT = 70
"""Years of two digits below it are of this century, others of the last."""

TIME = re.compile(
    r"[T ,]\s*(?:at )?(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?\s*(?P<half>[ap]\.?m\.?)?"
    r"\s*(?P<zone>Z|[+-]\d{2}:?\d{2}|[A-Z]{2,5}|[A-Z]\w+/[\w/+-]+)?\s*$",
    re.IGNORECASE,
)
NUMBERS = re.compile(r"(\d{1,4})([-/. ])\s?(\d{1,2})\2\s?(\d{1,4})\.?")
NAMED = (
    re.compile(
        r"(?:[^\W\d]+,? )?(?P<day>\d{1,2})(?:st|nd|rd|th|er)?\.?[ -](?:of )?(?P<month>[^\W\d]{3,})\.?[ ,-]+"
        r"(?P<year>\d{4}|\d{2})"
    ),
    re.compile(
        r"(?:[^\W\d]+, )?(?P<month>[^\W\d]{3,})\.?[ -](?P<day>\d{1,2})(?:st|nd|rd|th)?,?[ -](?P<year>\d{4}|\d{2})"
    ),
    re.compile(r"(?P<year>\d{4})[ -](?P<month>[^\W\d]{3,})\.?[ -](?P<day>\d{1,2})"),
    re.compile(r"(?P<month>[^\W\d]{3,})\.?[ -]'?(?P<year>\d{4}|\d{2})"),
)
QUARTER = re.compile(
    r"(?:Q(?P<q>[1-4])[ -/]?(?:FY)?(?P<year>\d{4})|(?P<year2>\d{4})[ -]?Q(?P<q2>[1-4]))", re.IGNORECASE
)


class NotADate(ValueError):
    """The text is not one date.

    Args:
        text: as given.
        why: in one clause.
    """

    def __init__(self, text: str, why: str) -> None:
        self.text, self.why = text, why
        super().__init__(f"{text[:80]!r} is not a date: {why}")


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or an instant, no more exact than it was written.

    Attributes:
        value: its beginning; with a time zone where one was written, else without.
        precision: smallest part that was written.
        zone: as written, empty for none.
        alternatives: other readings of the same text; 03/04/2026 has one.
    """

    value: datetime
    precision: Precision = "day"
    zone: str = ""
    alternatives: tuple[Moment, ...] = ()

    @property
    def date(self) -> date:
        """The calendar day, in the zone that was written."""
        return self.value.date()

    def as_json(self) -> dict[str, object]:
        """A JSON value in ISO 8601, as exact as it was written."""
        length = {"year": 4, "quarter": 7, "month": 7, "day": 10}.get(self.precision)
        text = self.value.isoformat()
        facts: dict[str, object] = {"value": text[:length] if length else text, "precision": self.precision}
        facts |= {"zone": self.zone} if self.zone else {}
        return facts | ({"alternatives": [one.as_json() for one in self.alternatives]} if self.alternatives else {})


def parse_date(text: str, locale: str | None = None) -> Moment:
    """The date or instant that a text says.

    Args:
        text: ISO 8601, ``03/04/2026``, ``3. April 2026``, ``Apr 3, 2026 10:00 CET``, ``April 2026``, ``Q3 2026``.
        locale: decides the order of day and month; None takes the day first and keeps the other reading, except that
            a date that begins with its year has one reading.

    Raises:
        NotADate: it is none, or such a day does not exist. KeyError: an unknown locale.
    """
    order = None if locale is None else locale_of(locale).order
    body = re.sub(r"\s+", " ", text).strip()
    time = TIME.search(body)
    day = _day(text, body if time is None else body[: time.start()].strip(" ,"), order)
    if time is None:
        return day
    if day.precision != "day":
        raise NotADate(text, "a time without a day")
    found = [_at(text, one, time) for one in (day, *day.alternatives)]
    return replace(found[0], alternatives=tuple(found[1:]))


def from_serial(number: Decimal | float | int, epoch: Literal[1900, 1904] = 1900) -> datetime:
    """The instant of a spreadsheet's serial number, to the second.

    Args:
        number: days; the fraction is the time of day.
        epoch: date system of the workbook. That of 1900 counts a 29 February 1900, which did not exist: 60 is refused.

    Raises:
        NotADate: the number is negative, too large or 60 in the system of 1900.
    """
    days = Decimal(str(number))
    if not days.is_finite() or not 0 <= days < 2_958_466:
        raise NotADate(str(number), "outside of what spreadsheets can count")
    whole = int(days)
    seconds = int((days - whole) * 86_400 + Decimal("0.5"))
    if epoch == 1904:
        return datetime(1904, 1, 1) + timedelta(days=whole, seconds=seconds)
    if whole == 60:
        raise NotADate(str(number), "29 February 1900 did not exist")
    return datetime(1899, 12, 31) + timedelta(days=whole - (whole > 60), seconds=seconds)


def to_serial(moment: datetime | date, epoch: Literal[1900, 1904] = 1900) -> Decimal:
    """The serial number of an instant without time zone; the inverse of ``from_serial``. Raises NotADate before it."""
    instant = moment if isinstance(moment, datetime) else datetime(moment.year, moment.month, moment.day)
    start = datetime(1904, 1, 1) if epoch == 1904 else datetime(1899, 12, 31)
    gone = instant.replace(tzinfo=None) - start
    days = Decimal(gone.days) + Decimal(gone.seconds) / 86_400
    if days < 0:
        raise NotADate(instant.isoformat(), f"it is before the epoch of {epoch}")
    return days + (1 if epoch == 1900 and gone.days >= 60 else 0)


def _day(text: str, body: str, order: str | None) -> Moment:
    if (match := NUMBERS.fullmatch(body)) is not None:
        return _of_numbers(text, match, order)
    for pattern in NAMED:
        if (match := pattern.fullmatch(body)) is not None and match["month"].lower() in MONTHS:
            parts = match.groupdict()
            day = int(parts["day"]) if parts.get("day") else 1
            value = _checked(text, _year(parts["year"]), MONTHS[match["month"].lower()], day)
            return Moment(value, "day" if parts.get("day") else "month")
    if (match := QUARTER.fullmatch(body)) is not None:
        quarter = int(match["q"] or match["q2"])
        return Moment(_checked(text, int(match["year"] or match["year2"]), 3 * quarter - 2, 1), "quarter")
    if (match := re.fullmatch(r"(\d{4})-(\d{2})", body)) is not None:
        return Moment(_checked(text, int(match[1]), int(match[2]), 1), "month")
    if re.fullmatch(r"(?:1[5-9]|20|21)\d\d", body):
        return Moment(datetime(int(body), 1, 1), "year")
    if re.fullmatch(r"(?:1[5-9]|20|21)\d{6}", body):
        return Moment(_checked(text, int(body[:4]), int(body[4:6]), int(body[6:])))
    raise NotADate(text, "it has no form that is known")


def _of_numbers(text: str, match: re.Match[str], order: str | None) -> Moment:
    first, separator, second, third = match[1], match[2], match[3], match[4]
    if len(first) == 4:
        return Moment(_checked(text, int(first), int(second), int(third)))
    if len(first) == 3 or len(third) in (1, 3):
        raise NotADate(text, "it has no year of two or four digits")
    orders = ["dmy"] if separator == "." else ["dmy", "mdy"]
    if order is not None:
        orders = [order if order != "ymd" or len(third) == 4 else "ymd"]
        orders = ["dmy", "mdy"] if orders == ["ymd"] and len(third) == 4 else orders
    found = []
    for one in orders:
        parts = dict(zip(one, (first, second, third), strict=True))
        try:
            found.append(Moment(_checked(text, _year(parts["y"]), int(parts["m"]), int(parts["d"]))))
        except NotADate:
            continue
    if not found:
        raise NotADate(text, "such a day does not exist")
    others = tuple(one for one in found[1:] if one.value != found[0].value)
    return replace(found[0], alternatives=others)


def _year(digits: str) -> int:
    year = int(digits)
    return year if len(digits) == 4 else year + (2000 if year < PIVOT else 1900)


def _checked(text: str, year: int, month: int, day: int) -> datetime:
    try:
        return datetime(year, month, day)
    except ValueError as error:
        raise NotADate(text, "such a day does not exist") from error


def _at(text: str, day: Moment, time: re.Match[str]) -> Moment:
    hour, half = int(time["hour"]), (time["half"] or "").lower()[:1]
    if half and not 1 <= hour <= 12:
        raise NotADate(text, "such a time does not exist")
    hour = hour % 12 + (12 if half == "p" else 0) if half else hour
    try:
        value = day.value.replace(hour=hour, minute=int(time["minute"]), second=int(time["second"] or 0))
    except ValueError as error:
        raise NotADate(text, "such a time does not exist") from error
    zone = time["zone"] or ""
    precision: Precision = "second" if time["second"] else "minute"
    return Moment(value.replace(tzinfo=_zone(text, zone)) if zone else value, precision, zone)


def _zone(text: str, zone: str) -> tzinfo:
    if zone.lower() in ZONES:
        minutes = ZONES[zone.lower()]
        return UTC if minutes == 0 else timezone(timedelta(minutes=minutes))
    if zone[0] in "+-":
        hours, minutes = int(zone[1:3]), int(zone[-2:])
        if hours > 15 or minutes > 59:
            raise NotADate(text, "such an offset does not exist")
        return timezone((1 if zone[0] == "+" else -1) * timedelta(hours=hours, minutes=minutes))
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise NotADate(text, f"the zone {zone!r} is unknown or names several; give an offset") from error
