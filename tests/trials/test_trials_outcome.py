from __future__ import annotations

import asyncio
import importlib
import itertools
import pkgutil
from pathlib import Path

import pytest

import journeyman
from journeyman.errors import (
    ConfigError,
    DeadlinePassed,
    EnvironmentMissing,
    GateFailed,
    InputError,
    StorageError,
    SystemFault,
)
from journeyman.sandbox.errors import ExecTimeout, SandboxLost, SandboxStartFailed
from journeyman.tasks.errors import RewardFileMissing, VerifierTimeout
from journeyman.tasks.verdict import Verdict, malformed, scored, verifier_error
from journeyman.trials.outcome import (
    OUTCOMES,
    STOP_REASONS,
    BudgetExhausted,
    SupervisorDeadline,
    classify,
    error_table,
    outcome_of,
)

ERRORS: list[tuple[BaseException, str]] = [
    (SandboxStartFailed("run", "no bwrap"), "sandbox_failed"),
    (SandboxLost("s1", "exec"), "sandbox_failed"),
    (ExecTimeout("sleep", 1.0, 1.1, b"", b"", 0), "sandbox_failed"),
    (DeadlinePassed("decode of a turn", 60), "deadline_passed"),
    (SupervisorDeadline("trial", 900), "deadline_passed"),
    (VerifierTimeout("test.sh"), "verifier_failed"),
    (RewardFileMissing("none"), "verifier_failed"),
    (BudgetExhausted("context"), "agent_exhausted_budget"),
    (KeyboardInterrupt(), "cancelled"),
    (asyncio.CancelledError(), "cancelled"),
    (StorageError("/out", "disk full"), "storage_failed"),
    (InputError("task.toml", "is missing"), "harness_failed"),
    (ConfigError([]), "harness_failed"),
    (EnvironmentMissing("no torch"), "harness_failed"),
    (GateFailed("step 4"), "harness_failed"),
    (SystemFault("?"), "unclassified"),
    (RuntimeError("TimeoutError: sandbox lost, deadline passed"), "unclassified"),
    (TimeoutError(), "unclassified"),
    (SystemExit(0), "unclassified"),
    (MemoryError(), "unclassified"),
]

VERDICTS: list[Verdict | None] = [
    None,
    scored(1.0, True),
    scored(0.5, False),
    scored(0.0, False),
    malformed("no answer.json"),
    verifier_error(VerifierTimeout("test.sh")),
]


@pytest.mark.parametrize(
    ("error", "cause"), ERRORS, ids=lambda v: type(v).__name__ if isinstance(v, Exception) else None
)
def test_an_error_has_one_row_found_by_its_type_alone(error: BaseException, cause: str):
    assert classify(error) is OUTCOMES[cause]


def test_each_trial_ends_as_exactly_one_row_whatever_came_together():
    errors = [None, *(error for error, _ in ERRORS)]
    for verdict, stop_reason, error in itertools.product(VERDICTS, STOP_REASONS, errors):
        outcome = outcome_of(verdict, stop_reason, error)
        row = OUTCOMES[outcome.cause]
        assert (outcome.retry, outcome.grade, outcome.reward_valid) == (row.retry, row.grade, row.reward_valid)
        counted = outcome.outcome_class in ("solved", "failed", "malformed_deliverable")
        assert counted == outcome.reward_valid
        if counted:
            assert verdict is not None and verdict.reward is not None
            assert error is None or isinstance(error, BudgetExhausted)
            assert (outcome.outcome_class == "solved") == bool(verdict.passed)
        assert outcome.outcome_class != "cancelled" or isinstance(error, KeyboardInterrupt | asyncio.CancelledError)
        assert outcome.outcome_class != "verifier_error" or outcome.cause == "verifier_failed"


@pytest.mark.parametrize("stop_reason", [reason for reason in STOP_REASONS if reason.startswith("limit.")])
def test_a_declared_budget_that_runs_out_is_graded_and_trained(stop_reason: str):
    solved = outcome_of(scored(1.0, True), stop_reason, None)
    assert (solved.outcome_class, solved.cause) == ("solved", "agent_exhausted_budget")
    assert solved.grade and solved.reward_valid and not solved.retry
    assert outcome_of(malformed("nothing was delivered"), stop_reason, None).outcome_class == "malformed_deliverable"


@pytest.mark.parametrize(
    "error",
    [SupervisorDeadline("trial", 900), DeadlinePassed("engine turn", 60), ExecTimeout("x", 1, 1, b"", b"", 0)],
    ids=lambda error: type(error).__name__,
)
def test_a_deadline_that_was_not_the_policys_is_a_system_error_and_never_a_reward(error: BaseException):
    outcome = outcome_of(scored(1.0, True), "answered", error)
    assert outcome.outcome_class == "system_error"
    assert outcome.retry and not outcome.reward_valid


def test_a_broken_verifier_is_never_a_zero_and_never_restarts_the_agent():
    for outcome in (
        outcome_of(verifier_error(VerifierTimeout("x")), "answered", None),
        outcome_of(None, "answered", None),
        outcome_of(None, "answered", VerifierTimeout("x")),
        outcome_of(verifier_error(VerifierTimeout("x")), "limit.turns", None),
    ):
        assert (outcome.outcome_class, outcome.cause) == ("verifier_error", "verifier_failed")
        assert not outcome.reward_valid and not outcome.retry and outcome.grade


def test_a_trial_that_stopped_by_an_error_nobody_recorded_is_unclassified():
    outcome = outcome_of(scored(1.0, True), "error", None)
    assert (outcome.outcome_class, outcome.cause, outcome.reward_valid) == ("system_error", "unclassified", False)


def test_a_stop_reason_outside_the_closed_list_is_refused():
    with pytest.raises(ValueError, match="unknown stop reason 'env_done'"):
        outcome_of(None, "env_done", None)


def test_only_the_policys_own_ends_have_a_valid_reward():
    assert {c for c, row in OUTCOMES.items() if row.reward_valid} == {
        "none",
        "agent_exhausted_budget",
        "agent_refused_task",
    }
    assert all(row.grade for row in OUTCOMES.values() if row.reward_valid)
    assert all(cause == row.cause for cause, row in OUTCOMES.items())


def _fault_types() -> list[type[SystemFault]]:
    """Every system fault that any module of the package that can be imported here defines."""
    for module in pkgutil.walk_packages(journeyman.__path__, "journeyman."):
        if module.name.rpartition(".")[2] == "errors":
            importlib.import_module(module.name)
    found: list[type[SystemFault]] = []
    waiting = [SystemFault]
    while waiting:
        kind = waiting.pop()
        found.append(kind)
        waiting.extend(kind.__subclasses__())
    return found


def test_every_system_fault_of_every_room_names_a_row_of_the_table():
    kinds = [kind for kind in _fault_types() if not kind.__module__.startswith("journeyman.train.")]  # end no trial
    assert len(kinds) > 15
    assert {kind.__name__: kind.cause for kind in kinds if kind.cause not in OUTCOMES} == {}


def test_the_documented_table_is_the_one_in_the_code():
    page = Path(__file__).parents[2] / "docs" / "tasks.md"
    assert error_table() in page.read_text()
