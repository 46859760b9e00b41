"""Dates as people and spreadsheets write them."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from journeyman.documents.amounts import NotADate, from_serial, parse_date, to_serial


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-04-03", "2026-04-03"),
        ("2026/4/3", "2026-04-03"),
        ("20260403", "2026-04-03"),
        ("3.4.2026", "2026-04-03"),
        ("3. April 2026", "2026-04-03"),
        ("Friday, 3 April 2026", "2026-04-03"),
        ("April 3rd, 2026", "2026-04-03"),
        ("3rd of April 2026", "2026-04-03"),
        ("3-Apr-26", "2026-04-03"),
        ("1er mars 2026", "2026-03-01"),
        ("3. März 2026", "2026-03-03"),
        ("31/12/99", "1999-12-31"),
        ("12/31/2026", "2026-12-31"),
        ("April 2026", "2026-04"),
        ("2026-04", "2026-04"),
        ("Q3 2026", "2026-07"),
        ("2026", "2026"),
        ("2026-04-03T10:00:00Z", "2026-04-03T10:00:00+00:00"),
        ("2026-04-03 10:00 Europe/Berlin", "2026-04-03T10:00:00+02:00"),
        ("3 Apr 2026 10:00 CET", "2026-04-03T10:00:00+01:00"),
        ("Mon, 2 Mar 2026 10:00:00 +0530", "2026-03-02T10:00:00+05:30"),
        ("13/04/2026 2:05 pm", "2026-04-13T14:05:00"),
        ("13/04/2026 12:05 a.m.", "2026-04-13T00:05:00"),
    ],
)
def test_a_date_is_no_more_exact_than_it_was_written(text: str, value: str):
    moment = parse_date(text)
    assert (moment.as_json()["value"], moment.alternatives) == (value, ())


def test_an_order_that_is_not_certain_keeps_both_readings():
    moment = parse_date("03/04/2026")
    assert (moment.date, moment.alternatives[0].date) == (date(2026, 4, 3), date(2026, 3, 4))
    assert parse_date("03/04/2026", "en-US").date == date(2026, 3, 4)
    assert parse_date("03/04/2026", "en-US").alternatives == ()
    assert parse_date("04/04/2026").alternatives == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tomorrow",
        "2026-02-30",
        "31/31/2026",
        "10:00",
        "3 Smarch 2026",
        "1.2.3",
        "2026-04-03 25:00",
        "April 2026 10:00",
    ],
)
def test_what_is_no_date_is_refused(text: str):
    with pytest.raises(NotADate):
        parse_date(text)


def test_a_zone_that_names_several_is_refused_by_name():
    with pytest.raises(NotADate, match="IST"):
        parse_date("2026-04-03 10:00 IST")


def test_serial_numbers_know_their_epoch_and_the_day_that_never_was():
    assert from_serial(46115) == datetime(2026, 4, 3)
    assert from_serial(46115 - 1462, 1904) == datetime(2026, 4, 3)
    assert from_serial(46115.25) == datetime(2026, 4, 3, 6)
    assert (from_serial(59), from_serial(61)) == (datetime(1900, 2, 28), datetime(1900, 3, 1))
    assert to_serial(date(1900, 3, 1)) == 61
    for number in (60, -1, 10**9, float("nan")):
        with pytest.raises(NotADate):
            from_serial(number)
    with pytest.raises(NotADate):
        to_serial(date(1903, 12, 31), 1904)
