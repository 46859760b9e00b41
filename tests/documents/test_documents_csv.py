"""Delimited text: what is found out about a file, and edits that leave every other byte."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journeyman.documents.delimited import edit, read, write
from journeyman.documents.delimited.grid import Grid, parse
from journeyman.documents.diff import diff
from journeyman.documents.editing import changes_of
from journeyman.documents.errors import BadEdit, NoSuchAddress, UnreadableDocument
from journeyman.documents.node import Document, Node

SHOP = b'item;price;note\r\n"desk, oak";1.200,50;"said ""no"""\r\nlamp;30;\r\n\r\nshelf;5;low\r\n'


def change(data: bytes, *changes: dict[str, object], name: str = "shop.csv") -> bytes:
    return edit(data, name, changes_of(changes, name)).data


def table(*rows: tuple[str, ...], **facts: object) -> Document:
    nodes = tuple(
        Node("row", f"r{r}", "", {}, tuple(Node("cell", f"r{r}c{c}", text) for c, text in enumerate(row, start=1)))
        for r, row in enumerate(rows, start=1)
    )
    return Document("csv", "t.csv", nodes, facts)


def texts(document: Document) -> list[list[str]]:
    return [[cell.text for cell in row.children] for row in document.nodes]


def test_a_file_is_read_with_addresses_quotes_and_blank_lines():
    document = read(SHOP, "shop.csv")
    assert document.find("r2c1").text == "desk, oak"
    assert document.find("r2c3").text == 'said "no"'
    assert document.find("r4").children == ()
    assert document.find("r5c2").text == "5"
    assert document.find("r1").attributes == {"header": True}
    facts = document.metadata
    assert (facts["delimiter"], facts["line_ending"], facts["encoding"]) == ("semicolon", "crlf", "utf-8")


@pytest.mark.parametrize(
    ("text", "encoding", "found"),
    [
        ("Größe;Preis\nMüller;5 €\n", "cp1252", "cp1252"),
        ("город;население\nМосква;13000000\nКазань;1300000\nОмск;1100000\n" * 20, "cp1251", "cp1251"),
        ("都市,人口\n東京都,13960000\n大阪市,2750000\n名古屋市,2330000\n" * 20, "cp932", "cp932"),
        ("a,b\n1,2\n", "utf-16", "utf-16-le"),
        ("naïve,€\n1,2\n", "utf-8-sig", "utf-8"),
        ("a,b\n1,2\n", "utf-16-be", "utf-16-be"),
    ],
)
def test_encodings_are_found(text, encoding, found):
    document = read(text.encode(encoding), "x.csv")
    assert document.metadata["encoding"] == found
    assert texts(document)[0] == text.splitlines()[0].replace(";", ",").split(",")


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", "comma"),
        ("a;b\n1,5;2,5\n", "semicolon"),
        ("a\tb, c\n1\t2, 3\n", "tab"),
        ("a|b\n1|2\n", "pipe"),
        ('"x;y",b\n"1;2",3\n', "comma"),
        ("sep=|\na|b\n", "pipe"),
        ("one column\nonly\n", "comma"),
    ],
)
def test_delimiters_are_found(text, delimiter):
    assert read(text.encode(), "x.csv").metadata["delimiter"] == delimiter


@pytest.mark.parametrize(
    ("text", "is_header"),
    [
        ("name,age\nann,5\n", True),
        ("1,2\n3,4\n", False),
        ("a,a\n1,2\n", False),
        ("x,y\nx,z\n", False),
        ("only\n", False),
    ],
)
def test_a_header_is_guessed(text, is_header):
    assert read(text.encode(), "x.csv").metadata["has_header"] is is_header


def test_an_edit_leaves_every_other_byte():
    edited = change(SHOP, {"op": "set", "address": "r3c2", "value": 35.5})
    assert edited == SHOP.replace(b"lamp;30;", b"lamp;35.5;")


def test_an_edit_quotes_what_needs_it_and_keeps_quotes_that_were_there():
    assert b'\r\n"a;b";30;\r\n' in change(SHOP, {"op": "set", "address": "r3c1", "value": "a;b"})
    assert b'\r\n"plain";1.200,50' in change(SHOP, {"op": "set", "address": "r2c1", "value": "plain"})


@pytest.mark.parametrize("ending", ["\r\n", "\n", "\r"])
def test_line_endings_mark_and_encoding_stay(ending):
    data = ending.join(["naïve,b", "1,2", "3,4"]).encode("utf-8-sig")
    edited = change(data, {"op": "set", "address": "r2c1", "value": "é"})
    assert edited == data.replace(b"1,2", "é,2".encode())


