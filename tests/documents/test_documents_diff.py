"""Semantic differences: each single edit is found exactly and alone, a resave differs in nothing, causes are named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import pytest
from openpyxl import Workbook, load_workbook
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.formatting.rule import CellIsRule
from openpyxl.styles import Font, PatternFill
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.datavalidation import DataValidation
from reference_workbook import saved, workbook

from journeyman.documents.diff import Diff, diff
from journeyman.documents.editing import changes_of
from journeyman.documents.xlsx import edit, read, recalculate

ITEMS = ("rent", "power", "water", "phone", "paper", "travel")


def budget() -> bytes:
    """Three sheets whose cells, rules, notes and chart depend on each other."""
    book = Workbook()
    costs = book.active
    costs.title = "Costs"
    costs.append(["item", "price", "count", "total"])
    for row, item in enumerate(ITEMS, start=2):
        costs.append([item, 10.5 * row, row, f"=B{row}*C{row}"])
    costs["A9"], costs["D9"] = "sum", "=SUM(D2:D7)"
    costs["D9"].font = Font(bold=True)
    costs.merge_cells("A11:C11")
    costs["A11"] = "all amounts in EUR"
    costs["B2"].comment = Comment("from the lease", "Ann")
    rule = DataValidation(type="whole", operator="greaterThan", formula1="0")
    rule.add("C2:C7")
    costs.add_data_validation(rule)
    costs.conditional_formatting.add("D2:D7", CellIsRule(operator="greaterThan", formula=["100"], font=Font(bold=True)))
    plan = book.create_sheet("Plan")
    plan.append(["rate", 0.1])
    plan.append(["next year", "=Costs!D9*(1+B1)"])
    plan.append(["half", "=half_of"])
    book.defined_names["half_of"] = DefinedName("half_of", attr_text="Plan!$B$2")
    chart = BarChart()
    chart.title = "Costs"
    chart.add_data(Reference(costs, min_col=4, min_row=1, max_row=7), titles_from_data=True)
    plan.add_chart(chart, "D5")
    notes = book.create_sheet("Notes")
    for row, text in enumerate(("first note", "second note", "third note", "fourth note"), start=1):
        notes.cell(row, 1).value = text
    return recalculate(saved(book), "budget.xlsx").data


@pytest.fixture(scope="module")
def base() -> bytes:
    return budget()


def by_openpyxl(change: Callable[[Any], None]) -> Callable[[bytes], bytes]:
    def apply(data: bytes) -> bytes:
        book = load_workbook(BytesIO(data))
        change(book)
        return saved(book)

    return apply


def by_edit(*changes: dict[str, Any]) -> Callable[[bytes], bytes]:
    return lambda data: edit(data, "budget.xlsx", changes_of(changes, "budget.xlsx")).data


def assign(sheet: str, cell: str, value: object) -> Callable[[bytes], bytes]:
    return by_openpyxl(lambda book: book[sheet].__setitem__(cell, value))


def bold_cells(book: Any) -> None:
    for row in book["Costs"]["A1:D1"]:
        for cell in row:
            cell.font = Font(bold=True)


def move_note(book: Any) -> None:
    sheet = book["Notes"]
    texts = [sheet.cell(row, 1).value for row in range(1, 5)]
    for row, text in enumerate([*texts[1:], texts[0]], start=1):
        sheet.cell(row, 1).value = text


def extend_chart(book: Any) -> None:
    series = book["Plan"]._charts[0].series[0]
    series.val.numRef.f = "'Costs'!$D$2:$D$6"


def fill(book: Any) -> None:
    book["Plan"]["B2"].fill = PatternFill("solid", fgColor="FFFF00")


def widen(book: Any) -> None:
    book["Costs"].column_dimensions["A"].width = 40


def unrule(book: Any) -> None:
    book["Costs"].data_validations.dataValidation.clear()


def rule(book: Any) -> None:
    book["Plan"].conditional_formatting.add("B1", CellIsRule(operator="lessThan", formula=["0"], font=Font(bold=True)))


SUMS = ("Costs!D9", "Plan!B2", "Plan!B3")

OPERATORS: dict[str, tuple[Callable[[bytes], bytes], list[tuple[str, str, str]], tuple[str, ...]]] = {
    "a typed number": (assign("Costs", "B3", 99), [("input", "cell", "Costs!B3")], ("Costs!D3", *SUMS)),
    "a typed text": (assign("Notes", "A2", "2nd note"), [("input", "cell", "Notes!A2")], ()),
    "a new cell": (assign("Costs", "F2", "checked"), [("input", "cell", "Costs!F2")], ()),
    "an emptied cell": (assign("Notes", "A4", None), [("input", "cell", "Notes!A4")], ()),
    "a formula": (assign("Plan", "B2", "=Costs!D9*(1+B1)^2"), [("formula", "cell", "Plan!B2")], ("Plan!B3",)),
    "a formula overwritten by its value": (assign("Costs", "D4", 168.0), [("formula", "cell", "Costs!D4")], ()),
    "a number format": (
        by_openpyxl(lambda book: setattr(book["Plan"]["B1"], "number_format", "0.0%")),
        [("style", "cell", "Plan!B1")],
        (),
    ),
    "a row of bold cells": (by_openpyxl(bold_cells), [("style", "cells", "Costs!A1:D1")], ()),
    "a fill": (by_openpyxl(fill), [("style", "cell", "Plan!B2")], ()),
    "a column width": (by_openpyxl(widen), [("style", "column width", "Costs!A:A")], ()),
    "a merge": (
        by_openpyxl(lambda book: book["Notes"].merge_cells("C1:D1")),
        [("structure", "merged cells added", "Notes!C1:D1")],
        (),
    ),
    "an inserted row": (
        by_edit({"op": "insert_rows", "address": "Costs!4:4"}, {"op": "set", "address": "Costs!B4", "value": 7}),
        [("structure", "row inserted", "Costs!4:4")],
        (),
    ),
    "a deleted row": (
        by_edit({"op": "delete_rows", "address": "Costs!5:5"}),
        [("structure", "row deleted", "Costs!5:5")],
        ("Costs!D8", "Plan!B2", "Plan!B3"),
    ),
    "an inserted column": (
        by_edit(
            {"op": "insert_columns", "address": "Costs!B:B"}, {"op": "set", "address": "Costs!B1", "value": "code"}
        ),
        [("structure", "column inserted", "Costs!B:B")],
        (),
    ),
    "a deleted column": (
        by_edit({"op": "delete_columns", "address": "Costs!A:A"}),
        [("structure", "column deleted", "Costs!A:A")],
        (),
    ),
    "a moved row": (by_openpyxl(move_note), [("structure", "row moved", "Notes!4:4")], ()),
    "a renamed sheet": (
        by_edit({"op": "rename_sheet", "address": "sheet:Costs", "name": "Cost base"}),
        [("structure", "sheet renamed", "sheet:Cost base")],
        (),
    ),
    "a moved sheet": (
        by_openpyxl(lambda book: book.move_sheet("Notes", -2)),
        [("structure", "sheet moved", "sheet:Notes")],
        (),
    ),
    "a new sheet": (
        by_edit({"op": "add_sheet", "address": "sheet:Extra"}),
        [("structure", "sheet added", "sheet:Extra")],
        (),
    ),
    "a removed sheet": (
        by_edit({"op": "delete_sheet", "address": "sheet:Notes"}),
        [("structure", "sheet removed", "sheet:Notes")],
        (),
    ),
    "a hidden sheet": (
        by_openpyxl(lambda book: setattr(book["Notes"], "sheet_state", "hidden")),
        [("structure", "sheet state", "sheet:Notes")],
        (),
    ),
    "a hidden row": (
        by_openpyxl(lambda book: setattr(book["Costs"].row_dimensions[5], "hidden", True)),
        [("structure", "row hidden", "Costs!5:5")],
        (),
    ),
    "a changed name": (
        by_openpyxl(lambda book: setattr(book.defined_names["half_of"], "attr_text", "Plan!$B$1")),
        [("structure", "name changed", "name:half_of")],
        ("Plan!B3",),
    ),
    "a comment": (
        by_openpyxl(lambda book: setattr(book["Costs"]["B2"], "comment", Comment("from the contract", "Ann"))),
        [("structure", "comment changed", "Costs!B2/comment")],
        (),
    ),
    "a dropped validation": (by_openpyxl(unrule), [("structure", "validation removed", "Costs!C2:C7/validation")], ()),
    "a conditional format": (by_openpyxl(rule), [("style", "conditional format added", "Plan!B1/format")], ()),
    "a chart that reads other cells": (by_openpyxl(extend_chart), [("structure", "chart changed", "Plan!chart:1")], ()),
    "a link": (
        by_openpyxl(lambda book: setattr(book["Notes"]["A1"], "hyperlink", "https://example.org/x")),
        [("structure", "link added", "Notes!A1/link")],
        (),
    ),
}


def written(found: Diff) -> list[tuple[str, str, str]]:
    return [(one.kind, one.what, one.address) for one in found.entries if one.kind != "downstream"]


@pytest.mark.parametrize("name", OPERATORS)
def test_a_single_edit_is_found_exactly_and_alone(base, name):
    apply, expected, follows = OPERATORS[name]
    found = diff(base, apply(base), "budget.xlsx", "budget.xlsx")
    assert written(found) == expected
    downstream = [one for one in found.entries if one.kind == "downstream"]
    assert sorted(one.address for one in downstream) == sorted(follows)
    assert {cause for one in downstream for cause in one.explained_by} <= {address for _, _, address in expected}
    assert all(one.explained_by for one in downstream)


@pytest.mark.parametrize("name", OPERATORS)
def test_the_opposite_comparison_mirrors_it(base, name):
    edited = OPERATORS[name][0](base)
    there = diff(base, edited, "budget.xlsx", "budget.xlsx")
    back = diff(edited, base, "budget.xlsx", "budget.xlsx")
    mirrored = [replace(one.mirrored(), explained_by=()) for one in there.entries]
    assert key_of(mirrored) == key_of([replace(one, explained_by=()) for one in back.entries])


def key_of(entries: list[Any]) -> list[tuple[str, str, str]]:
    return sorted((one.kind, repr(one.before), repr(one.after)) for one in entries)


def test_there_are_at_least_twenty_operators():
    assert len(OPERATORS) >= 20


def test_a_document_does_not_differ_from_itself(base):
    copy = rezipped(base)
    assert copy != base
    assert diff(base, base, "budget.xlsx", "budget.xlsx") == Diff()
    assert diff(base, copy, "budget.xlsx", "budget.xlsx") == Diff()


def rezipped(data: bytes) -> bytes:
    out = BytesIO()
    with ZipFile(BytesIO(data)) as old, ZipFile(out, "w", ZIP_STORED) as new:
        for name in reversed(old.namelist()):
            new.writestr(name, old.read(name))
    return out.getvalue()


def test_a_file_saved_by_another_library_differs_in_metadata_only(base):
    found = diff(base, saved(load_workbook(BytesIO(base))), "budget.xlsx", "budget.xlsx")
    assert found.entries == ()
    assert {one.kind for one in found.metadata} <= {"metadata"}


def test_what_a_resave_loses_is_no_metadata():
    import xlsxwriter

    out = BytesIO()
    book = xlsxwriter.Workbook(out, {"in_memory": True})
    book.add_worksheet().insert_textbox("B2", "read me")
    book.close()
    found = diff(out.getvalue(), saved(load_workbook(BytesIO(out.getvalue()))), "a.xlsx", "b.xlsx")
    assert [(one.kind, one.what, one.before["text"]) for one in found.entries] == [
        ("structure", "shape removed", "read me")
    ]


@pytest.fixture(scope="module")
def reference_pair() -> tuple[bytes, bytes]:
    """The page's failure: one input changed and one label added through a library that drops all stored values."""
    before = recalculate(saved(workbook()), "reference.xlsx").data
    book = load_workbook(BytesIO(before))
    book["DCF"]["B10"], book["DCF"]["A12"] = 0.06, "NPV"
    return before, saved(book)


