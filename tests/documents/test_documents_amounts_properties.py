"""Properties of amounts and dates: what was written in a locale is read back, and nothing is rounded on the way."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from hypothesis import assume, given
from hypothesis import strategies as st

from journeyman.documents.amounts import (
    LOCALES,
    NotADate,
    NotAnAmount,
    compare,
    from_serial,
    parse,
    parse_date,
    to_serial,
    written,
)

TAGS = st.sampled_from(sorted(LOCALES))
VALUES = st.decimals(min_value=-(10**15), max_value=10**15, places=2, allow_nan=False, allow_infinity=False)


@given(VALUES, TAGS, st.integers(0, 6))
def test_a_number_written_in_any_locale_is_read_back(value: Decimal, tag: str, places: int):
    text = written(value, LOCALES[tag], places)
    amount = parse(text, tag)
    assert amount.value == value.quantize(Decimal(1).scaleb(-places))
    assert amount.precision == Decimal(1).scaleb(-places)


@given(VALUES, TAGS)
def test_without_a_locale_the_true_reading_is_among_those_that_are_kept(value: Decimal, tag: str):
    amount = parse(written(value, LOCALES[tag]))
    assert value in [one.value for one in (amount, *amount.alternatives)]


@given(VALUES, TAGS, st.sampled_from(["USD {}", "{} EUR", "£{}", "{} bn", "({})", "{} %", "{}x", "{} kg"]))
def test_what_stands_around_a_number_does_not_change_its_digits(value: Decimal, tag: str, around: str):
    value = abs(value)
    amount = parse(around.format(written(value, LOCALES[tag])), tag)
    bare = amount.value / amount.scale
    assert bare == (-value if "(" in around and value else value)


@given(VALUES, st.integers(0, 9))
def test_a_figure_matches_every_value_that_rounds_to_it_and_no_other(value: Decimal, cut: int):
    coarse = (value / 10**cut).quantize(Decimal(1))
    text = f"{coarse}e{cut}"
    assert compare(text, f"{value}").is_equal
    step = Decimal(10) ** cut
    assert not compare(text, f"{value + step * 2}", precision="first").is_equal


@given(st.text(max_size=30))
def test_any_text_is_an_amount_or_a_named_refusal(text: str):
    try:
        assert parse(text).value.is_finite()
    except NotAnAmount as error:
        assert error.why
    try:
        parse_date(text)
    except NotADate as error:
        assert error.why


@given(st.datetimes(datetime(1904, 1, 1), datetime(2400, 1, 1)), st.sampled_from([1900, 1904]))
def test_serial_numbers_lead_back_to_the_second(moment: datetime, epoch):
    moment = moment.replace(microsecond=0)
    assert from_serial(to_serial(moment, epoch), epoch) == moment
    gap = to_serial(moment, 1900) - to_serial(moment, 1904)
    assert round(gap, 9) == 1462  # a third of a day has no end of digits


@given(st.dates(datetime(1971, 1, 1).date(), datetime(2069, 12, 31).date()), TAGS)
def test_a_date_of_numbers_is_read_in_the_order_of_its_locale(day, tag: str):
    order = LOCALES[tag].order
    text = "/".join(f"{getattr(day, {'d': 'day', 'm': 'month', 'y': 'year'}[one]):02d}" for one in order)
    assert parse_date(text, tag).date == day
    readings = [one.date for one in (parse_date(text), *parse_date(text).alternatives)]
    assert day in readings


@given(st.datetimes(datetime(1971, 1, 1), datetime(2069, 12, 31)), st.integers(-14 * 4, 14 * 4))
def test_an_instant_with_an_offset_is_read_back(moment: datetime, quarters: int):
    from datetime import timezone

    aware = moment.replace(microsecond=0, tzinfo=timezone(timedelta(minutes=15 * quarters)))
    assert parse_date(aware.isoformat()).value == aware
    assume(quarters)
    assert parse_date(aware.isoformat()).zone
