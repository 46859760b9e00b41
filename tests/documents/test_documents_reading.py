"""Readers on real files: what was written comes back, and what is damaged is refused with one error type."""

from __future__ import annotations

import json
from email.message import EmailMessage
from email.policy import SMTP
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journeyman.documents import UnreadableDocument, cell, read
from journeyman.documents.reading import READERS
from journeyman.documents.serve import handle, handle_many
from journeyman.worlds.mini.render import RENDERERS, render_owners

PLAIN = st.text(st.sampled_from("abcXYZ019 .,;:'\"-+()/&<>äéß|"), min_size=1, max_size=12).filter(
    lambda text: text == text.strip() and "  " not in text
)
"""One line of text as people type it into cells; no claim beyond."""

WORDS = st.text(st.sampled_from("abcXYZ019-&<>'"), min_size=1, max_size=12)
"""For PDF, whose reader joins words by their distance on the page."""

LINES = [["Client", "Q1", "Q2"], ["Acme", 412, 377], ["Birch", 105, 999]]


def tables(texts: st.SearchStrategy[str]) -> st.SearchStrategy[list[list[str | int]]]:
    """Tables of 2-4 columns and 1-4 rows with text labels and integer cells, labels all different."""
    return st.integers(2, 4).flatmap(
        lambda width: st.lists(texts, min_size=width + 4, max_size=width + 4, unique=True).flatmap(
            lambda labels: st.lists(
                st.lists(st.integers(-999, 99999), min_size=width - 1, max_size=width - 1), min_size=1, max_size=4
            ).map(
                lambda rows: [
                    labels[:width],
                    *[[labels[width + number], *row] for number, row in enumerate(rows)],
                ]
            )
        )
    )


def as_text(lines: list[list[str | int]]) -> list[list[str]]:
    return [[str(value) for value in line] for line in lines]


def lines_of(data: bytes, name: str) -> list[list[str]]:
    (table,) = read(data, name)["tables"]
    return [table["header"], *table["rows"]]


@pytest.mark.parametrize("suffix", ["csv", "docx", "xlsx"])
@settings(max_examples=25, deadline=None)
@given(lines=tables(PLAIN))
def test_a_table_written_and_read_is_the_same_table(suffix: str, lines: list[list[str | int]]) -> None:
    assert lines_of(RENDERERS[suffix]("sheet", lines), f"any.{suffix}") == as_text(lines)


@settings(max_examples=25, deadline=None)
@given(lines=tables(WORDS))
def test_a_ruled_pdf_table_comes_back_with_its_cells(lines: list[list[str | int]]) -> None:
    assert lines_of(RENDERERS["pdf"]("sheet", lines), "any.pdf") == as_text(lines)


NAME = st.text(st.sampled_from("abcXYZäé-'"), min_size=1, max_size=10)


@settings(max_examples=50, deadline=None)
@given(clients=st.dictionaries(NAME, NAME, min_size=1, max_size=6))
def test_the_entries_of_a_mail_come_back_as_a_table(clients: dict[str, str]) -> None:
    tree = read(render_owners(clients), "owners.eml")
    assert {person: cell(tree, person) for person in clients} == clients


@pytest.mark.parametrize("suffix", sorted(RENDERERS))
def test_every_format_gives_the_same_cells_and_says_where_they_are(suffix: str) -> None:
    tree = read(RENDERERS[suffix]("sales", LINES), f"sales.{suffix}")
    assert tree["format"] == suffix
    assert cell(tree, "Birch", "Q2") == "999"
    assert "412" in tree["text"]
    expected = {"csv": "lines 1-3", "docx": "body, table 1", "xlsx": "sales!A1:C3", "pdf": "page 1, box"}
    assert tree["tables"][0]["where"].startswith(expected[suffix])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_delimiter_and_encoding_of_a_csv_are_found(delimiter: str, encoding: str) -> None:
    rows = [["Kunde", "Größe", "Q2"], ["Müller", "1.5", "2"], ["Acme", "3", "4"]]
    text = "\r\n".join(delimiter.join(row) for row in rows) + "\r\n"
    assert lines_of(text.encode(encoding), "a.csv") == rows


def test_decimal_commas_do_not_hide_a_semicolon_file() -> None:
    assert lines_of(b"Name;Q1;Q2\nAcme;1,5;2,5\n", "a.csv") == [["Name", "Q1", "Q2"], ["Acme", "1,5", "2,5"]]


