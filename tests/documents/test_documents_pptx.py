"""Presentations: groups, tables, charts and notes are read, and edits say what the saved file holds."""

from __future__ import annotations

import io
import zipfile

import pptx as python_pptx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import load_workbook
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Pt

from journeyman.documents import pptx
from journeyman.documents.errors import BadEdit, NoSuchAddress, UnreadableDocument, WrongKind
from journeyman.documents.node import Document, Node


@pytest.fixture(scope="module")
def deck() -> bytes:
    file = python_pptx.Presentation()
    first = file.slides.add_slide(file.slide_layouts[5])
    first.shapes.title.text = "Revenue"
    first.notes_slide.notes_text_frame.text = "Say this\nthen that"
    box = first.shapes.add_textbox(Pt(10), Pt(20), Pt(200), Pt(40))
    run = box.text_frame.paragraphs[0].add_run()
    run.text = "grew by "
    strong = box.text_frame.paragraphs[0].add_run()
    strong.text, strong.font.bold = "5 %", True
    group = first.shapes.add_group_shape()
    group.shapes.add_textbox(Pt(1), Pt(1), Pt(9), Pt(9)).text_frame.text = "deep"
    second = file.slides.add_slide(file.slide_layouts[6])
    second._element.set("show", "0")
    table = second.shapes.add_table(2, 2, Pt(10), Pt(10), Pt(300), Pt(80)).table
    table.cell(0, 0).text, table.cell(1, 1).text = "Item", "42"
    data = CategoryChartData()
    data.categories = ["Q1", "Q2"]
    data.add_series("Net", (1.5, 2.5))
    second.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Pt(10), Pt(100), Pt(300), Pt(200), data)
    out = io.BytesIO()
    file.save(out)
    return out.getvalue()


def parts(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as container:
        return {name: container.read(name) for name in container.namelist()}


def changed_parts(before: bytes, after: bytes) -> set[str]:
    old, new = parts(before), parts(after)
    return {name for name in old | new if old.get(name) != new.get(name)}


def titles(data: bytes) -> list[str]:
    """What another reader sees."""
    slides = python_pptx.Presentation(io.BytesIO(data)).slides
    return ["" if slide.shapes.title is None else slide.shapes.title.text for slide in slides]


def test_groups_tables_charts_notes_and_hidden_slides_are_read(deck: bytes):
    document = pptx.read(deck, "d.pptx")
    assert document.find("s1").attributes["title"] == "Revenue"
    assert document.find("s1/notes").text == "Say this\nthen that"
    group = next(node for node in document.walk() if node.kind == "group")
    assert [child.text for child in group.children] == ["deep"]
    assert document.find("s2/sh2/r2c2").text == "42"
    series = document.find("s2/sh3/series1")
    assert (series.text, series.attributes["categories"], series.attributes["values"]) == (
        "Net",
        ["Q1", "Q2"],
        [1.5, 2.5],
    )
    assert document.find("s2").attributes["hidden"]
    assert "hidden slides: s2" in document.warnings


def test_a_text_is_set_and_the_format_of_what_stays_is_kept(deck: bytes):
    edited = pptx.edit(deck, "d.pptx", [{"op": "set", "address": "s1/sh3", "text": "grew by 6 %"}])
    assert edited.changed[0].after == "grew by 6 %"
    runs = pptx.read(edited.data, "d.pptx").find("s1/sh3").attributes["paragraphs"][0]["runs"]
    assert runs == [{"text": "grew by "}, {"text": "6 %", "bold": True}]
    assert changed_parts(deck, edited.data) == {"ppt/slides/slide1.xml"}


def test_a_replacement_works_across_runs_and_in_notes(deck: bytes):
    changes = [{"op": "replace", "old": "by 5", "new": "to 5"}, {"op": "replace", "old": "this", "new": "it"}]
    edited = pptx.edit(deck, "d.pptx", changes)
    document = pptx.read(edited.data, "d.pptx")
    assert document.find("s1/sh3").text == "grew to 5 %"
    assert document.find("s1/notes").text == "Say it\nthen that"


def test_chart_values_are_set_in_the_chart_and_in_its_workbook(deck: bytes):
    change = {"op": "set", "address": "s2/sh3/series1", "values": [3, 4.5], "name": "Gross"}
    edited = pptx.edit(deck, "d.pptx", [change])
    assert edited.changed[0].before == {"name": "Net", "values": [1.5, 2.5]}
    assert edited.changed[0].after == {"name": "Gross", "values": [3.0, 4.5]}
    assert edited.changed[0].note == ""
    plot = python_pptx.Presentation(io.BytesIO(edited.data)).slides[1].shapes[1].chart.plots[0]
    assert list(plot.series[0].values) == [3, 4.5]
    book = next(content for name, content in parts(edited.data).items() if name.endswith(".xlsx"))
    assert [cell.value for cell in load_workbook(io.BytesIO(book)).active["B"]] == ["Gross", 3, 4.5]


def test_more_values_than_the_workbook_has_rows_are_said_to_differ(deck: bytes):
    edited = pptx.edit(deck, "d.pptx", [{"op": "set", "address": "s2/sh3/series1", "values": [1, 2, 3]}])
    assert "still holds the old" in edited.changed[0].note


def test_slides_are_added_duplicated_moved_and_deleted(deck: bytes):
    changes = [
        {"op": "insert", "address": "s1", "layout": "Title and Content", "title": "New", "text": "one\ntwo"},
        {"op": "duplicate", "address": "s1"},
        {"op": "move", "address": "s2", "to": 1},
    ]
    edited = pptx.edit(deck, "d.pptx", changes)
    assert titles(edited.data) == ["", "Revenue", "Revenue", "New"]
    assert [report.address for report in edited.changed] == ["s4", "s3", "s1"]
    assert pptx.read(edited.data, "d.pptx").find("s3/notes").text == "Say this\nthen that"
    again = pptx.edit(edited.data, "d.pptx", [{"op": "delete", "address": "s3"}, {"op": "delete", "address": "s1"}])
    assert titles(again.data) == ["Revenue", "New"]
    assert not [name for name in parts(again.data) if "slide2.xml" in name]


def test_a_copy_of_a_slide_has_charts_of_its_own(deck: bytes):
    copied = pptx.edit(deck, "d.pptx", [{"op": "duplicate", "address": "s2"}]).data
    edited = pptx.edit(copied, "d.pptx", [{"op": "set", "address": "s3/sh3/series1", "values": [9, 9]}])
    document = pptx.read(edited.data, "d.pptx")
    assert document.find("s2/sh3/series1").attributes["values"] == [1.5, 2.5]
    assert document.find("s3/sh3/series1").attributes["values"] == [9.0, 9.0]


def test_positions_are_set_in_points_and_read_back(deck: bytes):
    edited = pptx.edit(deck, "d.pptx", [{"op": "place", "address": "s1/sh3", "x_pt": 72, "width_pt": 144.5}])
    assert edited.changed[0].after == {"x_pt": 72.0, "y_pt": 20.0, "width_pt": 144.5, "height_pt": 40.0}


def test_shapes_are_deleted_and_slides_hidden(deck: bytes):
    changes = [{"op": "delete", "address": "s1/sh3"}, {"op": "set", "address": "s2", "hidden": False}]
    document = pptx.read(pptx.edit(deck, "d.pptx", changes).data, "d.pptx")
    assert not document.warnings
    with pytest.raises(NoSuchAddress):
        document.find("s1/sh3")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"op": "set", "address": "s2/sh3", "text": "x"}, "no text of its own"),
        ({"op": "set", "address": "s2/sh3/series1", "values": ["a"]}, "list of numbers"),
        ({"op": "insert", "layout": "Nothing"}, "Title and Content"),
        ({"op": "move", "address": "s1", "to": 3}, "1 to 2"),
        ({"op": "place", "address": "s1/sh2", "x_pt": 1}, "all four"),
        ({"op": "replace", "old": "absent", "new": ""}, "does not occur"),
    ],
)
def test_a_change_that_cannot_be_made_says_why(deck: bytes, change, problem: str):
    with pytest.raises(BadEdit, match=problem):
        pptx.edit(deck, "d.pptx", [change])


