"""Two runs are equal when only time, memory and interruptions differ, and different when a figure does."""

from __future__ import annotations

from typing import Any

import pytest
from ladder_report_fixture import make_report

from journeyman.evals.score import Word
from journeyman.ladder.report.figures import Gate, Table
from journeyman.ladder.report.model import Report
from journeyman.ladder.report.timeless import measures, without_time


def disturbed(part: Any) -> Any:
    """The same report with every field that measures time, memory or interruptions changed."""
    if isinstance(part, Word):
        changes = {
            name: _other(getattr(part, name)) if measures(field) else disturbed(getattr(part, name))
            for name, field in type(part).model_fields.items()
        }
        if isinstance(part, Table):
            timed = [i for i, column in enumerate(part.columns) if column.measures_time]
            changes["rows"] = tuple(
                tuple(99.0 if i in timed else cell for i, cell in enumerate(row)) for row in changes["rows"]
            )
        if isinstance(part, Gate) and part.measures_time:
            return Gate.of(part.metric, 9e9, part.comparison, part.threshold, measures_time=True)
        return part.model_copy(update=changes)
    if isinstance(part, tuple):
        return tuple(disturbed(item) for item in part)
    return part


def _other(value: Any) -> Any:
    if isinstance(value, dict):
        return dict.fromkeys(value, 123.0)
    return "other" if isinstance(value, str) else 123


def test_a_run_with_other_times_is_equal_without_them():
    report = make_report()
    other = disturbed(report)
    assert other != report
    assert without_time(other) == without_time(report)


def test_a_figure_that_differs_makes_two_runs_differ():
    report = make_report()
    gap = report.logprob_gaps[0].model_copy(update={"mean": 1.0})
    other = report.model_copy(update={"logprob_gaps": (gap, *report.logprob_gaps[1:])})
    assert without_time(other) != without_time(report)


@pytest.mark.parametrize("word", ["wall_s", "cpu_s", "started_at", "opened_at", "peak_memory_mb", "timing", "n_times"])
def test_no_measured_field_is_left(word):
    assert word in make_report().model_dump_json()
    assert f"'{word}'" not in str(without_time(make_report()))


def test_timed_columns_files_and_gate_values_are_left_out_and_the_others_kept():
    kept = without_time(make_report())
    table = kept["steps"][0]["tables"][0]
    assert [column["name"] for column in table["columns"]] == ["family", "mean reward", "pass@1", "usable tasks"]
    assert all(len(row) == 4 for row in table["rows"])
    assert "events.jsonl" not in [entry["name"] for entry in kept["manifest"]]
    idle, padding = kept["steps"][2]["checks"][0], kept["steps"][2]["gate"]
    assert "value" not in idle and "passed" not in idle and padding["value"] == 0.18


def test_what_is_left_is_plain_json():
    import json

    assert isinstance(make_report(), Report)
    assert json.loads(json.dumps(without_time(make_report()))) == without_time(make_report())
