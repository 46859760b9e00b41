"""Long tasks: their evidence lies in as many files as they take calls, and they give feedback on the way."""

from __future__ import annotations

from functools import cache

import pytest
from verifier_here import graded, office, score

from journeyman.seeds import stream
from journeyman.worlds.binding import LONG
from journeyman.worlds.curriculum import TURNS, Knobs, density_problem
from journeyman.worlds.drafting import sheet, xlsx_bytes
from journeyman.worlds.template import Bound, Unbindable
from journeyman.worlds.templates import TEMPLATES
from journeyman.worlds.verify import Check

LONG_TURNS = sorted({(name, length) for name, lengths in TURNS.items() for length in lengths if length >= LONG})
LEAST_CALLS = {2: 100, 3: 174}


@cache
def bound_at(name: str, length: int) -> Bound:
    """A task of this length in the world that all tests share."""
    for attempt in range(6):
        try:
            return TEMPLATES[name].bind(office(), stream(7, "long", name, attempt), Knobs(fan_out=2, length=length))
        except Unbindable:
            continue
    raise AssertionError(f"{name} of length {length} cannot be bound")


def evidence(bound: Bound) -> set[str]:
    """Files in which a fact of the task stands, and files that it names as needed."""
    places = {one.path for fact in bound.facts for one in office().where(fact)}
    return {path for path in places | set(bound.reads) if not path.startswith("apps/")}


def test_six_families_of_four_domains_and_more_can_be_long_and_two_of_them_longest():
    assert len({name for name, _ in LONG_TURNS}) >= 6
    assert len({TEMPLATES[name].domain for name, _ in LONG_TURNS}) >= 4
    assert sum(length == 3 for _, length in LONG_TURNS) >= 2


@pytest.mark.parametrize(("name", "length"), [one for one in LONG_TURNS if one[0] not in ("CL1", "CL2", "IB12")])
def test_a_long_task_needs_as_many_files_as_it_takes_calls(name: str, length: int):
    assert len(evidence(bound_at(name, length))) >= LEAST_CALLS[length] - 3


@pytest.mark.parametrize(("name", "length"), [one for one in LONG_TURNS if one[0] in ("CL1", "CL2")])
def test_a_long_task_on_contracts_is_about_contracts_with_a_hundred_papers(name: str, length: int):
    rows = bound_at(name, length).answer["contracts"]
    papers = [one for one in office().documents.values() if one.subject.startswith("contract:")]
    named = {f"contract:{row['contract']}" for row in rows}
    read = [one for one in papers if name == "CL2" or one.subject in named]
    assert len([one for one in read if one.kind != "review" or one.subject in named]) >= LEAST_CALLS[length]


@pytest.mark.parametrize("length", [2, 3])
def test_the_long_question_log_asks_about_different_papers(length: int):
    chosen = [row["source"] for row in bound_at("IB12", length).answer["answers"] if row["source"]]
    assert len(set(chosen)) >= 0.85 * len(chosen)
    assert len(chosen) >= LEAST_CALLS[length] - 3


@pytest.mark.parametrize(("name", "length"), LONG_TURNS)
def test_a_long_task_gives_feedback_on_its_way_and_its_right_answer_passes(name: str, length: int):
    bound = bound_at(name, length)
    nodes = sum(check.nodes for check in bound.checks)
    steps = sum(check.stage == "intermediate" for check in bound.checks)
    assert density_problem(LEAST_CALLS[length], nodes, steps) == ""
    right = TEMPLATES[name].write(bound, bound.answer, office().files)
    assert graded(bound.checks, right)["reward"] == 1.0


def test_a_part_that_was_dropped_is_named_by_the_check_of_that_part():
    bound = bound_at("IB12", 2)
    rest = [row for row in bound.answer["answers"] if row["kind"] != "volume"]
    made = TEMPLATES["IB12"].write(bound, {"answers": rest}, office().files)
    verdict = {check["id"]: check["score"] for check in graded(bound.checks, made)["checks"]}
    assert (verdict["part volume"], verdict["part clause"], verdict["kinds"]) == (0.0, 1.0, 0.0)


def test_sums_that_do_not_agree_with_what_was_read_fail():
    bound = bound_at("MC3", 2)
    kept = bound.answer["centres"][:-1]
    made = TEMPLATES["MC3"].write(bound, {**bound.answer, "centres": kept}, office().files)
    verdict = {check["id"]: check["score"] for check in graded(bound.checks, made)["checks"]}
    assert verdict["both sums agree"] == 0.0
    assert verdict["vouchers"] == 1.0


def test_every_payment_has_one_voucher_and_every_contract_in_force_a_review_for_the_year():
    truth = office().truth
    assert truth.value("SELECT COUNT(*) FROM spend") == len(office().of_kind("voucher"))
    assert truth.rows("SELECT spend_id FROM voucher GROUP BY spend_id HAVING COUNT(*) > 1") == []
    late = "SELECT r.id FROM review r JOIN contract k ON k.id = r.contract_id WHERE k.date > r.valid_from"
    assert truth.rows(late) == []
    assert len(office().of_kind("month_end")) == 3 * len(office().setting.months)


def test_rows_are_found_by_numbers_however_they_are_written():
    check = Check("t", "table", {"file": "a.xlsx", "columns": [{"name": "No"}, {"name": "Said"}],
                                 "rows": [[n, f"w{n}"] for n in range(1, 301)]})  # fmt: skip
    lines = [[str(n) if n % 2 else float(n), f"w{n}"] for n in range(300, 0, -1)]
    assert score(check, {"a.xlsx": xlsx_bytes([sheet("S", ["No", "Said"], lines)])}) == 1.0
    twice = [*lines, [7, "w7"]]
    assert score(check, {"a.xlsx": xlsx_bytes([sheet("S", ["No", "Said"], twice)])}) == 0.0


def test_a_workbook_that_cannot_be_computed_anew_is_the_deliverables_fault():
    book = [sheet("S", [], [["x", "=SUM(Other!B2:B1)"], [1, "=A2*2"]]), sheet("Other", ["c", "d"], [])]
    trial = {"set": {"S!A2": 3}, "expect": {"S!B2": 6, "S!B1": 0}}
    assert score(Check("f", "xlsx.follows", {"file": "a.xlsx", "trials": [trial]}), {"a.xlsx": xlsx_bytes(book)}) == 0.0
