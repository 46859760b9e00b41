"""Contracts in the index of the data room, and what their yearly reviews say: volumes, and who looks after each."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from journeyman.worlds.template import Unbindable
from journeyman.worlds.templates import reading

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

NONE = "none"
KINDS = ("customer", "supply", "lease", "licence", "distribution", "consultancy")

DOCUMENTS: Mapping[int, tuple[int, int]] = {1: (20, 45), 2: (100, 165)}
"""Knob ``length`` -> least and most documents on contracts that must be read; from 2 on, reviews are among them."""

INDEXED = re.compile(r'\["(K\d+)", "((?:[^"\\]|\\.)*)", "(?:[^"\\]|\\.)*", "[^"]*", "((?:[^"\\]|\\.)*)"\]')
"""A line of the index: contract, title, path."""


def kinds_with(office: Office, bounds: tuple[int, int], rng: random.Random, *, reviews: bool) -> list[str]:
    """Kinds of contracts about which so many documents say something, in order of name.

    Args:
        bounds: least and most documents: contracts, amendments, drafts of amendments.
        reviews: reviews count as well.

    Raises:
        Unbindable: no set of kinds has so many.
    """
    kind_of = {
        f"contract:{row['id']}": row["kind"]
        for row in office.truth.rows("SELECT id, kind FROM contract WHERE signed = 1 ORDER BY id")
    }
    papers = [one for one in office.documents.values() if one.kind != "review" or reviews]
    count = Counter(kind_of[one.subject] for one in papers if one.subject in kind_of)
    sets = [one for size in range(1, len(KINDS) + 1) for one in combinations(KINDS, size)]
    fit = [one for one in sets if bounds[0] <= sum(count[kind] for kind in one) <= bounds[1]]
    if not fit:
        raise Unbindable(f"no kinds of contracts with {bounds[0]} to {bounds[1]} documents")
    return sorted(fit[rng.randrange(len(fit))])


def years_of(office: Office) -> list[int]:
    """Fiscal years in which contracts were reviewed. Raises Unbindable for fewer than two."""
    years = [int(row["year"]) for row in office.truth.rows("SELECT DISTINCT year FROM review ORDER BY year")]
    if len(years) < 2:
        raise Unbindable("contracts were not reviewed in two years")
    return years


def reviewed(office: Office, contract: str, years: Sequence[int], *, latest: bool) -> dict[str, Any]:
    """``volume_<year>`` of these years, ``owner`` and ``address`` by the latest or the first review; else nothing."""
    rows = office.truth.rows("SELECT * FROM review WHERE contract_id = :c ORDER BY year", c=contract)
    volumes = {row["year"]: row["volume"] for row in rows}
    shown = rows[-1 if latest else 0] if rows else {"owner": NONE, "address": NONE}
    said = {f"volume_{year}": volumes.get(year, NONE) for year in years}
    return {**said, "owner": shown["owner"], "address": shown["address"]} if years else {}


def read_review(text: str, years: Sequence[int]) -> dict[str, Any]:
    """What one review says; empty for a year that was not asked for."""
    for year in years:
        if volume := reading.words_between(text, f"Volume in FY{year}:"):
            owner, address = (reading.words_between(text, mark) for mark in ("Business owner:", "Notices go to:"))
            return {f"volume_{year}": reading.whole_number(volume), "owner": owner, "address": address}
    return {}
