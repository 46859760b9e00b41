"""The frame of a world: which company, where, in what style, and what day it is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from random import Random
from typing import Any

from journeyman.worlds.data import pack
from journeyman.worlds.simulate.calendars import month_end, month_label
from journeyman.worlds.simulate.industries import industries, styles

PEERS = {"us": ("GBP", "EUR"), "gb": ("USD", "EUR"), "eu": ("USD", "GBP")}
"""Currencies of the two subsidiaries, by the group's place."""

YEARS = 3
MONTHS_SINCE = 6
"""Months of the current fiscal year that are closed."""


@dataclass(frozen=True)
class Setting:
    """What every stage needs to know.

    Attributes:
        industry, style, place: keys of the packs, with their contents in ``trade``, ``layout``, ``locale``.
        company: legal name of the group; ``short`` without its form; ``domain`` of its mail.
        currency: of the group; ``foreign`` those of its two subsidiaries.
        first_month: first month of the first fiscal year.
        today: the day on which an agent works; nothing later exists, except what traps plant.
    """

    industry: str
    style: str
    place: str
    trade: dict[str, Any]
    layout: dict[str, Any]
    locale: dict[str, Any]
    company: str
    short: str
    domain: str
    city: str
    currency: str
    foreign: tuple[str, str]
    first_month: int
    today: date

    @property
    def months(self) -> range:
        """All closed months."""
        return range(self.first_month, self.first_month + 12 * YEARS + MONTHS_SINCE)

    def year_of(self, month: int) -> int:
        """Fiscal year of a month: the calendar year in which it ends."""
        return (self.first_month + 11 + 12 * ((month - self.first_month) // 12)) // 12

    def year_months(self, year: int) -> range:
        """The months of a fiscal year."""
        start = self.first_month + 12 * (year - self.year_of(self.first_month))
        return range(start, start + 12)

    @property
    def years(self) -> tuple[int, ...]:
        """The three complete fiscal years."""
        first = self.year_of(self.first_month)
        return tuple(range(first, first + YEARS))

    @property
    def year_end_month(self) -> int:
        """1 to 12: the month in which fiscal years end."""
        return (self.first_month + 11) % 12 + 1

    def quarter_months(self, year: int, quarter: int) -> range:
        """The months of a fiscal quarter, 1 to 4."""
        start = self.year_months(year)[0] + 3 * (quarter - 1)
        return range(start, start + 3)

    def number(self, value: float, digits: int = 0) -> str:
        """A number as this place writes it, e.g. ``1.234.567,5``; negatives in brackets as accountants do."""
        text = f"{abs(value):,.{digits}f}"
        text = text.translate(str.maketrans({",": self.locale["thousands"], ".": self.locale["decimal"]}))
        return f"({text})" if value < 0 and round(abs(value), digits) else text

    def money(self, value: float, currency: str = "", digits: int = 0) -> str:
        """An amount with its currency code, e.g. ``EUR 1.234.567``."""
        return f"{currency or self.currency} {self.number(value, digits)}"

    def millions(self, value: float, currency: str = "") -> str:
        """An amount in millions to one digit, e.g. ``GBP 61.5 million``."""
        return f"{currency or self.currency} {self.number(value / 1e6, 1)} million"

    def percent(self, ratio: float, digits: int = 1) -> str:
        """A ratio as a percentage."""
        return f"{self.number(100 * ratio, digits)}%"

    def day(self, when: date | str) -> str:
        """A date in words."""
        when = date.fromisoformat(when) if isinstance(when, str) else when
        return _ascii_date(when, self.locale["date"])

    def short_day(self, when: date | str) -> str:
        """A date in figures."""
        when = date.fromisoformat(when) if isinstance(when, str) else when
        return _ascii_date(when, self.locale["short_date"])

    def file_name(self, *words: str) -> str:
        """Words as this company names its files."""
        text = " ".join(words)
        clean = "".join(c if c.isalnum() or c in "-." else " " for c in text).split()
        if self.layout["naming"] == "title":
            return "_".join(w if w.isupper() or w[0].isdigit() else w.capitalize() for w in clean)
        return ("-" if self.layout["naming"] == "dash" else "_").join(w.lower() for w in clean)

    def label(self, month: int) -> str:
        """``2025-03``."""
        return month_label(month)

    def instant(self, day: str, rng: Random) -> datetime:
        """A working hour of a day (UTC, no zone)."""
        return datetime.fromisoformat(day) + timedelta(hours=rng.randrange(8, 18), minutes=rng.randrange(60))


MONTHS: tuple[str, ...] = ("January", "February", "March", "April", "May", "June", "July", "August")
MONTHS += ("September", "October", "November", "December")


def _ascii_date(when: date, pattern: str) -> str:
    words = {"%B": MONTHS[when.month - 1], "%d": f"{when.day:02d}", "%m": f"{when.month:02d}", "%Y": str(when.year)}
    for code, word in words.items():  # strftime would ask the process for its language
        pattern = pattern.replace(code, word)
    return pattern


def draw_setting(rng: Random, split: str) -> Setting:
    """Draw the frame of a world of a split."""
    industry, style = rng.choice(industries(split)), rng.choice(styles(split))
    place = rng.choice(sorted(pack("locales")))
    trade, locale = pack("industries")[industry], pack("locales")[place]
    short = rng.choice(trade["stems"])
    end_month, last_year = rng.choice((3, 6, 9, 12, 12)), rng.choice((2023, 2024, 2025))
    first_month = 12 * (last_year - YEARS) + end_month
    today = month_end(first_month + 12 * YEARS + MONTHS_SINCE - 1) + timedelta(days=rng.randrange(38, 52))
    while today.weekday() >= 5:
        today += timedelta(days=1)
    domain = "".join(c for c in short.lower() if c.isalnum()) + f"-{industry.split('_')[0]}.example"
    return Setting(
        industry, style, place, trade, pack("styles")[style], locale, f"{short} Group {rng.choice(locale['forms'])}",
        short, domain, rng.choice(locale["city"]), locale["currency"], PEERS[place], first_month, today,
    )  # fmt: skip
