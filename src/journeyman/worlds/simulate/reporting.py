"""When the books are reported: quarters after 20 days, half years after 30, fiscal years after 75."""

from __future__ import annotations

from datetime import timedelta

from journeyman.worlds.draft import Draft
from journeyman.worlds.simulate.calendars import month_end

QUARTER_DAYS, HALF_DAYS, YEAR_DAYS = 20, 30, 75


def simulate_reporting(draft: Draft) -> None:
    """Events of quarters, half years and fiscal years; the payload names year, number and months."""
    setting = draft.setting
    last = setting.months[-1]
    for year in (*setting.years, setting.years[-1] + 1):
        for quarter in range(1, 5):
            months = setting.quarter_months(year, quarter)
            if months[-1] <= last:
                _record(draft, "quarter closed", months, QUARTER_DAYS, year, quarter, f"Q{quarter} FY{year}")
        half = setting.year_months(year)[:6]
        if half[-1] <= last:
            _record(draft, "half year reported", half, HALF_DAYS, year, 1, f"H1 FY{year}")
        if year in setting.years:
            _record(draft, "year reported", setting.year_months(year), YEAR_DAYS, year, 0, f"FY{year}")


def _record(draft: Draft, kind: str, months: range, days: int, year: int, number: int, period: str) -> None:
    day = month_end(months[-1]) + timedelta(days=days)
    draft.event(kind, day, f"{period} reported", year=year, number=number, period=period,
                months=[draft.setting.label(month) for month in months])  # fmt: skip
