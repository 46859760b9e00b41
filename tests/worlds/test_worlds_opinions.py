"""A right answer on which two calculation engines differ is not published, and the finding names cell and values."""

from __future__ import annotations

from journeyman.worlds.drafting import sheet, xlsx_bytes
from journeyman.worlds.gates.opinions import engine_findings

DISPUTED = '=DATEDIF(1,400,"YD")'
"""Days beyond whole years: 33 to one engine, 34 to the other."""


def workbook(formula: str) -> bytes:
    return xlsx_bytes([sheet("Result", ["sum", "input"], [[formula, 1], [None, 2], [None, 3]])])


def test_engines_that_agree_find_nothing_and_text_is_not_computed():
    assert list(engine_findings({"a.xlsx": workbook("=SUM(B2:B4)*1.1"), "b.json": b"{}"})) == []


def test_a_disputed_cell_is_named_with_both_values_each_time_it_is_asked():
    golden = {"result.xlsx": workbook(DISPUTED)}
    first, again = list(engine_findings(golden)), list(engine_findings(golden))
    assert len(first) == 1
    assert first == again
    assert first[0].startswith("result.xlsx Result!A2: the engines disagree on =")
    assert first[0].endswith("33.0 and 34.0")


def test_a_formula_that_no_engine_knows_is_no_golden():
    found = list(engine_findings({"result.xlsx": workbook("=NOSUCHFUNCTION(B2)")}))
    assert found == ["result.xlsx Result!A2: no engine knows NOSUCHFUNCTION"]


def test_a_workbook_that_cannot_be_computed_is_said_so():
    assert "cannot be recalculated" in "".join(engine_findings({"result.xlsx": b"PK damaged"}))
