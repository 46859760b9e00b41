"""The bitemporal store: what was so when, what was known when, and invariants that can fail."""

from __future__ import annotations

import pytest

from journeyman.worlds.truth import Ambiguous, Truth
from journeyman.worlds.truth.invariants import INVARIANTS, broken


@pytest.fixture
def truth() -> Truth:
    made = Truth()
    made.add("event", {"id": "E1", "kind": "x", "date": "2024-01-01", "summary": "", "payload": {}}, event="E1")
    return made


def test_a_superseded_row_holds_until_the_day_of_its_successor(truth):
    truth.add("clause", clause("c1", 30), event="E1", at="2024-01-01")
    truth.close("clause", "c1", valid_to="2024-06-01")
    truth.add("clause", clause("c2", 60, "c1"), event="E1", at="2024-06-01")
    assert value_on(truth, "2024-05-31") == 30
    assert value_on(truth, "2024-06-01") == 60


def test_what_was_known_later_is_not_seen_before(truth):
    truth.add("kpi", {"id": "k", "name": "n", "period": "Q1", "value": 1, "unit": "x"}, event="E1", at="2024-01-01")
    truth.close("kpi", "k", known_to="2024-09-01")
    row = {"id": "k2", "name": "n", "period": "Q1", "value": 2, "unit": "x"}
    truth.add("kpi", row, event="E1", at="2024-01-01", known="2024-09-01")
    assert truth.as_of("2024-03-01", known="2024-08-31").value("SELECT value FROM kpi_at") == 1
    assert truth.as_of("2024-03-01", known="2024-09-01").value("SELECT value FROM kpi_at") == 2


def test_one_row_is_asked_for_and_none_or_two_are_an_error(truth):
    with pytest.raises(Ambiguous) as none:
        truth.one("SELECT * FROM person")
    assert none.value.count == 0
    truth.add("holiday", [{"id": "a"}, {"id": "b"}], event="E1", at="2024-01-01")
    with pytest.raises(Ambiguous) as several:
        truth.one("SELECT * FROM holiday")
    assert several.value.count == 2


def test_a_dumped_truth_opens_again_and_answers_the_same(truth):
    truth.add("holiday", {"id": "a", "date": "2024-01-01"}, event="E1", at="2024-01-01")
    assert Truth(truth.dump()).value("SELECT date FROM holiday") == "2024-01-01"


def test_each_broken_invariant_is_found(truth):
    at = {"event": "E1", "at": "2024-01-01"}
    truth.add("journal", {"id": "J", "entity_id": "G", "date": "2024-01-31", "currency": "EUR"}, **at)
    truth.add(
        "journal_line", {"id": "L", "journal_id": "J", "account_id": "1", "dr": 5, "cr": 0, "currency": "USD"}, **at
    )
    truth.add("org_edge", [edge("o1", "a", "b"), edge("o2", "b", "a")], **at)
    truth.add("person", [{"id": p, "entity_id": "G", "grade": "G5"} for p in ("c", "d")], **at)
    truth.add("invoice", {"id": "I", "net": 10, "tax": 2, "gross": 13, "journal_id": "J", "customer_id": "C"}, **at)
    truth.add("clause", [clause("c1", 1, "c2"), clause("c2", 2, "c1")], **at)
    bids = [{"id": b, "deal_id": "D", "bidder": "X", "supersedes": s} for b, s in (("b1", "b2"), ("b2", "b1"))]
    truth.add("bid", bids, **at)
    truth.add("contract", {"id": "K", "valid_to": "2023-01-01"}, **at)
    truth.add("security", {"id": "S"}, event="nobody", at="2024-01-01")
    assert set(broken(truth)) == set(INVARIANTS)


def clause(row_id: str, value: int, supersedes: str | None = None) -> dict[str, object]:
    return {"id": row_id, "contract_id": "K", "no": 4, "type": "term", "params_json": {"value": value},
            "supersedes": supersedes}  # fmt: skip


def edge(row_id: str, manager: str, report: str) -> dict[str, object]:
    return {"id": row_id, "entity_id": "G", "manager_id": manager, "report_id": report}


def value_on(truth: Truth, day: str) -> int:
    sql = "SELECT json_extract(params_json, '$.value') FROM clause_at WHERE contract_id = 'K' AND no = 4"
    return int(truth.as_of(day).value(sql))