def test_comparing_stored_values_gives_1551_differences(reference_pair):
    first, second = (
        {
            node.address: node.text
            for node in read(data, "reference.xlsx").walk()
            if node.kind == "cell" and (node.text or "value" in node.attributes)
        }
        for data in reference_pair
    )
    assert sum(first.get(key) != second.get(key) for key in first.keys() | second.keys()) == 1551


def test_the_reference_edit_has_26_differences_and_none_is_false(reference_pair):
    found = diff(*reference_pair, "reference.xlsx", "reference.xlsx")
    columns = "CDEFGHIJKL"
    follows = {f"DCF!{column}{row}" for column in columns for row in (2, 3)}
    follows |= {"DCF!B12", "DCF!B13", "DCF!B14", "DCF!E15"}
    assert len(found.entries) == 26
    assert written(found) == [("input", "cell", "DCF!B10"), ("input", "cell", "DCF!A12")]
    assert {one.address for one in found.entries if one.kind == "downstream"} == follows
    assert {one.explained_by for one in found.entries if one.kind == "downstream"} == {("DCF!B10",)}


def test_collateral_is_what_lies_outside_and_follows_from_nothing_allowed(reference_pair):
    found = diff(*reference_pair, "reference.xlsx", "reference.xlsx", allowed=["DCF!B10"])
    assert [one.address for one in found.collateral] == ["DCF!A12"]
    allowed = diff(*reference_pair, "reference.xlsx", "reference.xlsx", allowed=["DCF!A10:B12"])
    assert allowed.collateral == ()
    nothing = diff(*reference_pair, "reference.xlsx", "reference.xlsx", allowed=[])
    assert len(nothing.collateral) == 26