def test_mixed_line_endings_stay_mixed():
    data = b"a,b\r\n1,2\n3,4\r\n"
    assert change(data, {"op": "set", "address": "r2c2", "value": 9}) == b"a,b\r\n1,9\n3,4\r\n"
    assert read(data, "x.csv").metadata["line_ending"] == "mixed"


def test_rows_and_columns_come_and_go():
    data = b"a,b\n1,2\n3,4"
    assert change(data, {"op": "insert_rows", "address": "r2", "values": [["x", 9]]}) == b"a,b\nx,9\n1,2\n3,4"
    assert change(data, {"op": "insert_rows", "address": "r4", "values": [["x", 9]]}) == b"a,b\n1,2\n3,4\nx,9"
    assert change(data, {"op": "delete_rows", "address": "r2:r3"}) == b"a,b"
    assert change(data, {"op": "insert_columns", "address": "c2", "values": ["c", "", 7]}) == b"a,c,b\n1,,2\n3,7,4"
    assert change(data, {"op": "delete_columns", "address": "c1"}) == b"b\n2\n4"


def test_a_report_tells_both_states():
    done = edit(SHOP, "shop.csv", changes_of([{"op": "set", "address": "r5c3", "value": "high"}], "shop.csv"))
    assert [(one.address, one.before, one.after) for one in done.changed] == [("r5c3", "low", "high")]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"op": "set", "address": "r99c1", "value": 1}, NoSuchAddress),
        ({"op": "set", "address": "r2c9", "value": 1}, NoSuchAddress),
        ({"op": "set", "address": "B7", "value": 1}, BadEdit),
        ({"op": "set", "address": "r2c1", "value": [1]}, BadEdit),
        ({"op": "paint", "address": "r2c1"}, BadEdit),
        ({"op": "delete_rows", "address": "r1:r5"}, BadEdit),
    ],
)
def test_impossible_edits_name_the_place(asked, error):
    with pytest.raises(error, match=r"shop\.csv"):
        change(SHOP, asked)


def test_a_letter_that_the_encoding_lacks_is_refused():
    with pytest.raises(BadEdit, match="cp1252"):
        change("Größe;Preis\nMüller;5\n".encode("cp1252"), {"op": "set", "address": "r2c1", "value": "東京"})


@pytest.mark.parametrize("data", [b"", b"\n\n", b'a,b\n"never closed,2\n', b"\x00\x01\x02\x03\x00\x07", b"\xff\xfea"])
def test_what_is_no_table_is_a_typed_error(data):
    with pytest.raises(UnreadableDocument, match=r"x\.csv"):
        read(data, "x.csv")


def test_quotes_tell_which_of_two_delimiters_cuts_the_fields():
    assert texts(read(b'""\t";0"\n', "t.csv")) == [["", ";0"]]
    assert texts(read(b'"a,b"|"c,d"\n"e,f"|"g,h"\n', "t.csv")) == [["a,b", "c,d"], ["e,f", "g,h"]]


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=("Cs",)), max_size=8)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[CELLS] * width), min_size=1, max_size=6)),
    st.sampled_from(["comma", "semicolon", "tab", "pipe"]),
    st.sampled_from(["lf", "crlf", "cr"]),
)
def test_what_is_written_reads_back(rows, delimiter, ending):
    written = write(table(*rows, delimiter=delimiter, line_ending=ending))
    document = read(written, "t.csv")
    assert texts(document) == [list(row) for row in rows]
    assert read(write(document), "t.csv") == document


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=6))
def test_values_are_those_of_the_standard_library(rows):
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows(rows)
    assert [row.values() for row in parse(out.getvalue(), "x.csv", delimiter=",").rows] == rows


@settings(max_examples=150, deadline=None)
@given(st.text('a"\n\r,;x', max_size=30))
def test_parsing_loses_nothing(text):
    try:
        grid = parse(text, "x.csv")
    except UnreadableDocument:
        return
    assert isinstance(grid, Grid)
    assert grid.text() == text


def test_the_difference_of_two_tables_is_what_was_done():
    edited = change(SHOP, {"op": "set", "address": "r3c2", "value": 31})
    assert [(e.kind, e.address, e.before, e.after) for e in diff(SHOP, edited, "a.csv", "b.csv").entries] == [
        ("input", "r3c2", "30", "31")
    ]
    inserted = change(SHOP, {"op": "insert_rows", "address": "r3", "values": [["bed", 99, "new"]]})
    assert [(e.what, e.address) for e in diff(SHOP, inserted, "a.csv", "b.csv").entries] == [("row inserted", "r3")]
