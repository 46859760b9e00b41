"""Amounts as people write them: a table of real cases, and what equals what."""

from __future__ import annotations

from decimal import Decimal

import pytest

from journeyman.documents.amounts import NotAnAmount, compare, parse, parse_range

CASES = [
    ("1,200,000 USD", "1200000", "", "USD", "1"),
    ("$1.2m", "1200000", "", "USD", "100000"),
    ("1.2 (USD millions)", "1200000", "", "USD", "100000"),
    ("US$1.2bn", "1200000000", "", "USD", "100000000"),
    ("USDm 4.5", "4500000", "", "USD", "100000"),
    ("1.5MM", "1500000", "", "", "100000"),
    ("TEUR 12", "12000", "", "EUR", "1000"),
    ("3 k€", "3000", "", "EUR", "1000"),
    ("1,5 Mrd. EUR", "1500000000", "", "EUR", "100000000"),
    ("Mio. € 1,5", "1500000", "", "EUR", "100000"),
    ("1.234,56 €", "1234.56", "", "EUR", "0.01"),
    ("1 234,56", "1234.56", "", "", "0.01"),
    ("1\u202f234,56 €", "1234.56", "", "EUR", "0.01"),
    ("CHF 1’234.56", "1234.56", "", "CHF", "0.01"),
    ("CHF 5.-", "5", "", "CHF", "1"),
    ("1,23,456.78", "123456.78", "", "", "0.01"),
    ("₹12 lakh", "1200000", "", "INR", "100000"),
    ("Rs. 3 crore", "30000000", "", "INR", "10000000"),
    ("R$ 1.234,00", "1234", "", "BRL", "0.01"),
    ("(1,200)", "-1200", "", "", "1"),
    ("$(1,200)", "-1200", "", "USD", "1"),
    ("(5.0)%", "-0.05", "%", "", "0.001"),
    ("1,200-", "-1200", "", "", "1"),
    ("−5", "-5", "", "", "1"),
    ("-$5", "-5", "", "USD", "1"),
    ("$-5", "-5", "", "USD", "1"),
    ("minus 4 per cent", "-0.04", "%", "", "0.01"),
    ("+3.2%", "0.032", "%", "", "0.001"),
    ("12,5 Prozent", "0.125", "%", "", "0.001"),
    ("25 bps", "0.0025", "%", "", "0.0001"),
    ("3 percentage points", "0.03", "pp", "", "0.01"),
    ("2.5x", "2.5", "x", "", "0.1"),
    ("3 times", "3", "x", "", "1"),
    ("1.2E+3", "1200", "", "", "100"),
    ("120 employees", "120", "employees", "", "1"),
    ("9.81 m/s²", "9.81", "m/s²", "", "0.01"),
    ("$1.2 million per year", "1200000", "per year", "USD", "100000"),
    ("approx. 5 kg", "5", "kg", "", "1"),
]


@pytest.mark.parametrize(("text", "value", "unit", "currency", "precision"), CASES)
def test_an_amount_is_read_with_all_that_belongs_to_it(text, value, unit, currency, precision):
    amount = parse(text)
    assert (amount.value, amount.unit, amount.currency) == (Decimal(value), unit, currency)
    assert amount.precision == Decimal(precision)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "n/a",
        "USD",
        "1,2,3",
        "1.2.3",
        "5 6",
        "Revenue 5",
        "1,23,45",
        "12 of 15",
        "nan",
        "1e999",
        "-",
        "9" * 200,
    ],
)
def test_what_is_no_amount_is_refused(text: str):
    with pytest.raises(NotAnAmount):
        parse(text)


def test_a_text_with_two_readings_keeps_both():
    assert [one.value for one in parse("1,234").alternatives] == [Decimal("1.234")]
    assert (parse("1.234").value, parse("1.234").alternatives[0].value) == (Decimal("1.234"), Decimal(1234))
    assert [(one.value, one.unit) for one in parse("5 m").alternatives] == [(Decimal(5), "m")]
    assert [one.currency for one in (parse("kr 5"), *parse("kr 5").alternatives)] == ["SEK", "NOK", "DKK"]


def test_a_locale_decides():
    assert parse("1.234", "de-DE").value == 1234
    assert parse("1,234", "de").value == Decimal("1.234")
    assert parse("1,234", "en-US").alternatives == ()
    assert (parse("$5", "en-AU").currency, parse("kr 5", "nb-NO").currency) == ("AUD", "NOK")
    assert parse("1,234.5", "de-DE").value == Decimal("1234.5")
    with pytest.raises(KeyError, match="de-DE"):
        parse("1", "xx-XX")


def test_the_surroundings_give_scale_and_currency_where_the_amount_has_none():
    assert parse("1,200", scale=1000, currency="EUR").value == 1_200_000
    assert parse("1,200", scale=1000, currency="EUR").currency == "EUR"
    assert parse("5%", scale=1000, currency="EUR") == parse("5%")
    assert parse("$2m", scale=1000).value == 2_000_000


@pytest.mark.parametrize(
    ("first", "second", "is_equal"),
    [
        ("$1.2m", "1,234,567 USD", True),
        ("$1.2m", "1,250,000 USD", True),
        ("$1.2m", "1,250,001 USD", False),
        ("1.2 (USD millions)", "$1,200,000", True),
        ("5%", "500 bps", True),
        ("5%", "0.05", True),
        ("5%", "5", False),
        ("5%", "5 pp", False),
        ("$5", "€5", False),
        ("(1,200)", "-1200", True),
        ("(1,200)", "1200", False),
        ("0", "", False),
        ("", "", False),
        ("n/a", "n/a", False),
        ("2.5x", "2.46", True),
        ("12 kg", "12 m/s", False),
    ],
)
def test_amounts_are_compared_by_what_they_claim(first: str, second: str, is_equal: bool):
    outcome = compare(first, second)
    assert outcome.is_equal == is_equal
    assert bool(outcome.reason) != is_equal
    assert compare(second, first).is_equal == is_equal


def test_a_coarse_answer_is_kept_from_matching_a_fine_truth():
    assert compare("$1bn", "1,400,000,000 USD").is_equal
    assert not compare("$1bn", "1,400,000,000 USD", precision="second").is_equal
    assert compare("1.0", "1.04", precision="none", rel_tol=Decimal("0.05")).is_equal
    assert not compare("5", "$5", is_strict=True).is_equal
    assert compare(None, "5").reason
    assert "read as 1.234" in compare("1,234", "1.234 kg").reason


@pytest.mark.parametrize(
    ("text", "low", "high", "currency", "unit"),
    [
        ("10-12%", "0.10", "0.12", "", "%"),
        ("$1.2m to $1.5m", "1200000", "1500000", "USD", ""),
        ("between 5 and 7 bn", "5000000000", "7000000000", "", ""),
        ("€10–12m", "10000000", "12000000", "EUR", ""),
        ("1.2x – 1.5x", "1.2", "1.5", "", "x"),
    ],
)
def test_a_range_shares_what_is_written_once(text, low, high, currency, unit):
    found = parse_range(text)
    assert (found.low.value, found.high.value) == (Decimal(low), Decimal(high))
    assert {found.low.currency, found.high.currency, found.low.unit} == {currency, unit}


def test_a_range_holds_what_rounds_into_it():
    found = parse_range("10-12%")
    assert found.holds(parse("9.5%"))
    assert not found.holds(parse("12.6%"))
    assert not found.holds(parse("11 kg"))
    with pytest.raises(NotAnAmount):
        parse_range("12-10%")
    with pytest.raises(NotAnAmount):
        parse_range("$5 to €6")
