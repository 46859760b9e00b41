"""The raw export of two order systems as traps see it: some orders stand there twice, and half of the dates are texts.

Every office has it; T14 and T15 name what misleads in it.
"""

from __future__ import annotations

import re
from collections import Counter

from journeyman.worlds.content import Delimited, unmarked
from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted

ISO = re.compile(r"\d{4}-\d{2}-\d{2}")


def _lines(draft: Draft) -> list[tuple[str, str]]:
    """Order number as it should be written, date as it is written, line by line."""
    found = draft.plan.of_kind("orders_raw")
    content = found[0].content if found else None
    if not isinstance(content, Delimited):
        return []
    return [(unmarked(row[0])[0].strip().upper(), unmarked(row[2])[0].strip()) for row in content.rows[1:]]


def exported_twice(draft: Draft) -> list[Planted]:
    """Trap T14: orders of which both systems, or one of them twice, exported a line."""
    count = Counter(number for number, _ in _lines(draft))
    twice = sorted(number for number, times in count.items() if times > 1)
    facts = tuple(f"order:{number}:cents" for number in twice)
    return [Planted("T14", "orders:doubles", facts, {"orders": count.total()}, {"orders": len(count)})] if twice else []


def written_dates(draft: Draft) -> list[Planted]:
    """Trap T15: lines whose date is written with the day first."""
    odd = sorted({number for number, day in _lines(draft) if not ISO.fullmatch(day)})
    facts = tuple(f"order:{number}:cents" for number in odd)
    return [Planted("T15", "orders:dates", facts, {"rows_lost": len(odd)}, {"rows_lost": 0})] if odd else []
