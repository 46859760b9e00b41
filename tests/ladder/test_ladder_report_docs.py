"""docs/report.md says what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from ladder_report_fixture import make_report

from journeyman.evals.score import KINDS
from journeyman.ladder.report.model import Report
from journeyman.ladder.report.schema import models_below, schema_markdown
from journeyman.ladder.report.write import write_report

PAGE = (Path(__file__).parents[2] / "docs" / "report.md").read_text()
MADE_BY = "<!-- made by: python -m journeyman.ladder.report.schema -->\n"


def test_the_schema_on_the_page_is_the_schema_of_the_code():
    hint = "run python -m journeyman.ladder.report.schema and paste its output below the mark in docs/report.md"
    assert PAGE.partition(MADE_BY)[2].strip() == schema_markdown().strip(), hint


def test_every_model_has_a_docstring_and_a_section():
    models = models_below(Report)
    assert len(models) > 25
    assert all(model.__doc__ and f"### {model.__name__}\n" in PAGE for model in models)


def test_the_page_lists_every_score_kind():
    for kind, meaning in KINDS.items():
        assert f"| `{kind}` | {meaning} |" in PAGE


def test_the_example_on_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_report(make_report(), tmp_path / "a")
    write_report(make_report(), tmp_path / "b")
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.S):
        exec(compile(block, "docs/report.md", "exec"), {})
    assert capsys.readouterr().out == "True\n"
