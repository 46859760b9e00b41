"""Markdown, the files on disk, the geometry of charts, and words for numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ladder_report_fixture import make_report

from journeyman.errors import StorageError
from journeyman.ladder.report import charts
from journeyman.ladder.report.figures import Curve, Point, Series
from journeyman.ladder.report.markdown import escape, render_markdown
from journeyman.ladder.report.wording import compact, count, duration, size
from journeyman.ladder.report.write import read_report, write_report


def test_markdown_tables_have_as_many_cells_as_headings_also_with_hostile_text():
    text = render_markdown(make_report(hostile=" | <b>x</b> \n# y ` [a](b)"))
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(blocks) > 15
    for block in blocks:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block}) == 1, block[0]
    assert not re.search(r"(?<!\\)<[a-z/]|(?<!\\)\[a\]\(b", re.sub(r"(?m)^    .*$", "", text))


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("0.945 [0.880, 1.000] < 1, mean_reward, a -> b", "0.945 [0.880, 1.000] < 1, mean_reward, a -> b"),
        ("<b> </b> <!-- &lt; a & b", "\\<b> \\</b> \\<!-- \\&lt; a & b"),
        ("[a](b) [a][b] [a]: c [^1]", "\\[a](b) \\[a][b] \\[a]: c \\[^1]"),
        ("# x", "\\# x"),
        ("- x", "\\- x"),
        ("-0.5", "-0.5"),
        ("> x", "\\> x"),
        ("1. x", "1\\. x"),
        ("1)", "1\\)"),
        ("one of 2. Then", "one of 2. Then"),
        ("_x_ **y** `z` | ~~w~~ \\", "\\_x\\_ \\*\\*y\\*\\* \\`z\\` \\| \\~\\~w\\~\\~ \\\\"),
        ("two\nlines", "two lines"),
    ],
)
def test_only_what_markdown_would_act_on_is_escaped(text, escaped):
    assert escape(text) == escaped


def test_markdown_says_the_verdict_the_honesty_and_both_kinds():
    report = make_report()
    text = render_markdown(report)
    assert text.startswith("# quickstart: ✓ passed\n")
    assert all(escape(line) in text for line in report.honesty)
    assert "| mean_reward | pass@1 |" in text
    assert f"{report.models[2].scores.pass_1.value:.3f}" in text
    assert "Trained minus warm start" in text and "by world" in text


def test_three_files_are_written_and_the_json_reads_back(tmp_path: Path):
    report = make_report()
    paths = write_report(report, tmp_path / "run")
    assert [path.name for path in paths] == ["report.json", "report.md", "report.html"]
    assert read_report(paths[0]) == report
    assert json.loads(paths[0].read_text())["schema_version"] == 1
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["report.html", "report.json", "report.md"]


def test_a_place_that_cannot_be_written_is_a_storage_error_and_keeps_the_old_report(tmp_path: Path):
    run = tmp_path / "run"
    write_report(make_report(), run)
    old = (run / "report.json").read_bytes()
    (run / "report.html").unlink()
    (run / "report.html" / "in the way").mkdir(parents=True)
    with pytest.raises(StorageError, match="cannot be written"):
        write_report(make_report(hostile="new"), run)
    assert (run / "report.json").read_bytes() == old


def curve(*ys: float | None, scale="linear", kind=None) -> Curve:
    points = tuple(Point(x=i, y=y) for i, y in enumerate(ys))
    return Curve(title="t", x_name="x", y_name="y", y_scale=scale, series=(Series(name="s", kind=kind, points=points),))


def test_higher_values_are_drawn_higher_and_inside_the_frame():
    drawn = charts.line_chart(curve(1.0, 5.0, None, 3.0))
    assert drawn is not None
    (x0, y0), (_, y1), (x2, y2) = drawn.lines[0].markers
    assert y1 < y2 < y0 and x0 == charts.LEFT and x2 == charts.WIDTH - charts.RIGHT
    assert y1 == charts.TOP and y0 == charts.HEIGHT - charts.BOTTOM


def test_scores_are_drawn_from_zero_to_one():
    drawn = charts.line_chart(curve(0.4, 0.6, kind="pass@1"))
    assert drawn is not None and [tick.label for tick in drawn.y_ticks] == ["0", "0.25", "0.5", "0.75", "1"]


def test_a_log_axis_leaves_out_what_it_cannot_show_and_marks_decades():
    drawn = charts.line_chart(curve(1e-4, 0.0, 1e-2, scale="log"))
    assert drawn is not None and len(drawn.lines[0].markers) == 2
    assert [tick.label for tick in drawn.y_ticks] == ["0.0001", "0.001", "0.01"]


def test_a_curve_without_points_is_not_drawn_and_one_point_is():
    assert charts.line_chart(curve(None)) is None and charts.line_chart(curve()) is None
    assert charts.line_chart(curve(2.0)) is not None


def test_numbers_have_words():
    assert [duration(s) for s in (None, 4.94, 59.6, 83, 360, 3600, 7500)] == [
        "n/a",
        "4.9 s",
        "1 m",
        "1 m 23 s",
        "6 m",
        "1 h",
        "2 h 5 m",
    ]
    assert (count(11904), count(None), compact(3.1e-8), compact(0.682), compact(12.0)) == (
        "11\u202f904",
        "n/a",
        "3.1e-08",
        "0.682",
        "12",
    )
    assert (size(812), size(2310), size(None)) == ("812 MB", "2.3 GB", "n/a")


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab1 \\`*_[](){}<>#+-.!|~&;:/=\"'^\n", max_size=24))
def test_a_markdown_reader_sees_the_escaped_text_as_it_was(text):
    from html import unescape

    from markdown_it import MarkdownIt

    plain = " ".join(text.split())
    shown = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(escape(text))
    assert unescape(re.sub(r"^<p>|</p>\n$", "", shown)) == plain
