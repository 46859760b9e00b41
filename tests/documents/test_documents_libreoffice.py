"""LibreOffice as a third engine, where it is installed: it computes what is stored stale, and agrees with the first."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

import pytest

from journeyman.documents.xlsx.engines import engine, office

CLOCK = datetime(2026, 1, 1, tzinfo=UTC)


def has_program() -> bool:
    try:
        return bool(office.program())
    except ValueError:
        return False


pytestmark = pytest.mark.skipif(not has_program(), reason="LibreOffice (soffice) is not installed")


def book() -> bytes:
    """Formulas whose stored values are all wrong."""
    import xlsxwriter

    made = io.BytesIO()
    with xlsxwriter.Workbook(made, {"in_memory": True}) as workbook:
        sheet = workbook.add_worksheet("Data")
        sheet.write_column("A1", [2, 3, 5, 7])
        for row, formula in enumerate(("=A1*3", "=SUM(A1:A4)", '=SUMIFS(A1:A4,A1:A4,">2")', "=B2/B1")):
            sheet.write_formula(row, 1, formula, value=-99)
    return made.getvalue()


def test_stored_values_are_computed_anew_and_equal_those_of_the_first_engine() -> None:
    cells = [("Data", row, 2) for row in range(1, 5)]
    found = office.evaluate(book(), cells, CLOCK, 1900)
    assert [round(float(found[cell][1]), 9) for cell in cells] == [6.0, 17.0, 15.0, round(17 / 6, 9)]
    first = engine("formualizer").evaluate(book(), cells, CLOCK, 1900)
    assert {cell: kind for cell, (kind, _) in first.items()} == {cell: kind for cell, (kind, _) in found.items()}
    assert [float(first[cell][1]) for cell in cells] == pytest.approx([float(found[cell][1]) for cell in cells])


def test_what_is_no_workbook_is_refused_and_nothing_stays_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with pytest.raises(ValueError, match="LibreOffice"):
        office.resave(b"PK\x03\x04 nothing", limit_s=8)
    assert list(tmp_path.iterdir()) == []
