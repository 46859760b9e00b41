"""The classifier reads stored records; figures of a dry run have the intervals they claim."""

from __future__ import annotations

from typing import Any

import pytest

from journeyman.ladder.dryrun.against import Pair, repairs
from journeyman.ladder.dryrun.figures import cohens_kappa, difference, rate
from journeyman.ladder.dryrun.triage import agreement
from journeyman.trials.dryrun import CLASSES, ContextUse, Finding, classify_trial
from journeyman.trials.dryrun.shapes import shape_of, tally_calls
from journeyman.trials.dryrun.symptoms import worthless_answer
from journeyman.trials.outcome import OUTCOMES

WRONG = {
    "kind": "scored",
    "checks": [{"id": "field-1", "kind": "scored", "score": 0.0, "explain": "found '3', not the value"}],
}


def record(*turns: tuple[str, str, str], **fields: Any) -> dict[str, Any]:
    """A failed trial whose turns are (tool, status, observation)."""
    made = [
        {"calls": [{"tool": tool, "arguments": {}, "status": status}], "malformed": [], "observation": text}
        for tool, status, text in turns
    ]
    given = {
        "outcome": "failed",
        "cause": "none",
        "stop_reason": "answered",
        "passed": False,
        "reward": 0.0,
        "verdict": WRONG,
    }
    return {"trial_id": "dry-run/t/0", "attempt": 1, "task_id": "t", "turns": made, **given, **fields}


def broken(cause: str, name: str = "SomeFault", message: str = "it broke") -> dict[str, Any]:
    fields = {"outcome": "system_error", "cause": cause, "stop_reason": "error", "reward": None, "passed": None}
    return record(error=[name, message], **fields)


@pytest.mark.parametrize(
    ("given", "defect"),
    [
        (record(("read", "ok", "1,2")), "model: did not solve it: answered"),
        (record(stop_reason="limit.turns"), "model: did not solve it: limit.turns"),
        (record(("read", "tool_error", "error: no such file")), "model: did not solve it: answered"),
        (
            record(("bash", "ok", "ModuleNotFoundError: No module named 'pandas'")),
            "environment: a dependency is missing: module pandas",
        ),
        (record(("bash", "ok", "No module named 'my_own_idea'")), "model: did not solve it: answered"),
        (
            record(("bash", "ok", "bash: line 1: awk: command not found")),
            "environment: a dependency is missing: program awk",
        ),
        (record(("bash", "ok", "bash: line 1: excelify: command not found")), "model: did not solve it: answered"),
        (
            record(("bash", "ok", "Traceback (most recent call last):\nKeyError: 1")),
            "model: did not solve it: answered",
        ),
        (
            record(("sheets_read", "tool_error", "error: Traceback (most recent call last):\nKeyError: 1")),
            "tool: answers with an error of its own code: sheets_read",
        ),
        (record(("sheets_read", "ok", ""), ("read", "ok", "1")), "tool: answers with an empty answer: sheets_read"),
        (
            record(("sheets_read", "ok", "<Sheet object at 0x7f00aa>")),
            "tool: answers with the address of an object: sheets_read",
        ),
        (record(("sheets_read", "schema_violation", "None")), "model: did not solve it: answered"),
        (broken("sandbox_failed"), "environment: ended as sandbox_failed: SomeFault"),
        (broken("tool_host_failed", "ToolDeadline"), "tool: ended as tool_host_failed: ToolDeadline"),
        (
            broken("tool_host_failed", message="No module named 'lxml'"),
            "environment: a dependency is missing: module lxml",
        ),
        (broken("harness_failed", "EnvironmentMissing"), "environment: ended as harness_failed: EnvironmentMissing"),
        (broken("harness_failed", "InputError"), "harness: ended as harness_failed: InputError"),
        (broken("engine_failed"), "harness: ended as engine_failed: SomeFault"),
    ],
)
def test_a_failure_of_a_model_is_put_where_its_record_points(given: dict[str, Any], defect: str) -> None:
    found = classify_trial(given, "model")
    assert found is not None
    assert found.defect == defect
    assert found.evidence and found.where


def test_every_row_of_the_error_table_without_a_reward_has_a_class() -> None:
    for cause, row in OUTCOMES.items():
        if not row.reward_valid and cause != "cancelled":
            found = classify_trial(broken(cause), "model")
            assert found is not None and found.failure != "model", cause


def test_what_is_no_failure_gets_no_finding() -> None:
    assert classify_trial(record(passed=True, outcome="solved", reward=1.0), "model") is None
    assert classify_trial(record(), "noop") is None
    assert classify_trial(record(outcome="cancelled", cause="cancelled"), "model") is None


