"""Errors carry fields, an exit code and a message that can be acted upon."""

from __future__ import annotations

import pytest

from journeyman.deadline import Deadline
from journeyman.errors import (
    ConfigError,
    DeadlinePassed,
    EnvironmentMissing,
    GateFailed,
    InputError,
    JourneymanError,
    Problem,
    StorageError,
    SystemFault,
    nearest,
    panel,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [(GateFailed, 1), (InputError, 2), (StorageError, 2), (ConfigError, 2), (EnvironmentMissing, 3), (SystemFault, 4)],
)
def test_each_kind_of_error_has_its_exit_code(error, code):
    assert issubclass(error, JourneymanError)
    assert error.exit_code == code


def test_an_input_error_says_where_what_allowed_and_next():
    error = InputError("tasks/a", "has no tests/test.sh", allowed="a Harbor task directory", hint="see docs/tasks.md")
    assert str(error) == "tasks/a: has no tests/test.sh; allowed: a Harbor task directory; see docs/tasks.md"
    assert (error.where, error.problem) == ("tasks/a", "has no tests/test.sh")


def test_a_near_word_is_suggested_and_a_far_one_is_not():
    assert nearest("dpo", ["dppo", "glm5"]) == "dppo"
    assert nearest("xyz", ["dppo", "glm5"]) is None


def test_the_panel_counts_its_rows_and_aligns_them():
    rows = [Problem("a", "base.toml:1", "is required"), Problem("a.long.path", "--x", "unknown key.", "a.b")]
    assert panel(rows).splitlines() == [
        "2 problems in the configuration",
        "  a            base.toml:1  is required",
        "  a.long.path  --x          unknown key. Did you mean a.b?",
    ]
    assert panel(rows[:1]).startswith("1 problem in")


def test_a_deadline_counts_down_and_raises_only_once_it_has_passed():
    deadline = Deadline.after(60, "a long call")
    deadline.check()
    assert 59 < deadline.remaining_s <= 60
    over = Deadline("a short call", 0.5, deadline.at - 60)
    assert over.has_passed
    assert over.remaining_s == 0
    with pytest.raises(DeadlinePassed, match=r"a short call did not end within 0\.5 s"):
        over.check()


@pytest.mark.parametrize("limit_s", [0, -1, float("nan")])
def test_a_deadline_without_a_positive_limit_is_refused(limit_s):
    with pytest.raises(ValueError, match="must be positive"):
        Deadline.after(limit_s, "a call")
