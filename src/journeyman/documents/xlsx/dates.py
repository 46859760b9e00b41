"""Serial numbers as dates: days since the workbook's epoch, 1900 with its wrong leap day or 1904."""

from __future__ import annotations

from datetime import date, datetime, timedelta

_START = {1900: datetime(1899, 12, 30), 1904: datetime(1904, 1, 1)}
LAST = 2_958_465
"""9999-12-31 counted from 1900."""


def iso_of(serial: float, epoch: int) -> str:
    """``2025-03-31``, ``2025-03-31T08:30:00``, or ``08:30:00`` below one day; empty outside the calendar."""
    if not 0 <= serial <= LAST:
        return ""
    if serial < 1:
        seconds = round(serial * 86_400)
        return "" if seconds >= 86_400 else str((datetime(2000, 1, 1) + timedelta(seconds=seconds)).time())
    if epoch == 1900 and serial < 60:
        serial += 1  # before the day that 1900 did not have
    moment = _START[epoch] + timedelta(seconds=round(serial * 86_400))
    return moment.date().isoformat() if moment.time() == datetime.min.time() else moment.isoformat()


def serial_of(value: date | datetime, epoch: int) -> float:
    """The inverse of ``iso_of``; a zone is ignored."""
    moment = value.replace(tzinfo=None) if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    days = (moment - _START[epoch]) / timedelta(days=1)
    return days - 1 if epoch == 1900 and days < 61 else days
