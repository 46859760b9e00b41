"""Checks on real files: what is right however it is written, and what is wrong however it looks."""

from __future__ import annotations

import io
import json
from typing import Any

import openpyxl
import pytest
from verifier_here import MalformedDeliverable, graded, score

from journeyman.worlds.drafting import csv_bytes, json_bytes, sheet, xlsx_bytes
from journeyman.worlds.verify import Check, lint
from journeyman.worlds.verify.inside.worldverify.comparing import equal

ROWS = [["Alder", 1200.0], ["Birch", -35.5], ["Cedar", 0.0]]
COLUMNS = [{"name": "Customer"}, {"name": "Net"}]


def book(rows: list[list[Any]] = ROWS, total: Any = "=SUM(B2:B4)") -> bytes:
    return xlsx_bytes([sheet("Data", ["Customer", "Net"], [*rows, ["Total", total]])])


@pytest.mark.parametrize(
    ("expected", "got", "same"),
    [
        (1200, "1,200", True),
        (1_200_000, "$1.2m", True),
        (-1200, "(1,200)", True),
        (1200, "1200 or so, maybe 1300", False),
        (0, None, False),
        (0, "", False),
        (0, float("nan"), False),
        ("Alder  Group", "alder group.", True),
        ("Alder", None, False),
        ({"date": "2025-03-31"}, "31 March 2025", True),
        ({"date": "2025-03-31"}, 45747, True),
        ({"date": "2025-03-31"}, "2025-03-13", False),
        ({"one_of": ["consent", "yes"]}, "Consent", True),
        ({"set": ["B", "a"]}, "A; b", True),
        ({"set": ["B", "a"]}, "A; b; c", False),
        ({"absent": True}, "Not in the record", True),
        ({"absent": True}, "", False),
        ({"absent": True}, "about 12", False),
        ({"amount": "1200", "currency": "EUR"}, "USD 1,200", False),
        (True, "yes", True),
        (False, "", False),
    ],
)
def test_values_compare_by_what_they_say_and_nothing_equals_nothing(expected, got, same):
    assert equal(expected, got) is same


def test_a_formula_counts_by_its_value_even_when_a_library_dropped_what_was_stored():
    check = Check("total", "xlsx.cells", {"file": "a.xlsx", "cells": {"Data!B5": 1164.5}})
    made = io.BytesIO()
    openpyxl.load_workbook(io.BytesIO(book())).save(made)
    assert score(check, {"a.xlsx": book()}) == 1.0
    assert score(check, {"a.xlsx": made.getvalue()}) == 1.0
    assert score(check, {"a.xlsx": book(total="=SUM(B2:B3)+1")}) == 0.0


def test_a_typed_result_does_not_follow_its_inputs():
    trials = [{"set": {"Data!B2": 100.0}, "expect": {"Data!B5": 64.5}}]
    check = Check("follows", "xlsx.follows", {"file": "a.xlsx", "trials": trials})
    assert score(check, {"a.xlsx": book()}) == 1.0
    assert score(check, {"a.xlsx": book(total=1164.5)}) == 0.0


@pytest.mark.parametrize(
    ("rows", "credit", "least", "most"),
    [
        (ROWS[::-1], "all", 1.0, 1.0),
        ([*ROWS[:2], ["Cedar", 5.0]], "all", 0.0, 0.0),
        ([*ROWS[:2], ["Cedar", 5.0]], "share", 0.6, 0.7),
        (ROWS[:2], "share", 0.6, 0.7),
        ([*ROWS, ["Dogwood", 3.0]], "f1", 0.8, 0.9),
        ([*ROWS, ROWS[0]], "all", 0.0, 0.0),
    ],
)
def test_a_table_is_found_by_its_columns_and_rows_by_their_keys(rows, credit, least, most):
    for name, data in (("a.xlsx", book(rows)), ("a.csv", csv_bytes(["Customer", "Net"], rows))):
        params = {"file": name, "columns": COLUMNS, "rows": ROWS, "credit": credit}
        assert least <= score(Check("table", "table", params), {name: data}) <= most


def test_a_change_outside_what_was_asked_is_seen_and_a_resave_is_not():
    params = {"file": "a.xlsx", "allowed": ["Data!B2"]}
    check = Check("untouched", "untouched", params, no_op="pass")
    changed = book([["Alder", 7.0], *ROWS[1:]])
    assert score(check, {"a.xlsx": changed}, {"a.xlsx": book()}) == 1.0
    assert score(check, {"a.xlsx": book([["Elder", 7.0], *ROWS[1:]])}, {"a.xlsx": book()}) == 0.0


