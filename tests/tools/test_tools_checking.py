"""Arguments that do not fit are answered with what would."""

from __future__ import annotations

from typing import Any

import pytest

from journeyman.tools.checking import fitted
from journeyman.tools.surface import SURFACE

READ_TAB = SURFACE["spreadsheets_read_tab"].schema
EDIT = SURFACE["spreadsheets_edit_spreadsheet"].schema


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "file_path is missing"),
        ({"file_path": "a", "tabindex": 1}, "tabindex does not exist; did you mean tab_index?"),
        ({"file_path": 7}, "file_path must be string, got integer 7"),
        ({"file_path": "a", "tab_index": "1"}, "tab_index must be integer, got string '1'; without quotation marks"),
        ({"file_path": "a", "tab_index": True}, "tab_index must be integer, got boolean True"),
        ({"file_path": "a", "max_rows": 0}, "max_rows is 0, at least 1 is allowed"),
        ({"file_path": "a", "max_rows": 1e9}, "max_rows is 1000000000, at most 20000 is allowed"),
        (["file_path"], "the arguments must be an object, got array"),
    ],
)
def test_a_bad_argument_is_said_in_words(arguments: Any, words: str) -> None:
    assert words in "; ".join(fitted(arguments, READ_TAB)[1])


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ({"type": "set_cel"}, "operations[0].type is 'set_cel'; did you mean set_cell?"),
        ({"type": "set_cell", "cell": "A1"}, "operations[0].value is missing"),
        ({"type": "merge_cells", "sheet": "S", "rang": "A1"}, "operations[0].rang does not exist; did you mean range?"),
        ({"type": "append_rows", "sheet": "S", "rows": "[[1]]"}, "give the JSON value itself"),
    ],
)
def test_a_nested_value_is_checked_by_its_type(operation: dict[str, Any], words: str) -> None:
    assert words in "; ".join(fitted({"file_path": "a", "operations": [operation]}, EDIT)[1])


def test_nulls_of_optional_arguments_are_left_out_and_whole_floats_are_integers() -> None:
    assert fitted({"file_path": "a", "cell_range": None, "tab_index": 2.0}, READ_TAB) == (
        {"file_path": "a", "tab_index": 2},
        [],
    )


def test_a_null_is_a_value_where_cells_are_written() -> None:
    schema = SURFACE["spreadsheets_add_content_text"].schema
    arguments = {"file_path": "a", "tab_index": 0, "cell": "A1", "value": None}
    assert fitted(arguments, schema) == (arguments, [])


def test_an_allowed_value_that_is_near_is_named() -> None:
    schema = SURFACE["spreadsheets_create_chart"].schema
    arguments = {"file_path": "a", "sheet": "S", "data_range": "A1:B2", "chart_type": "pi"}
    assert "chart_type is 'pi'; allowed: bar, line, pie; did you mean pie?" in fitted(arguments, schema)[1]
