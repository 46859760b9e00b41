"""IB2: a peer group in one currency and one calendar year, with multiples and their medians.

What makes it hard: fiscal years that end in other months, average rates for income and closing rates for balances, a
column that counts in millions among others in thousands, and medians that have to follow the table.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import sheet, xlsx_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.banking.sheets import one_file, records, sheet_rows
from journeyman.worlds.templates.matrices import matrix_checks
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "peer_multiples.xlsx"
SHEET, LOCAL = "Comps", "Local"
MILLION = 1_000_000
TOL = {"rel": 1e-4, "abs": 1e-6}
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
FIGURES = ("revenue", "ebitda", "net_debt", "market_cap")
STEPS = {
    "currency": "Currency", "weight": "Weight", "average": "Average rate", "closing": "Closing rate",
    "local_revenue": "Revenue", "local_ebitda": "EBITDA",
}  # fmt: skip
"""What lies between a peer's own figures and the table: key of a row -> its column in the sheet ``Local``."""

SCALES = {"whole units": 1, "thousand": 1000, "million": MILLION}

Peer = Mapping[str, Any]
Rates = Mapping[str, tuple[float, float]]
"""Currency -> mean of the last twelve monthly averages, last closing rate; in units of the group's currency."""


@dataclass(frozen=True)
class IB2:
    """See the module."""

    id: str = "IB2"
    domain: str = "banking"
    title: str = "peer multiples, calendarised and in one currency"
    traps: tuple[str, ...] = ("T3", "T4", "T5")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        peers = office.truth.rows("SELECT * FROM comp_company ORDER BY id")
        count = min(len(peers), 4 + knobs.fan_out)
        peers = [peers[i] for i in sorted(rng.sample(range(len(peers)), count))]
        currency = office.setting.currency
        rates = _rates(office, {peer["currency"] for peer in peers})
        hard = [n for n, peer in enumerate(peers) if peer["currency"] != currency or peer["fiscal_year_end"] != 12]
        is_mixed = office.trap("T4", "comps:") is not None
        if not hard and not is_mixed:
            raise Unbindable("every peer reports in the group's currency and by calendar years, all in one scale")
        if len({peer["name"] for peer in peers}) < count or not _is_filed(office, peers):
            raise Unbindable("a peer is not in the workbook of the peer group, or twice")
        year = int(office.today[:4]) - 2
        ask = {"names": [peer["name"] for peer in peers], "year": year, "currency": currency, "file": FILE}
        answer = {"peers": [peer_row(peer, rates) for peer in peers]}
        sites = {one.site for one in office.planted if one.trap in self.traps}
        traps = tuple(sorted((*_traps(peers, currency, sites), *(("T4",) if is_mixed else ()))))
        careless = [peer_row(peer, _closing(rates), by_year="prior") for peer in peers]
        alone = [peer_row(peer, _unconverted(rates), by_year="last") for peer in peers]
        places = [(n, column) for n in hard for column in (1, 2)]
        places += [(n, 4) for n in range(count)] if is_mixed else []
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer,
            _checks(answer["peers"], places), (FILE,), _wrong(peers, rates, answer, traps),
            trap_blind={"peers": _misread(careless) if is_mixed else careless},
            single={"peers": _misread(alone) if is_mixed else alone},
            facts=tuple(f"peer:{peer['id']}:{name}" for peer in peers for name in ("revenue", "ebitda", "net_debt")),
            reads=tuple(office.of_kind(kind)[0].path for kind in ("comps", "comps_method", "fx_rates")),
            traps=traps, knobs=knobs, notes={"peers": count, "hard": len(hard)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: xlsx_bytes(layout(answer, form))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        yield from reading.document_text((yield from one_file("*peer*group*method*")))
        workbook = yield from one_file("*peer*group*data*.xlsx")
        table = _in_units((yield from sheet_rows(workbook)))
        listed = records((yield from sheet_rows((yield from one_file("*exchange*rates*.xlsx")))), "Pair")
        rates = {}
        for code in {row["Currency"] for row in table.values()} - {ask["currency"]}:
            rows = [row for row in listed if row["Pair"] == f"{code}/{ask['currency']}"]
            means = sorted((r["Month end"], r["Rate"]) for r in rows if r["Kind"] == "monthly average")[-12:]
            close = max((r["Month end"], r["Rate"]) for r in rows if r["Kind"] == "closing")
            rates[code] = (sum(rate for _, rate in means) / len(means), close[1])
        peers = []
        for name in ask["names"]:
            if name not in table:
                raise Lost(f"no peer {name}")
            row, year = table[name], ask["year"]
            peers.append({
                "name": name, "currency": row["Currency"],
                "fiscal_year_end": MONTHS.index(row["Fiscal year end"]) + 1,
                "revenue_prior": row[f"Revenue FY{year}"], "revenue": row[f"Revenue FY{year + 1}"],
                "ebitda_prior": row[f"EBITDA FY{year}"], "ebitda": row[f"EBITDA FY{year + 1}"],
                "net_debt": row["Net debt"], "market_cap": row["Market capitalisation"],
            })  # fmt: skip
        yield from reading.deliver_workbook(FILE, layout({"peers": [peer_row(peer, rates) for peer in peers]}))
        yield from reading.tab(f"/artifacts/{FILE}")


def _in_units(rows: Mapping[int, Sequence[Any]]) -> dict[str, dict[str, Any]]:
    """Company -> its line in whole units; the title says what amounts are counted in, unless the column does."""
    found: dict[str, dict[str, Any]] = {}
    for row in records(rows, "Company"):
        line: dict[str, Any] = {}
        for head, value in row.items():
            name, _, own = head.partition(", ")
            scale = next(scale for word, scale in SCALES.items() if word in (own or str(rows[1][0])))
            line[name] = value * scale if isinstance(value, int | float) else value
        found[row["Company"]] = line
    return found


def peer_row(peer: Peer, rates: Rates, *, by_year: str = "weighted") -> dict[str, Any]:
    """Four figures of a peer in millions of the group's currency, and the steps to them.

    Args:
        by_year: ``weighted`` by the month in which the fiscal year ends; ``prior`` or ``last``: that year as it stands.
    """
    average, close = rates.get(peer["currency"], (1.0, 1.0))
    share = {"weighted": peer["fiscal_year_end"] / 12, "prior": 1.0, "last": 0.0}[by_year]
    row: dict[str, Any] = {"company": peer["name"]}
    steps = {"currency": peer["currency"], "weight": share, "average": average, "closing": close}
    for name in ("revenue", "ebitda"):
        steps[f"local_{name}"] = (share * peer[f"{name}_prior"] + (1 - share) * peer[name]) / MILLION
        row[name] = steps[f"local_{name}"] * average
    for name in ("net_debt", "market_cap"):
        row[name] = peer[name] * close / MILLION
    return {key: round(value, 6) if isinstance(value, float) else value for key, value in {**row, **steps}.items()}


def _rates(office: Office, currencies: set[str]) -> Rates:
    setting, found = office.setting, {}
    first, last = (setting.label(setting.months[n]) for n in (-12, -1))
    for code in sorted(currencies - {setting.currency}):
        pair = f"{code}/{setting.currency}"
        means = office.truth.rows(
            "SELECT rate FROM fx_rate WHERE pair = :p AND kind = 'avg' AND substr(date, 1, 7) BETWEEN :a AND :b",
            p=pair, a=first, b=last,
        )  # fmt: skip
        close = office.truth.value(
            "SELECT rate FROM fx_rate WHERE pair = :p AND kind = 'close' AND substr(date, 1, 7) = :b", p=pair, b=last
        )
        if len(means) != 12:
            raise Unbindable(f"{len(means)} monthly averages of {pair}")
        found[code] = (sum(row["rate"] for row in means) / 12, float(close))
    return found


def _is_filed(office: Office, peers: Sequence[Peer]) -> bool:
    return all(office.where(f"peer:{peer['id']}:revenue") for peer in peers) and all(
        office.of_kind(kind) for kind in ("comps", "comps_method", "fx_rates")
    )


def _closing(rates: Rates) -> Rates:
    return {code: (close, close) for code, (_, close) in rates.items()}


def _unconverted(rates: Rates) -> Rates:
    return dict.fromkeys(rates, (1.0, 1.0))


def _misread(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """With the column in millions taken for thousands, like the others."""
    return [{**row, "market_cap": round(row["market_cap"] / 1000, 6)} for row in rows]


def _traps(peers: Sequence[Peer], currency: str, sites: set[str]) -> tuple[str, ...]:
    """Those of T3 and T5 that were planted in one of these peers."""
    planted = [peer for peer in peers if f"peer:{peer['id']}" in sites]
    found = ["T3"] if any(peer["currency"] != currency for peer in planted) else []
    return tuple(found + (["T5"] if any(peer["fiscal_year_end"] != 12 for peer in planted) else []))


def _wrong(peers: Sequence[Peer], rates: Rates, answer: Answer, traps: tuple[str, ...]) -> tuple[Wrong, ...]:
    rows = answer["peers"]
    prior = [peer_row(peer, rates, by_year="prior") for peer in peers]
    flipped = [peer_row({**peer, "fiscal_year_end": 12 - peer["fiscal_year_end"]}, rates) for peer in peers]
    versions = {
        "T3:closing rate for income": ([peer_row(peer, _closing(rates)) for peer in peers], "T3", "every cell"),
        "T3:not converted": ([peer_row(peer, _unconverted(rates)) for peer in peers], "", "rates"),
        "T4:millions for thousands": (_misread(rows) if "T4" in traps else rows, "T4", "hard cells"),
        "T5:fiscal year as it stands": (prior, "T5", "calendarised"),
        "stale-version": ([peer_row(peer, rates, by_year="last") for peer in peers], "", "every cell"),
        "weights exchanged": (flipped, "", "calendarised"),
        "swapped-entity": (
            [{**row, "company": rows[n - 1]["company"]} for n, row in enumerate(rows)],
            "",
            "every cell",
        ),
        "net cash for net debt": ([{**row, "net_debt": -row["net_debt"]} for row in rows], "", "range"),
        "whole units": ([{**row, **{name: row[name] * MILLION for name in FIGURES}} for row in rows], "", "every cell"),
    }
    return tuple(
        Wrong(name, {"peers": made}, fails, trap if trap in traps else "")
        for name, (made, trap, fails) in versions.items()
        if made != rows
    )


def multiples(rows: Sequence[Mapping[str, Any]]) -> list[tuple[float, float, float]]:
    """Enterprise value, and its multiples of revenue and EBITDA."""
    worth = [row["net_debt"] + row["market_cap"] for row in rows]
    return [(ev, ev / row["revenue"], ev / row["ebitda"]) for ev, row in zip(worth, rows, strict=True)]


def _checks(rows: list[dict[str, Any]], places: list[tuple[int, int]]) -> tuple[Check, ...]:
    names = ("Revenue", "EBITDA", "Net debt", "Market cap", "EV", "EV/Revenue", "EV/EBITDA")
    columns: list[dict[str, Any]] = [{"name": "Company"}, *({"name": name, "tol": TOL} for name in names)]
    cells = [
        [row["company"], *(row[name] for name in FIGURES), *multiple]
        for row, multiple in zip(rows, multiples(rows), strict=True)
    ]
    last = len(rows) + 2
    middle = [median(values) for values in list(zip(*multiples(rows), strict=True))[1:]]
    other = [{**row, "revenue": 40.0 + 3 * n, "ebitda": 9.0 - 0.4 * n} for n, row in enumerate(rows)]
    inputs: dict[str, float] = {}
    for number, row in enumerate(other, start=2):
        inputs |= {f"{SHEET}!B{number}": row["revenue"], f"{SHEET}!C{number}": row["ebitda"]}
    moved = [median(values) for values in list(zip(*multiples(other), strict=True))[1:]]
    expect = {f"{SHEET}!G{last}": moved[0], f"{SHEET}!H{last}": moved[1], f"{SHEET}!G2": multiples(other)[0][1],
              f"{SHEET}!G{last + 1}": min(one[1] for one in multiples(other))}  # fmt: skip
    return (
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("no errors", "xlsx.no_errors", {"file": FILE}, kind="gate", no_op="pass"),
        *matrix_checks(FILE, columns, cells, places, key=["Company"], sheet=SHEET, trap_ids=("T3", "T4", "T5")),
        *_step_checks(rows),
        Check("medians", "xlsx.cells", {"file": FILE, "tol": TOL, "cells": {
            f"{SHEET}!G{last}": middle[0], f"{SHEET}!H{last}": middle[1],
        }}, weight=0.05, trap_ids=("T3", "T4", "T5")),
        Check("range", "xlsx.cells", {"file": FILE, "tol": TOL, "cells": {
            f"{SHEET}!{letter}{last + below}": extreme(one[column] for one in multiples(rows))
            for column, letter in ((1, "G"), (2, "H")) for below, extreme in ((1, min), (2, max))
        }}, weight=0.03, stage="intermediate", trap_ids=("T4",)),
        Check("follows", "xlsx.follows", {"file": FILE, "trials": [{"set": inputs, "expect": expect}], "tol": TOL},
              weight=0.05),
    )  # fmt: skip


def _step_checks(rows: list[dict[str, Any]]) -> tuple[Check, ...]:
    """What a reviewer goes over before the table: the rates that were taken, and calendar years in own currency."""
    columns = [{"name": "Company"}, *({"name": name, "tol": TOL} for name in STEPS.values())]
    lines = [[row["company"], *(row[key] for key in STEPS)] for row in rows]
    steps = {"file": FILE, "sheet": LOCAL, "columns": columns, "key": ["Company"], "rows": lines}
    return (
        Check("rates", "table", {**steps, "only": [STEPS[key] for key in ("currency", "average", "closing")]},
              weight=0.05, stage="intermediate", trap_ids=("T3",)),
        Check("calendarised", "table", {**steps, "only": [STEPS["weight"], "Revenue", "EBITDA"]}, weight=0.05,
              stage="intermediate", trap_ids=("T5",)),
    )  # fmt: skip


def layout(answer: Answer, form: str = "plain") -> list[dict[str, Any]]:
    """The table, whose multiples, medians and ranges are formulas unless numbers are typed, and the steps to it."""
    rows: list[list[Any]] = []
    peers = answer["peers"]
    for number, row in enumerate(peers, start=2):
        lines: list[Any] = [f"=D{number}+E{number}", f"=F{number}/B{number}", f"=F{number}/C{number}"]
        if form == "typed":
            lines = list(multiples([row])[0])
        rows.append([row.get("company"), *(row.get(name) for name in FIGURES), *lines])
    middle: list[Any] = [f"=MEDIAN({letter}2:{letter}{len(peers) + 1})" for letter in "GH"]
    if form == "typed":
        middle = [median(values) for values in list(zip(*multiples(peers), strict=True))[1:]]
    rows.append(["Median", None, None, None, None, None, *middle])
    for word in ("Min", "Max"):
        ends: list[Any] = [f"={word.upper()}({letter}2:{letter}{len(peers) + 1})" for letter in "GH"]
        if form == "typed":
            extreme = {"Min": min, "Max": max}[word]
            ends = [extreme(values) for values in list(zip(*multiples(peers), strict=True))[1:]]
        rows.append([word, None, None, None, None, None, *ends])
    steps = [[row.get("company"), *(row.get(key) for key in STEPS)] for row in peers]
    return [
        sheet(SHEET, ["Company", "Revenue", "EBITDA", "Net debt", "Market cap", "EV", "EV/Revenue", "EV/EBITDA"], rows),
        sheet(LOCAL, ["Company", *STEPS.values()], steps),
    ]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    setting = office.setting
    opener = rng.choice((
        f"The valuation of {setting.company} needs its table of trading multiples.",
        f"Please put together the comparable companies for the {setting.company} valuation.",
        f"We price {setting.company} against listed peers, and the table is still missing.",
    ))  # fmt: skip
    last = len(ask["names"]) + 2
    return f"""{opener}

Take these peers, in this order: {"; ".join(ask["names"])}. Their data and a note on the method are in deals, exchange
rates in finance; the books are closed to {setting.label(setting.months[-1])}. Follow the note: calendar year
{ask["year"]}, everything in {ask["currency"]}.

Save `artifacts/{FILE}` with a sheet `{SHEET}`, headers in row 1, one row per peer from row 2, amounts in millions of
{ask["currency"]} and not rounded. Columns A to H: `Company`, `Revenue`, `EBITDA`, `Net debt`, `Market cap`, `EV`,
`EV/Revenue`, `EV/EBITDA`; the last three are formulas of the others. Row {last} is `Median`, with the medians of both
multiples in columns G and H, as formulas; row {last + 1} is `Min`, row {last + 2} is `Max`, likewise.

A second sheet `{LOCAL}` has the same peers in the same rows, with the steps to that table, in columns A to G:
`Company`; `Currency` (its code); `Weight` (of fiscal year {ask["year"]}, such as 0.25); `Average rate` and
`Closing rate` ({ask["currency"]} for one unit of the peer's currency, not rounded; 1 for {ask["currency"]} itself);
`Revenue` and `EBITDA` (of the calendar year, in millions of the peer's own currency, not rounded).
"""
