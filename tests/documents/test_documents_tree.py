"""Finding one cell in a tree."""

from __future__ import annotations

import pytest

from journeyman.documents import NoSuchCell, NoSuchRow, cell
from journeyman.documents.tree import table

WIDE = table("sales", "lines 1-3", [["Client", "Q1", "Q2"], ["Acme", "1", "2"], ["Birch", "3"]])
PAIRS = table("entries", "body", [["name", "value"], ["Kim", "Acme"]])
TREE = {"format": "csv", "tables": [PAIRS, WIDE], "text": ""}


def test_a_cell_is_found_by_row_and_column() -> None:
    assert cell(TREE, "Acme", "Q2") == "2"
    assert cell(TREE, " Acme ", " Q1") == "1"


def test_a_column_may_be_left_out_where_there_is_only_one() -> None:
    assert cell(TREE, "Kim") == "Acme"


@pytest.mark.parametrize(("row", "col"), [("Acme", None), ("Acme", "Q3"), ("Kim", "Q1"), ("Birch", "Q2")])
def test_a_row_without_that_cell_is_told_from_a_missing_row(row: str, col: str | None) -> None:
    with pytest.raises(NoSuchCell):
        cell(TREE, row, col)


@pytest.mark.parametrize("row", ["", "acme", "Zephyr", "Client"])
def test_a_missing_row_is_named(row: str) -> None:
    with pytest.raises(NoSuchRow):
        cell(TREE, row, "Q1")


def test_a_row_in_two_tables_is_taken_where_the_column_is() -> None:
    other = table("costs", "lines", [["Client", "Q3"], ["Acme", "9"]])
    assert cell({"tables": [WIDE, other]}, "Acme", "Q3") == "9"
