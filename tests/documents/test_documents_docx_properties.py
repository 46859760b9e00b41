"""Properties of Word documents: what was written is read back equal, and edits do what they say on any text."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from journeyman.documents import docx
from journeyman.documents.node import Document, Node

TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Co", "Cn"), include_characters="\t\n"), max_size=12
)
FORMATS = st.fixed_dictionaries(
    {},
    optional={
        "bold": st.just(True),
        "italic": st.just(True),
        "underline": st.just("single"),
        "size_pt": st.sampled_from([8.0, 10.5, 12.0]),
        "color": st.sampled_from(["FF0000", "00FF00"]),
        "font": st.sampled_from(["Arial", "Cambria"]),
        "link": st.sampled_from(["https://example.org/a", "#mark"]),
    },
)
STYLES = st.sampled_from([{}, {"style": "heading 1", "heading": 1}, {"style": "Title"}, {"alignment": "center"}])


def paragraphs(address: str) -> st.SearchStrategy[Node]:
    return st.builds(_paragraph, st.just(address), st.lists(st.tuples(TEXT, FORMATS), max_size=4), STYLES)


def _paragraph(address: str, runs: list[tuple[str, dict]], style: dict) -> Node:
    merged: list[tuple[str, dict]] = []
    for text, formats in runs:
        if text and merged and merged[-1][1] == formats:
            merged[-1] = (merged[-1][0] + text, formats)
        elif text:
            merged.append((text, formats))
    attributes = dict(style)
    if any(formats for _, formats in merged):
        attributes["runs"] = [{"text": text, **formats} for text, formats in merged]
    return Node("paragraph", address, "".join(text for text, _ in merged), attributes)


@st.composite
def tables(draw, address: str) -> Node:
    rows, columns = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    made = []
    for row in range(1, rows + 1):
        cells, column = [], 1
        while column <= columns:
            width = draw(st.integers(1, columns - column + 1))
            place = f"{address}/r{row}c{column}"
            wide = {"columns": width} if width > 1 else {}
            cells.append(Node("cell", place, "", wide, (draw(paragraphs(f"{place}/p1")),)))
            column += width
        made.append(Node("row", f"{address}/r{row}", "", {"columns": columns}, tuple(cells)))
    return Node("table", address, "", {"rows": rows, "columns": columns}, tuple(made))


@st.composite
def documents(draw) -> Document:
    blocks, counts = [], {"p": 0, "t": 0}
    for kind in draw(st.lists(st.sampled_from("ppt"), max_size=5)):
        counts[kind] += 1
        blocks.append(draw((paragraphs if kind == "p" else tables)(f"body/{kind}{counts[kind]}")))
    nodes = [Node("body", "body", "", {}, tuple(blocks))]
    return Document("docx", "x.docx", tuple(nodes), draw(st.sampled_from([{}, {"title": "Report", "author": "Ann"}])))


@settings(max_examples=12, deadline=None)
@given(documents())
def test_what_was_written_is_read_back_equal(document: Document):
    assert docx.read(docx.write(document), "x.docx") == document


@settings(max_examples=12, deadline=None)
@given(documents(), TEXT, st.data())
def test_any_paragraph_can_be_set_to_any_text_and_the_others_stay(document: Document, text: str, data):
    places = [node for node in document.walk() if node.kind == "paragraph"]
    if not places:
        return
    place = data.draw(st.sampled_from(places))
    edited = docx.edit(docx.write(document), "x.docx", [{"op": "set", "address": place.address, "text": text}])
    after = docx.read(edited.data, "x.docx")
    expected = {node.address: text if node is place else node.text for node in document.walk()}
    assert {node.address: node.text for node in after.walk()} == expected


@settings(max_examples=12, deadline=None)
@given(documents(), TEXT, st.data())
def test_a_redline_accepted_is_the_new_text_and_rejected_the_old(document: Document, new: str, data):
    places = [node for node in document.walk() if node.kind == "paragraph" and node.text]
    if not places:
        return
    place = data.draw(st.sampled_from(places))
    start = data.draw(st.integers(0, len(place.text) - 1))
    old = place.text[start : data.draw(st.integers(start + 1, len(place.text)))]
    if place.text.count(old) != 1 or old == new:
        return
    change = {"op": "redline", "address": place.address, "old": old, "new": new, "author": "Bo"}
    edited = docx.edit(docx.write(document), "x.docx", [change]).data
    node = docx.read(edited, "x.docx").find(place.address)
    assert (node.text, node.attributes["original"]) == (place.text.replace(old, new), place.text)
    for op, expected in (("accept", place.text.replace(old, new)), ("reject", place.text)):
        settled = docx.read(docx.edit(edited, "x.docx", [{"op": op}]).data, "x.docx").find(place.address)
        assert (settled.text, "original" in settled.attributes) == (expected, False)