def test_a_presentation_that_another_program_saved_again_reads_the_same(deck: bytes):
    out = io.BytesIO()
    python_pptx.Presentation(io.BytesIO(deck)).save(out)
    assert pptx.read(out.getvalue(), "d.pptx").nodes == pptx.read(deck, "d.pptx").nodes


def test_damaged_files_are_typed_errors(deck: bytes):
    with pytest.raises(UnreadableDocument):
        pptx.read(deck[:5000], "d.pptx")
    with pytest.raises(WrongKind):
        pptx.read(b"\xd0\xcf\x11\xe0 old", "d.pptx")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        for name, content in parts(deck).items():
            target.writestr(name, b"<" if name == "ppt/slides/slide1.xml" else content)
    document = pptx.read(out.getvalue(), "d.pptx")
    assert [node.address for node in document.nodes] == ["s2"]
    assert any("slide1.xml" in warning for warning in document.warnings)


TEXT = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs"), include_characters="\n"), max_size=15)
SHAPES = st.builds(
    lambda text, x: Node("shape", "", text, {"x_pt": x, "y_pt": 5.0}), TEXT, st.sampled_from([1.0, 72.5])
)
NOTES = st.builds(lambda text: Node("notes", "", text), TEXT)
NUMBERS = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
CHARTS = st.builds(
    lambda name, values: Node(
        "chart",
        "",
        "",
        {"chart": ["barChart"]},
        (Node("series", "", name, {"values": values, "categories": [f"c{at}" for at in range(len(values))]}),),
    ),
    st.text("abc", min_size=1, max_size=5),
    st.lists(NUMBERS, min_size=1, max_size=4),
)
SLIDES = st.builds(
    lambda shapes, notes, hidden: Node("slide", "", "", {"hidden": True} if hidden else {}, (*shapes, *notes)),
    st.lists(st.one_of(SHAPES, CHARTS), max_size=3),
    st.lists(NOTES, max_size=1),
    st.booleans(),
)


def facts(node: Node) -> tuple:
    kept = {key: node.attributes[key] for key in ("x_pt", "hidden", "values", "categories") if key in node.attributes}
    children = [facts(child) for child in node.children]
    return node.kind, node.text, kept, children


@settings(max_examples=10, deadline=None)
@given(st.lists(SLIDES, min_size=1, max_size=2))
def test_what_was_written_is_read_back_and_writing_that_again_changes_nothing(slides: list[Node]):
    document = Document("pptx", "x.pptx", tuple(slides), {"title": "Deck"})
    data = pptx.write(document)
    read = pptx.read(data, "x.pptx")
    for (_, _, _, got), wanted in zip(map(facts, read.nodes), slides, strict=True):
        for child, original in zip(got, wanted.children, strict=True):
            expected = facts(original)
            assert (child[0], child[1], child[3]) == (expected[0], expected[1], expected[3])
            assert expected[2].items() <= child[2].items()
    assert pptx.read(pptx.write(read), "x.pptx") == read
    assert pptx.write(document) == data
