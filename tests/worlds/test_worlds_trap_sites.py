"""Traps where their templates meet them: who falls for one fails the check that is named, who reads on does not."""

from __future__ import annotations

import json
from functools import cache

import pytest
from verifier_here import graded, office

from journeyman.seeds import stream
from journeyman.worlds.content import Book, Prose, Table, unmarked
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.template import Bound
from journeyman.worlds.templates import TEMPLATES
from journeyman.worlds.templates.code.c3_orders import REPORT


@cache
def bound_of(name: str) -> Bound:
    return TEMPLATES[name].bind(office(), stream(7, "sites", name), Knobs(fan_out=2))


def scores_of(name: str, answer: dict) -> dict[str, float]:
    bound = bound_of(name)
    found = graded(bound.checks, TEMPLATES[name].write(bound, answer, office().files))
    return {check["id"]: check["score"] for check in found["checks"]} | {"reward": found["reward"]}


@pytest.mark.parametrize(
    ("name", "trap"),
    [("CL8", "T7"), ("CL8", "T11"), ("IB8", "T16"), ("MC5", "T10"), ("C3", "T14"), ("C3", "T15")],
)
def test_a_victim_fails_the_check_that_is_named(name, trap):
    bound = bound_of(name)
    assert trap in bound.traps
    assert scores_of(name, bound.answer)["reward"] == 1.0
    (victim,) = [wrong for wrong in bound.wrong if wrong.trap == trap]
    scores = scores_of(name, victim.answer)
    assert scores[victim.fails] < 1.0
    assert scores["reward"] <= 0.5


def test_a_former_name_stands_in_the_schedule_without_a_number_and_a_mail_explains_it():
    planted = office().trap("T7", "disclosure:")
    number = planted.site.partition(":")[2]
    content = office().of_kind("disclosure_schedule")[0].content
    assert isinstance(content, Prose)
    (rows,) = [block.rows for block in content.blocks if isinstance(block, Table)]
    listed = [[unmarked(cell)[0] for cell in row] for row in rows]
    assert number not in [row[0] for row in listed]
    (line,) = [row for row in listed if row[0] == ""]
    assert line[1] != office().facts[f"disclosure:{number}:name"].value
    assert any("mail" in path for path, _ in planted.locators)


def test_a_contract_without_a_document_is_in_the_index_and_nowhere_else():
    planted = office().trap("T11", "contract:")
    number = planted.site.partition(":")[2]
    content = office().of_kind("room_index")[0].content
    assert isinstance(content, Book)
    cells = content.sheets[0].cells
    (row,) = [row for (row, column), cell in cells.items() if column == 0 and cell.value == number]
    assert (row, 3) in cells
    assert (row, 4) not in cells
    assert not [path for path in office().files if number.lower() in path.lower()]
    assert bound_of("CL8").answer["unfiled"] == [{"contract": number, "ask": planted.right["whom"]}]


def test_revenue_of_the_half_year_goes_over_pages_and_adds_up_to_the_interim_report():
    facts = [fact for fact in office().facts.values() if fact.fact_id.startswith("revenue_month:")]
    pages = {place.locator.partition("/")[0] for fact in facts for place in office().where(fact.fact_id)}
    period = office().trap("T16", "revenue_line:").site.partition(":")[2]
    assert len(pages) > 1
    assert sum(fact.value for fact in facts) == office().facts[f"income:group:{period}:revenue"].value


def test_a_price_study_deducts_its_sums_and_nothing_twice():
    content = office().of_kind("price_waterfall")[0].content
    assert isinstance(content, Book)
    cells = content.sheets[0].cells
    lines = {cells[row, 0].value: row for row, column in cells if column == 0 and row > 2}
    last = lines["Pocket price"]
    sums = [row for name, row in lines.items() if name.startswith("Subtotal")]
    assert cells[last, 1].formula == "=B4" + "".join(f"-B{row + 1}" for row in sums)
    left = cells[lines["List price"], 1].value - sum(cells[row, 1].value for row in sums)
    assert cells[last, 1].value == pytest.approx(left, abs=0.005)


@pytest.mark.parametrize(
    ("path", "check"),
    [
        (("repeated",), "lines accounted for"),
        (("amount_cents",), "control totals"),
        (("customers", 0, "orders"), "customers"),
        (("largest", "amount_cents"), "file and account agree"),
    ],
)
def test_an_account_that_is_off_by_one_fails_its_own_check(path, check):
    bound = bound_of("C3")
    report = json.loads(json.dumps(bound.answer["report"]))
    place = report
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] += 1
    scores = scores_of("C3", {**bound.answer, "report": report})
    assert REPORT in bound.deliverables
    assert scores[check] == 0.0
    assert scores["every cell"] == 1.0


def test_a_line_of_business_too_many_fails_the_chart():
    bound = bound_of("IB8")
    lines = [*bound.answer["lines"], {**bound.answer["lines"][0], "line": "Other"}]
    assert scores_of("IB8", {**bound.answer, "lines": lines})["revenue"] == 0.0