@pytest.mark.parametrize("suffix", ["docx", "pdf", "xlsx"])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_unreadable_or_read_and_never_another_error(suffix: str, data: st.DataObject) -> None:
    whole = RENDERERS[suffix]("sales", LINES)
    start = data.draw(st.integers(0, len(whole) - 1))
    noise = data.draw(st.binary(min_size=1, max_size=64))
    damaged = whole[:start] + noise + whole[start + len(noise) :]
    try:
        read(damaged, f"sales.{suffix}")
    except UnreadableDocument as error:
        assert str(error).startswith(f"sales.{suffix}: ")


@pytest.mark.parametrize("suffix", ["docx", "xlsx"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_a_truncated_container_is_unreadable(suffix: str, share: float) -> None:
    whole = RENDERERS[suffix]("sales", LINES)
    with pytest.raises(UnreadableDocument, match="damaged"):
        read(whole[: int(len(whole) * share)], f"sales.{suffix}")


@pytest.mark.parametrize("share", [0.02, 0.2])
def test_a_truncated_pdf_is_unreadable(share: float) -> None:
    whole = RENDERERS["pdf"]("sales", LINES)
    with pytest.raises(UnreadableDocument, match="damaged pdf"):
        read(whole[: int(len(whole) * share)], "sales.pdf")


@pytest.mark.parametrize("suffix", sorted(READERS))
@pytest.mark.parametrize("content", sorted(RENDERERS))
def test_a_file_under_a_wrong_name_is_unreadable(suffix: str, content: str) -> None:
    if {suffix, content} <= {"csv", "tsv"} or suffix == content:
        return
    with pytest.raises(UnreadableDocument, match=f"the name says {suffix}|no mail header"):
        read(RENDERERS[content]("sales", LINES), f"sales.{suffix}")


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("a.xlsx", b"", "empty"),
        ("a.pptx", b"x", "no reader for 'pptx'"),
        ("noname", b"x", "no reader"),
        ("a.csv", b"\x00\x01\x02", "not text"),
        ("a.csv", b"\n\n", "no row"),
        ("a.csv", b'a,b\n"c,d\n', "damaged csv"),
        ("a.eml", b"just a line\n", "no mail header"),
        ("a.eml", b'Subject: x\nContent-Type: multipart/mixed; boundary="b"\n\n--b\n\ncut', "CloseBoundaryNotFound"),
    ],
)
def test_what_no_reader_can_use_is_refused_with_a_reason(name: str, data: bytes, problem: str) -> None:
    with pytest.raises(UnreadableDocument, match=problem):
        read(data, name)


def test_a_zip_bomb_is_refused_before_it_is_unpacked() -> None:
    from zipfile import ZIP_DEFLATED, ZipFile

    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED, compresslevel=1) as container:
        for number in range(5):
            container.writestr(f"xl/workbook{number or ''}.xml", bytes(60_000_000))
    with pytest.raises(UnreadableDocument, match="unpack to 300000000 bytes"):
        read(buffer.getvalue(), "bomb.xlsx")


def test_html_mail_without_entries_has_no_table() -> None:
    message = EmailMessage(policy=SMTP)
    message["Subject"] = "Hello"
    message.set_content("<p>hello</p>", subtype="html")
    assert read(message.as_bytes(), "a.eml")["tables"] == []


def test_same_bytes_give_the_same_tree_and_many_at_once_the_same_as_one_by_one() -> None:
    files = [(f"sales.{suffix}", render("sales", LINES)) for suffix, render in RENDERERS.items()]
    header = json.dumps([[name, len(data)] for name, data in files]).encode()
    answers = json.loads(handle_many(header + b"\n" + b"".join(data for _, data in files)))
    assert answers == [json.loads(handle(name.encode() + b"\n" + data)) for name, data in files]


def test_an_unreadable_document_does_not_spoil_the_batch() -> None:
    header = json.dumps([["bad.xlsx", 3], ["good.csv", 8]]).encode()
    bad, good = json.loads(handle_many(header + b"\n" + b"abc" + b"a,b\n1,2\n"))
    assert bad == {"unreadable": "the name says xlsx, the content is something else"}
    assert good["tables"][0]["rows"] == [["1", "2"]]
    with pytest.raises(UnreadableDocument, match=r"bad\.xlsx"):
        handle(b"bad.xlsx\nabc")
