"""Recalculation: vectors computed independently, perturbations, and what each engine cannot do."""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO
from zipfile import ZipFile

import pytest
from openpyxl import Workbook, load_workbook
from reference_workbook import VECTORS, saved, workbook

from journeyman.documents.errors import EnginesDisagree, UnknownFormula
from journeyman.documents.xlsx import read, recalculate
from journeyman.documents.xlsx.caches import number_text
from journeyman.documents.xlsx.recalculation import agree


@pytest.fixture(scope="module")
def reference() -> bytes:
    return saved(workbook())


def values_of(data: bytes) -> dict[str, object]:
    document = read(data, "book.xlsx")
    return {node.address: node.attributes.get("value", node.text) for node in document.walk() if node.kind == "cell"}


def formulas(*texts: str) -> bytes:
    book = Workbook()
    for row, text in enumerate(texts, start=1):
        book.active.cell(row, 1).value = text
        book.active.cell(row, 3).value = row
    return saved(book)


@pytest.mark.parametrize("engine", ["formualizer", "ironcalc"])
def test_each_engine_gives_the_reference_values(reference, engine):
    done = recalculate(reference, "reference.xlsx", engine_name=engine, check=None)
    found = values_of(done.data)
    assert done.formulas == 1549
    assert len(done.changed) == 1549
    assert {address: found[address] for address in VECTORS} == pytest.approx(VECTORS, rel=1e-12)
    assert found["DCF!E15"] == "1597386.0"


def test_the_engines_agree_on_every_cell_of_the_reference_workbook(reference):
    done = recalculate(reference, "reference.xlsx", on_disagreement="raise")
    assert (done.disagreements, done.unknown, done.notes) == ((), (), ())


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"B10": 0.06}, {"B12": 798476.8772009129, "B13": 2364667.492840062, "B14": 1714863.2108619919}),
        ({"B10": 0.06, "B11": 0.10}, {"B12": 758141.7851410266, "B13": 2069084.0562350538, "B14": 1483343.1243656268}),
    ],
)
def test_changed_inputs_give_the_perturbed_values(inputs, expected):
    book = workbook()
    for cell, value in inputs.items():
        book["DCF"][cell] = value
    found = values_of(recalculate(saved(book), "reference.xlsx").data)
    assert {cell: found[f"DCF!{cell}"] for cell in expected} == pytest.approx(expected, rel=1e-12)


def test_recalculating_twice_changes_nothing_and_only_sheets_with_formulas_are_rewritten(reference):
    once = recalculate(reference, "reference.xlsx")
    twice = recalculate(once.data, "reference.xlsx")
    assert twice.changed == ()
    assert twice.data == once.data
    with ZipFile(BytesIO(reference)) as before, ZipFile(BytesIO(once.data)) as after:
        changed = {name for name in before.namelist() if before.read(name) != after.read(name)}
    assert changed == {f"xl/worksheets/sheet{n}.xml" for n in (1, 2, 3)}


def test_caches_are_read_back_by_another_library(reference):
    done = recalculate(reference, "reference.xlsx")
    book = load_workbook(BytesIO(done.data), data_only=True)
    assert book["DCF"]["B14"].value == pytest.approx(VECTORS["DCF!B14"], rel=1e-12)
    assert book["DCF"]["J15"].value == pytest.approx(VECTORS["DCF!J15"], rel=1e-12)


def test_errors_texts_booleans_and_dates_are_stored_as_spreadsheets_do():
    data = formulas("=10/0", "=NA()", '=""', "=TRUE", "=DATE(2025,1,2)", "=SQRT(-1)", "=nothing_of_this_name", "=C99")
    found = values_of(recalculate(data, "small.xlsx").data)
    stored = [found[f"Sheet!A{row}"] for row in range(1, 9)]
    assert stored == ["#DIV/0!", "#N/A", "", True, 45659.0, "#NUM!", "#NAME?", 0.0]


def test_a_function_that_no_engine_knows_names_the_cell_and_the_function():
    data = formulas("=1+1", "=FROBNICATE(C1)", "=A2+1")
    with pytest.raises(UnknownFormula, match=r"small.xlsx, Sheet!A2: .*FROBNICATE"):
        recalculate(data, "small.xlsx")


def test_kept_unknown_formulas_and_their_readers_keep_their_stored_values():
    done = recalculate(formulas("=1+1", "=FROBNICATE(C1)", "=A2+1"), "small.xlsx", on_unknown="keep")
    assert done.unknown == (("Sheet!A2", "FROBNICATE"),)
    assert [change.address for change in done.changed] == ["Sheet!A1"]


def test_a_function_that_only_the_second_engine_knows_still_counts_downstream():
    data = formulas("=LAMBDA(x,x+1)(3)", "=A1*2")
    alone = recalculate(data, "small.xlsx", check=None, on_unknown="keep")
    assert "Sheet!A1" in dict(alone.unknown)
    found = values_of(recalculate(data, "small.xlsx").data)
    assert (found["Sheet!A1"], found["Sheet!A2"]) == (4.0, 8.0)


def test_the_clock_is_pinned():
    data = formulas("=TODAY()", "=NOW()", "=A1+1")
    at = datetime(2026, 1, 2, 12, tzinfo=UTC)
    found = values_of(recalculate(data, "small.xlsx", clock=at, on_disagreement="raise").data)
    assert (found["Sheet!A1"], found["Sheet!A2"], found["Sheet!A3"]) == (46024.0, 46024.5, 46025.0)


def test_a_dispute_is_listed_or_raised():
    data = formulas("=FILTER(C1:C3,C1:C3>1)", "=1", "=2")
    done = recalculate(data, "small.xlsx")
    assert [one.address for one in done.disagreements] == ["Sheet!A1"]
    with pytest.raises(EnginesDisagree, match="Sheet!A1"):
        recalculate(data, "small.xlsx", on_disagreement="raise")


def test_agreement_has_a_tolerance_and_no_opinion_is_no_dispute():
    assert agree(("n", 1.0), ("n", 1.0 + 1e-9))
    assert not agree(("n", 1.0), ("n", 1.001))
    assert not agree(("n", 1.0), ("s", "1"))
    assert not agree(("e", "#N/A"), ("n", 0.0))
    assert agree(("?", "no function"), ("n", 0.0))


def test_a_workbook_without_formulas_comes_back_as_it_was():
    data = formulas("text")
    assert recalculate(data, "small.xlsx").data == data


def test_numbers_are_stored_as_the_shortest_text_that_reads_back():
    assert [number_text(value) for value in (1.0, 0.1, -2.5, 1e300)] == ["1", "0.1", "-2.5", "1e+300"]


def test_a_second_engine_that_does_not_end_is_no_opinion(monkeypatch, reference):
    from journeyman.documents.xlsx.engines import second

    monkeypatch.setattr(second, "LIMIT_S", 0.0001)
    done = recalculate(reference, "reference.xlsx")
    assert done.notes == ("ironcalc: no answer within 0.0001 s",)
    assert len(done.changed) == 1549
    monkeypatch.undo()
    assert recalculate(reference, "reference.xlsx").notes == ()


def test_a_second_engine_whose_process_died_is_started_again(reference):
    from journeyman.documents.xlsx.engines import second

    recalculate(reference, "reference.xlsx")
    second._WORKER._process.kill()
    second._WORKER._process.wait()
    assert recalculate(reference, "reference.xlsx").notes == ()
