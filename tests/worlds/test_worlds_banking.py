"""Arithmetic of the banking templates, against figures worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from verifier_here import graded, office

from journeyman.seeds import stream
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.template import Lost
from journeyman.worlds.templates.banking.ib1_ltm import IB1, _figures, _year_of
from journeyman.worlds.templates.banking.ib2_peers import IB2, _in_units, peer_row
from journeyman.worlds.templates.banking.ib4_equity import bridged, read_debts
from journeyman.worlds.templates.banking.ib5_bids import read_letter
from journeyman.worlds.templates.banking.proceeds import split
from journeyman.worlds.templates.banking.sheets import records


def holding(share_class: str, shares: int, **rights: Any) -> dict[str, Any]:
    none = dict.fromkeys(("strike", "preference", "participating", "seniority"))
    return {"holder": share_class, "share_class": share_class, "shares": shares, **none, **rights}


CAPITAL = [
    holding("Common", 600),
    holding("Series A", 200, preference=1000, participating=0, seniority=1),
    holding("Series B", 200, preference=2000, participating=1, seniority=2),
    holding("Option", 100, strike=4),
]


def test_below_the_preferences_the_senior_class_is_paid_first() -> None:
    made = split(CAPITAL, 2400)
    assert made.payouts == (0.0, 400.0, 2000.0, 0.0)
    assert made.converts == ()


def test_a_class_converts_where_that_gives_it_more_and_options_pay_their_strike() -> None:
    made = split(CAPITAL, 12_000)
    per_share = (12_000 - 2000 + 100 * 4) / 1100
    assert made.converts == ("Series A",)
    assert made.per_share == pytest.approx(per_share)
    assert made.payouts == pytest.approx(
        (600 * per_share, 200 * per_share, 2000 + 200 * per_share, 100 * (per_share - 4))
    )
    assert sum(made.payouts) == pytest.approx(12_000)
    assert (made.preferences, made.strikes, made.shares) == (2000, 400, 1100)


def test_options_dilute_by_what_their_proceeds_do_not_buy_back() -> None:
    debts = {"term_loan": 500, "revolver": 100, "leases": 50, "cash": 150}
    found = bridged(debts, CAPITAL, 8.0)
    assert found["diluted"] == 600 + 400 + 100 - 400 / 8
    assert found["enterprise_value"] == found["diluted"] * 8 + 500
    assert bridged(debts, CAPITAL, 3.0)["options"] == 0


def test_a_footnote_on_drawn_debt_replaces_the_table() -> None:
    table = '  ["Term loan", "1,000"]\n  ["Revolving facility", "900 (1)"]\n  ["Lease liabilities", "30"]\n'
    text = f'{table}  ["Cash at bank", "200"]\n'
    assert read_debts(text)["revolver"] == 900
    note = "(1) Total commitment. Drawn at the reporting date: EUR 400. Only drawn amounts are debt."
    assert read_debts(text + note) == {"term_loan": 1000, "revolver": 400, "leases": 30, "cash": 200}


def test_income_is_weighted_by_the_fiscal_year_end_and_balances_take_the_closing_rate() -> None:
    peer = {
        "name": "Peer plc", "currency": "GBP", "fiscal_year_end": 3, "revenue_prior": 40_000_000,
        "revenue": 80_000_000, "ebitda_prior": 4_000_000, "ebitda": 8_000_000, "net_debt": 10_000_000,
        "market_cap": 50_000_000,
    }  # fmt: skip
    row = peer_row(peer, {"GBP": (1.2, 1.1)})
    assert row["revenue"] == pytest.approx((0.25 * 40 + 0.75 * 80) * 1.2)
    assert row["net_debt"] == pytest.approx(11.0)


def test_a_draft_is_no_offer_and_a_letter_without_a_price_is_an_error() -> None:
    letter = (
        "To the bank\n1 Price\nWe pay EUR 27.000.000 for all shares.\n2 Financing\nnone\nWe do not ask for exclusivity."
    )
    signed = "\nSigned for Harbour Capital: authorised signatory"
    assert read_letter(letter + signed, ["exclusivity_days"]) == {
        "bidder": "Harbour Capital",
        "price": 27_000_000,
        "exclusivity_days": 0,
    }
    assert read_letter("DRAFT, not signed, for discussion only. " + letter + signed, []) is None
    with pytest.raises(Lost, match="no offer"):
        read_letter(letter, [])


def test_records_end_at_the_first_gap() -> None:
    rows = {3: ["No", "Amount"], 4: ["A", 1], 5: ["B", 2], 7: ["Note", None]}
    assert [row["No"] for row in records(rows, "No")] == ["A", "B"]
    with pytest.raises(Lost, match="no column Item"):
        records(rows, "Item")


def answered(reader: Any, *texts: str) -> Any:
    """What a reader makes of these answers of its tools."""
    next(reader)
    try:
        for text in texts:
            reader.send(text)
    except StopIteration as done:
        return done.value
    raise AssertionError("it wants to read more")


REPORT = """["In EUR thousand", "H1 FY2025", "H1 FY2024"]
["EBITDA before exceptional items", "1.250", "1.180 (1)"]
"""
FOUND = "Found 1\n/finance/reports/interim_report_h1_fy2025.pdf\n"


def test_a_note_below_the_table_replaces_a_misprint_of_its_period_only() -> None:
    note = "p2@70,300 (1) Misprint: EBITDA before exceptional items of H1 FY2024 is 1.118; the other lines are right."
    places, items = ((2025, 1),), ["ebitda"]
    assert answered(_figures("interim", "H1 FY2024", places, items), FOUND, REPORT) == {"ebitda": 1180.0}
    assert answered(_figures("interim", "H1 FY2024", places, items), FOUND, REPORT + note) == {"ebitda": 1118.0}
    assert answered(_figures("interim", "H1 FY2025", ((2025, 0),), items), FOUND, REPORT + note) == {"ebitda": 1250.0}


def test_the_fiscal_year_of_a_bridge_follows_from_what_a_report_covers() -> None:
    covers = "This report covers the six months that ended on September 30, 2024, the first half of FY2025."
    assert answered(_year_of("2024-09-30"), FOUND, covers) == 2024
    with pytest.raises(Lost, match="2025-09-30"):
        answered(_year_of("2025-09-30"), FOUND, covers)


def test_a_calendar_year_in_the_bridge_fails_wherever_the_fiscal_year_counts() -> None:
    template, world = IB1(), office()
    bound = template.bind(world, stream(3, "IB1"), Knobs())
    assert world.trap("T5", "ltm:")
    wrong = next(one for one in bound.wrong if one.trap == "T5")
    found = graded(bound.checks, template.write(bound, wrong.answer, world.files))
    scores = {check["id"]: check["score"] for check in found["checks"]}
    assert scores["hard cells"] == scores["halves"] == scores["restatement"] == 0.0
    assert found["reward"] < 0.3


def test_a_column_counts_in_what_its_head_says_and_the_others_in_what_the_title_says() -> None:
    head = ["Company", "Fiscal year end", "Net debt", "Market capitalisation, million"]
    rows = {1: ["Peer group, thousands of each currency"], 3: head, 4: ["Peer plc", "June", 41_280, 183.25]}
    line = _in_units(rows)["Peer plc"]
    assert (line["Net debt"], line["Market capitalisation"]) == (41_280_000, 183_250_000)
    plain = {1: ["Peer group, whole units of each currency"], 3: ["Company", "Net debt"], 4: ["Peer plc", 41_280_000]}
    assert _in_units(plain)["Peer plc"]["Net debt"] == 41_280_000


def test_millions_among_thousands_are_planted_and_whoever_misses_them_fails() -> None:
    template, world = IB2(), office()
    bound = template.bind(world, stream(3, "IB2"), Knobs())
    planted = world.trap("T4", "comps:")
    assert planted is not None
    assert {place.rpartition("!")[2][0] for _, place in planted.locators} == {"A", "I"}
    wrong = next(one for one in bound.wrong if one.trap == "T4")
    found = graded(bound.checks, template.write(bound, wrong.answer, world.files))
    scores = {check["id"]: check["score"] for check in found["checks"]}
    assert scores["hard cells"] == scores["range"] == scores["medians"] == 0.0
    assert scores["rates"] == scores["calendarised"] == 1.0
    assert found["reward"] < 0.3