def test_a_full_context_is_the_models_unless_something_of_ours_fills_it() -> None:
    full = record(("read", "ok", "much"), stop_reason="limit.context")
    found = [
        classify_trial(full, "model", lambda use=use: use) for use in (ContextUse(10, 20, 100), ContextUse(10, 50, 100))
    ]
    assert [f.failure for f in found if f is not None] == ["model", "harness"]


def test_the_last_turn_of_an_answered_trial_has_no_answer_to_read() -> None:
    found = classify_trial(record(("read", "ok", "1"), ("submit", "ok", "")), "model")
    assert found is not None and found.failure == "model"


@pytest.mark.parametrize(
    "text", ["0", "no rows", "{'a': 1}", "caf\u00e9 \u4e2d", "tab\there", "None of the rows match"]
)
def test_an_answer_that_says_something_is_left_alone(text: str) -> None:
    assert worthless_answer(text) is None


@pytest.mark.parametrize(
    "text", ["None", " null ", "\x00\x01\x02PK", "\ufffd\ufffdx", "thread panicked at src/lib.rs:1"]
)
def test_an_answer_that_says_nothing_is_found(text: str) -> None:
    assert worthless_answer(text) is not None


def test_calls_are_counted_by_tool_and_shape() -> None:
    assert shape_of({"path": "a", "limit": 3, "all": True, "rows": None}) == "all:bool, limit:int, path:str, rows:null"
    one = record(("read", "ok", ""), ("read", "tool_error", ""), ("", "unparsable", ""))
    found = {entry.tool: (entry.num_calls, entry.num_errors, entry.num_schema_errors) for entry in tally_calls([one])}
    assert found == {"read": (2, 1, 0), "(unreadable call)": (1, 1, 1)}


def test_one_trial_per_task_has_wilsons_interval() -> None:
    found = rate([True] + [False] * 99, [str(n) for n in range(100)])
    assert (round(found["low"], 4), round(found["high"], 4)) == (0.0018, 0.0545)


def test_trials_that_stand_or_fall_with_their_task_count_as_one() -> None:
    tasks = [str(n // 10) for n in range(100)]
    together = rate([n < 50 for n in range(100)], tasks)
    apart = rate([n % 2 == 0 for n in range(100)], tasks)
    assert together["high"] - together["low"] > 2 * (apart["high"] - apart["low"])
    assert rate([False] * 100, tasks)["high"] == rate([False] * 10, tasks[::10])["high"]


def test_kappa_is_that_of_the_textbook() -> None:
    first = ["a"] * 25 + ["b"] * 25
    second = ["a"] * 20 + ["b"] * 5 + ["a"] * 10 + ["b"] * 15
    assert cohens_kappa(first, second) == pytest.approx(0.4)
    assert cohens_kappa(["a"], ["a"]) is None and cohens_kappa([], []) is None


def test_the_agreement_counts_what_a_person_changed() -> None:
    findings = [Finding(f"t{n}", 1, "t", "model" if n else "tool", "r", "", "e", "w") for n in range(4)]
    said = {"t0": {"class": "tool"}, "t1": {"class": "model"}, "t2": {"class": "harness"}}
    found = agreement(findings, said)
    assert (found["n"], found["agreed"], found["untriaged"], found["changed"]) == (
        3,
        2,
        1,
        [["t2", "model", "harness"]],
    )
    assert found["kappa"] == pytest.approx(0.5)


def test_repairs_add_up_to_the_whole_difference() -> None:
    pairs = [
        Pair("a", "1", None, 1.0, "tool: x", ""),
        Pair("b", "2", 0.0, 0.5, "tool: x", ""),
        Pair("c", "3", 1.0, None, "", "harness: y"),
        Pair("d", "4", 0.25, 0.5, "", ""),
    ]
    found = {entry["defect"]: entry for entry in repairs(pairs)}
    assert [entry["change"] for entry in found.values()] == ["disappeared", "appeared", "none"]
    assert found["tool: x"]["worth"]["mean"] == pytest.approx(1.5 / 4) and found["tool: x"]["regained"] == 1
    whole = difference([p.before or 0.0 for p in pairs], [p.after or 0.0 for p in pairs], [p.task_id for p in pairs])
    assert sum(entry["worth"]["mean"] for entry in found.values()) == pytest.approx(whole["mean"])


def test_classes_are_the_five_of_the_audit() -> None:
    assert list(CLASSES) == ["model", "tool", "harness", "environment", "verifier"]