@pytest.mark.parametrize(
    "spelling", ["=sum( d2 : d7 )", "=SUM($D$2:$D$7)", "=SUM(Costs!D2:D7)", "=SUM('Costs'!D$2:D7)"]
)
def test_spellings_of_one_formula_are_equal(base, spelling):
    assert diff(base, assign("Costs", "D9", spelling)(base), "a.xlsx", "b.xlsx").entries == ()


def test_a_row_inserted_without_moving_formulas_is_found_wrong(base):
    def insert(book: Any) -> None:
        book["Costs"].insert_rows(4)

    found = diff(base, by_openpyxl(insert)(base), "a.xlsx", "b.xlsx")
    assert ("structure", "row inserted", "Costs!4:4") in written(found)
    assert ("formula", "cell", "Costs!D5") in written(found)


def test_volatile_values_are_no_difference():
    book = Workbook()
    book.active["A1"], book.active["A2"], book.active["A3"] = "=RAND()", "=TODAY()", "=A1+1"
    data = saved(book)
    assert diff(data, recalculate(data, "x.xlsx").data, "x.xlsx", "x.xlsx").entries == ()


def test_differences_become_json(base):
    import json

    found = diff(base, OPERATORS["a typed number"][0](base), "a.xlsx", "b.xlsx", allowed=["Costs!B3"])
    value = json.loads(json.dumps(found.as_json()))
    assert value["counts"] == {"input": 1, "downstream": 4}
    assert value["collateral"] == 0
