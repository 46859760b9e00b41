"""Months, fiscal years and working days. A month is a number, 12 * year + month - 1, so that spans are differences."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Container
from datetime import date, timedelta


def month_of(day: date) -> int:
    """The number of a day's month."""
    return 12 * day.year + day.month - 1


def month_end(month: int) -> date:
    """Last day of a month."""
    year, index = divmod(month, 12)
    return date(year, index + 1, monthrange(year, index + 1)[1])


def month_start(month: int) -> date:
    """First day of a month."""
    return date(month // 12, month % 12 + 1, 1)


def month_label(month: int) -> str:
    """``2025-03``."""
    return f"{month // 12}-{month % 12 + 1:02d}"


def add_working_days(day: date, count: int, holidays: Container[str]) -> date:
    """The day that is ``count`` working days later: weekends and holidays (ISO texts) do not count."""
    while count:
        day += timedelta(days=1)
        count -= is_working_day(day, holidays)
    return day


def is_working_day(day: date, holidays: Container[str]) -> bool:
    """Whether people work on this day."""
    return day.weekday() < 5 and day.isoformat() not in holidays
