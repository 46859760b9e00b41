"""Science templates: formulas against exact cases, and analyses that are executed again."""

from __future__ import annotations

import math
from typing import Any

import pytest
from verifier_here import graded, score

from journeyman.worlds.drafting import csv_bytes, json_bytes, xlsx_bytes
from journeyman.worlds.templates.science.ageing import GAS_CONSTANT, Reading, evaluated, program
from journeyman.worlds.templates.science.sc1_calibration import computed, layout
from journeyman.worlds.templates.science.sc2_ageing import STEPS, _read_log
from journeyman.worlds.verify import Check
from journeyman.worlds.verify.inside.worldverify.bundle import Bundle

RULES = {**dict.fromkeys(STEPS, True), "typed": None}
WATER = {
    "stock": 0.5, "limit": 1.0, "coverage": 2,
    "standards": [{"nominal": x, "absorbance": y} for x, y in ((0, 0.1), (2000, 0.3), (4000, 0.52), (6000, 0.68))],
    "samples": [
        {"sample": "A", "dilution": 2, "reading_1": 0.4, "reading_2": None, "reading_3": 0.42},
        {"sample": "B", "dilution": 1, "reading_1": 0.2, "reading_2": 0.2, "reading_3": 0.2},
    ],
}  # fmt: skip


def test_a_calibration_is_the_line_that_hand_arithmetic_gives():
    found = computed(WATER)
    assert found["slope"] == pytest.approx(0.98 / 5)  # x 0, 1, 2, 3 mg/L; sum of products 0.98, of squares 5
    assert found["intercept"] == pytest.approx(0.4 - 1.5 * 0.196)
    row = found["rows"][0]
    assert row["readings"] == 2
    assert row["content"] == pytest.approx((0.41 - found["intercept"]) / found["slope"] * 2)
    assert [one["exceeds"] for one in found["rows"]] == ["yes", "no"]


def test_the_workbook_computes_what_the_method_says():
    book = Bundle({"w.xlsx": xlsx_bytes(layout(WATER))}).workbook("w.xlsx")
    found = computed(WATER)
    assert book.value("Calibration!G4") == pytest.approx(found["residual"])
    for number, row in enumerate(found["rows"], start=2):
        assert book.value(f"Samples!G{number}") == pytest.approx(row["content"])
        assert book.value(f"Samples!H{number}") == pytest.approx(row["expanded"])
        assert book.value(f"Samples!I{number}") == row["exceeds"]


def readings(energy: float, at_25: float) -> list[Reading]:
    made = []
    for number, celsius in enumerate((35, 45, 65)):
        k = at_25 * math.exp(-energy / GAS_CONSTANT * (1 / (celsius + 273.15) - 1 / 298.15))
        made += [{"module": f"M{number}", "celsius": celsius, "day": day, "capacity_ah": 80 * math.exp(-k * day)}
                 for day in (0, 10, 50, 90)]  # fmt: skip
    return made


def test_ageing_without_noise_gives_back_what_it_was_made_from():
    found = evaluated(readings(50_000, 2e-4), 25, 0.8, RULES)
    assert found["activation_energy"] == pytest.approx(50)
    assert found["rate"] == pytest.approx(2e-4)
    assert found["life"] == pytest.approx(math.log(1.25) / 2e-4)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("module BM03\nchamber 131 F\ntime in weeks, capacity in mAh\n\n0\t100000\n4\t98500\n", (55, 28, 98.5)),
        ("module BM03\nchamber 328.15 K\ntime in hours, capacity in Ah\n\n0\t100.00\n672\t98.50\n", (55, 28, 98.5)),
    ],
)
def test_logs_of_all_chambers_come_to_the_same_units(text, want):
    last = _read_log(text)[-1]
    assert (last["celsius"], last["day"], last["capacity_ah"]) == want


def analysis(**changes: Any) -> dict[str, bytes]:
    columns = ("module", "celsius", "day", "capacity_ah")
    made = readings(50_000, 2e-4)
    result = {**evaluated(made, 25, 0.8, RULES), **changes.get("result", {})}
    rules = {**RULES, **changes.get("rules", {})}
    rows = [[one[name] for name in columns] for one in changes.get("readings", made)]
    return {"d.csv": csv_bytes(columns, rows), "a.py": program(rules).encode(), "r.json": json_bytes(result)}


def reproduced(files: dict[str, bytes]) -> float:
    want = evaluated(readings(50_000, 2e-4), 25, 0.8, RULES)
    params = {"entry": "a.py", "args": ["d.csv", 25, 0.8], "data": ["d.csv"], "file": "r.json", "tol": {"rel": 1e-6},
              "fields": {"life": want["life"], "rates.45": want["rates"]["45"]}}  # fmt: skip
    return score(Check("again", "program.reproduces", params), files)


def test_an_analysis_that_prints_what_it_reports_is_reproduced():
    assert reproduced(analysis()) == 1.0


@pytest.mark.parametrize(
    "changes",
    [
        {"result": {"life": 1000.0}},
        {"rules": {"kelvin": False}},
        {"readings": readings(51_000, 2e-4)},
        {"rules": {"typed": {"life": 1}}},
    ],
)
def test_an_analysis_that_prints_something_else_is_not(changes):
    assert reproduced(analysis(**changes)) == 0.0


RECORDS = {"file": "d.csv", "columns": ["module", "day", "capacity_ah"], "rows": [["A", 0, 10.0], ["A", 7, 9.5]],
           "tol": [0.006]}  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "want"),
    [
        ("module,day,capacity_ah\nA,0,10\nA,7,9.501\n", 1.0),
        ("capacity_ah,module,day\n9.50,a,7.0\n10.0,A,0\n", 1.0),
        ("module,day,capacity_ah\nA,0,10\n", 0.0),
        ("module,day,capacity_ah\nA,0,10\nA,7,9.4\n", 0.0),
        ("module,day,capacity_ah\nA,0,10\nA,7,9.5\nA,7,9.5\n", 0.0),
        ("module,day,capacity_ah\nA,0,10\nA,7,9.5\nB,7,9.5\n", 0.0),
        ("module,day,capacity_ah\nA,0,10\nA,7,\n", 0.0),
        ("module,day\nA,0\nA,7\n", 0.0),
    ],
)
def test_records_are_exactly_those_that_count(lines, want):
    assert score(Check("records", "data.records", RECORDS), {"d.csv": lines.encode()}) == want


def test_a_program_that_never_ends_costs_its_deliverable_the_check_and_no_more():
    files = {**analysis(), "a.py": b"while True:\n    pass\n"}
    params = {"entry": "a.py", "args": [], "data": [], "file": "r.json", "fields": {}, "case_s": 0.2}
    found = graded([Check("again", "program.reproduces", params)], files)["checks"][0]
    assert found["score"] == 0.0
    assert "no end within" in found["explain"]