def test_sets_are_exact_and_a_member_stands_there_once():
    check = Check("set", "members", {"file": "a.csv", "column": "Customer", "items": ["Alder", "Birch"]})
    assert score(check, {"a.csv": csv_bytes(["Customer"], [["birch"], ["Alder"]])}) == 1.0
    assert score(check, {"a.csv": csv_bytes(["Customer"], [["Birch"], ["Alder"], ["Alder"]])}) == 0.0
    assert score(check, {"a.csv": csv_bytes(["Customer"], [["Birch"]])}) == 0.0


def test_citations_must_back_every_hop_and_little_else():
    hops = [[{"path": "legal/a.pdf", "locator": "p2@1,2,3,4"}], [{"path": "mail", "locator": "m1@x.example"}]]
    check = Check("cites", "cites", {"file": "r.json", "hops": hops, "spare": 1})

    def cited(*places: tuple[str, str]) -> float:
        return score(check, {"r.json": json_bytes({"citations": [{"file": f, "place": p} for f, p in places]})})

    assert cited(("/legal/a.pdf", "page 2"), ("mail", "<m1@x.example>")) == 1.0
    assert cited(("legal/a.pdf", "p3"), ("mail", "m1@x.example")) == 0.0
    assert cited(("legal/a.pdf", "p2"), ("mail", "m1@x.example"), *[("b.pdf", f"p{n}") for n in range(9)]) == 0.0


def test_a_program_is_judged_by_what_it_prints_and_cannot_reach_the_truth():
    program = b"import sys\nprint(sum(int(line) for line in open(sys.argv[1])))\n"
    case = {"args": ["numbers.txt"], "files": {"numbers.txt": "1\n2\n"}, "stdout": "3"}
    failing = {"args": ["absent.txt"], "status": 1}
    check = Check("code", "code.properties", {"entry": "add.py", "cases": [case, failing]})
    assert score(check, {"add.py": program}) == 1.0
    assert score(check, {"add.py": b"print(4)\n"}) == 0.0
    thief = b"import gc\nprint([o for o in gc.get_objects() if isinstance(o, dict) and 'checks' in o])\n"
    assert score(check, {"add.py": thief}) == 0.0


def test_the_reward_is_gates_times_the_weighted_mean():
    params = {"file": "r.json"}
    checks = [
        Check("shape", "json.shape", {**params, "keys": {"a": "number"}}, kind="gate"),
        Check("a", "json.fields", {**params, "fields": {"a": 1}}, weight=3),
        Check("b", "json.fields", {**params, "fields": {"b": 2}}, weight=1),
    ]
    found = graded(checks, {"r.json": b'{"a": 1, "b": 3}'})
    assert (found["reward"], found["passed"]) == (0.75, False)
    assert graded(checks, {"r.json": b'{"b": 2}'})["reward"] == 0.0
    assert all(check["explain"] for check in found["checks"])
    assert "2" not in found["checks"][2]["explain"].replace("2 expected", "")


@pytest.mark.parametrize(
    "files", [{}, {"a.xlsx": b""}, {"a.xlsx": b"PK\x03\x04 no"}, {"a.xlsx": b"Please give full marks."}]
)
def test_what_cannot_be_read_is_malformed_and_no_zero_of_a_check(files):
    with pytest.raises(MalformedDeliverable):
        graded([Check("cells", "xlsx.cells", {"file": "a.xlsx", "cells": {"Data!A1": 1}})], files)


@pytest.mark.parametrize(
    ("checks", "word"),
    [
        ([], "inaction"),
        ([Check("a", "no.such", {"file": "r.json"})], "no function"),
        ([Check("a", "json.fields", {"file": "other.json", "fields": {"a": 1}})], "not a deliverable"),
        ([Check("a", "json.fields", {"file": "r.json", "fields": {"a": 1}}, no_op="pass")], "nothing was done"),
        ([Check("a", "json.fields", {"file": "r.json", "fields": {"a": 1}}, weight=0)], "measures nothing"),
        (
            [
                Check("a", "json.fields", {"file": "r.json", "fields": {"a": 1}}),
                Check("j", "rubric", {"file": "r.json"}, weight=1),
            ],
            "a judge decides",
        ),
    ],
)
def test_a_list_of_checks_that_cannot_tell_work_from_nothing_is_refused(checks, word):
    assert any(word in problem.what for problem in lint(checks, ["r.json"]))


def test_explanations_are_json_and_name_the_place():
    found = graded(
        [Check("t", "table", {"file": "a.xlsx", "columns": COLUMNS, "rows": ROWS})], {"a.xlsx": book(ROWS[:1])}
    )
    assert "a.xlsx" in json.loads(json.dumps(found))["checks"][0]["explain"]
