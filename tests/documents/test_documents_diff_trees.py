"""Differences of documents that are no workbooks: one for one change, moves as moves, whatever the format."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import docx
import pptx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reportlab.pdfgen import canvas

from journeyman.documents.diff import diff
from journeyman.documents.diff.align import align
from journeyman.documents.diff.region import Region
from journeyman.documents.diff.trees import diff_documents
from journeyman.documents.node import Document, Node

SAID = [f"Paragraph number {n} says something about topic {7 * n}." for n in range(8)]


def saved(document: Any) -> bytes:
    out = BytesIO()
    document.save(out)
    return out.getvalue()


def letter(change: Callable[[Any], None] = lambda document: None) -> bytes:
    document = docx.Document()
    document.add_heading("Report", 1)
    for text in SAID:
        document.add_paragraph(text)
    table = document.add_table(2, 2)
    table.cell(0, 0).text, table.cell(1, 1).text = "price", "5"
    change(document)
    return saved(document)


def deck(change: Callable[[Any], None] = lambda slides: None) -> bytes:
    slides = pptx.Presentation()
    for number in range(4):
        slide = slides.slides.add_slide(slides.slide_layouts[1])
        slide.shapes.title.text = f"Slide {number}"
        slide.placeholders[1].text = f"Body of slide {number}"
    change(slides)
    return saved(slides)


def move_paragraph(document: Any) -> None:
    document.paragraphs[6]._p.addnext(document.paragraphs[2]._p)


def move_slide(slides: Any) -> None:
    order = slides.slides._sldIdLst
    order.append(order[0])


def drop_slide(slides: Any) -> None:
    order = slides.slides._sldIdLst
    slides.part.drop_rel(order[1].rId)
    order.remove(order[1])


def assign(thing: Any, word: str, value: object) -> None:
    setattr(thing, word, value)


MAIL = (
    b"From: ann@example.org\r\nTo: bob@example.org\r\nSubject: Offer\r\nDate: Mon, 05 Jan 2026 10:00:00 +0000\r\n"
    b"Message-ID: <1@example.org>\r\nContent-Type: text/plain\r\n\r\nDear Bob,\r\nthe price is 5.\r\n"
)


def box(*numbers: int) -> bytes:
    letters = [MAIL.replace(b"<1@", b"<%d@" % n).replace(b"Offer", b"Offer %d" % n) for n in numbers]
    return b"".join(b"From x Mon Jan  5 10:00:00 2026\n" + one.replace(b"\r\n", b"\n") + b"\n" for one in letters)


CALENDAR = b"\r\n".join([
    b"BEGIN:VCALENDAR", b"VERSION:2.0", b"PRODID:-//x//y//EN", b"BEGIN:VEVENT", b"UID:1@x", b"DTSTAMP:20260101T000000Z",
    b"DTSTART:20260105T100000Z", b"DTEND:20260105T110000Z", b"SUMMARY:Review", b"END:VEVENT", b"END:VCALENDAR", b"",
])  # fmt: skip

CHAT = b'[{"type":"message","user":"U1","ts":"1767600000.000100","text":"hello"}]'


def page(profit: int) -> bytes:
    out = BytesIO()
    sheet = canvas.Canvas(out, invariant=1)
    for row, text in enumerate(("The annual report", f"The profit was {profit} million in the year.", "Thank you.")):
        sheet.drawString(72, 720 - 40 * row, text)
    sheet.save()
    return out.getvalue()


CASES: dict[str, tuple[str, bytes, bytes, list[tuple[str, str, str]]]] = {
    "a word of a paragraph": (
        "a.docx",
        letter(),
        letter(lambda d: assign(d.paragraphs[3].runs[0], "text", SAID[2].replace("14", "99"))),
        [("input", "paragraph", "body/p4")],
    ),
    "a new paragraph": (
        "a.docx",
        letter(),
        letter(lambda d: d.paragraphs[3].insert_paragraph_before("A wholly new thought.")),
        [("structure", "paragraph inserted", "body/p4")],
    ),
    "a moved paragraph": ("a.docx", letter(), letter(move_paragraph), [("structure", "paragraph moved", "body/p7")]),
    "a cell of a table": (
        "a.docx",
        letter(),
        letter(lambda d: assign(d.tables[0].cell(1, 1), "text", "6")),
        [("input", "paragraph", "body/t1/r2c2/p1")],
    ),
    "a bold paragraph": (
        "a.docx",
        letter(),
        letter(lambda d: assign(d.paragraphs[4].runs[0], "bold", True)),
        [("style", "paragraph look", "body/p5")],
    ),
    "a moved slide": ("a.pptx", deck(), deck(move_slide), [("structure", "slide moved", "s4")]),
    "a deleted slide": ("a.pptx", deck(), deck(drop_slide), [("structure", "slide deleted", "s2")]),
    "a title": (
        "a.pptx",
        deck(),
        deck(lambda d: assign(d.slides[1].shapes.title, "text", "Changed")),
        [("input", "shape", "s2/sh2")],
    ),
    "a shape elsewhere": (
        "a.pptx",
        deck(),
        deck(lambda d: assign(d.slides[1].shapes.title, "left", 9525)),
        [("style", "shape look", "s2/sh2")],
    ),
    "a mail's text": (
        "a.eml",
        MAIL,
        MAIL.replace(b"price is 5", b"price is 6"),
        [("input", "body", "msg:1@example.org/body")],
    ),
    "a mail's date": (
        "a.eml",
        MAIL,
        MAIL.replace(b"05 Jan", b"06 Jan").replace(b"Mon,", b"Tue,"),
        [("input", "header", "msg:1@example.org/header/date")],
    ),
    "a moved mail": ("a.mbox", box(1, 2, 3), box(2, 3, 1), [("structure", "message moved", "msg:1@example.org")]),
    "a new mail": ("a.mbox", box(1, 2), box(1, 3, 2), [("structure", "message inserted", "msg:3@example.org")]),
    "a meeting's start": (
        "a.ics",
        CALENDAR,
        CALENDAR.replace(b"T100000Z", b"T103000Z"),
        [("input", "event fact", "event:1@x")],
    ),
    "a chat message": (
        "general.json",
        CHAT,
        CHAT.replace(b"hello", b"hallo"),
        [("input", "message", "#general/1767600000.000100")],
    ),
    "a number on a page": ("a.pdf", page(5), page(6), [("input", "paragraph", "p1@72,153,256,164")]),
    "a field of a table": ("a.csv", b"a,b\n1,2\n3,4\n", b"a,b\n1,9\n3,4\n", [("input", "cell", "r2c2")]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_single_change_is_found_exactly_and_alone(case):
    name, before, after, expected = CASES[case]
    assert [(one.kind, one.what, one.address) for one in diff(before, after, name, name).entries] == expected


@pytest.mark.parametrize("case", CASES)
def test_the_opposite_comparison_mirrors_it(case):
    name, before, after, _ = CASES[case]
    there, back = diff(before, after, name, name).entries, diff(after, before, name, name).entries
    assert [(one.kind, one.after, one.before) for one in back] == [(one.kind, one.before, one.after) for one in there]


@pytest.mark.parametrize("case", CASES)
def test_a_document_does_not_differ_from_itself(case):
    name, before, _, _ = CASES[case]
    assert diff(before, before, name, f"other-{name}").entries == ()


def test_documents_of_two_formats_are_compared_by_what_they_say():
    found = diff(b"a;b\n1;2\n", b"a\tb\n1\t3\n", "a.csv", "a.tsv")
    assert [(one.kind, one.address, one.after) for one in found.entries] == [("input", "r2c2", "3")]


ITEMS = st.lists(st.sampled_from("abcdef "), max_size=12)


@settings(max_examples=300, deadline=None)
@given(ITEMS, ITEMS)
def test_an_alignment_accounts_for_every_item_once(a, b):
    found = align(a, b, is_blank=str.isspace)
    seen_a = [i for i, _ in found.kept] + [i for i, _ in found.moved] + list(found.deleted)
    seen_b = [j for _, j in found.kept] + [j for _, j in found.moved] + list(found.inserted)
    assert sorted(seen_a) == list(range(len(a)))
    assert sorted(seen_b) == list(range(len(b)))
    assert [j for _, j in found.kept] == sorted(j for _, j in found.kept)
    assert all(a[i] == b[j] for i, j in found.moved)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=5), unique=True, min_size=1, max_size=10), st.data())
def test_one_moved_paragraph_is_one_difference(texts, data):
    start = data.draw(st.integers(0, len(texts) - 1))
    end = data.draw(st.integers(0, len(texts) - 1))
    moved = [*texts[:start], *texts[start + 1 :]]
    moved.insert(end, texts[start])

    def document(lines: list[str]) -> Document:
        return Document("docx", "a", tuple(Node("paragraph", f"p{n}", text) for n, text in enumerate(lines)))

    found = diff_documents(document(texts), document(moved)).entries
    assert [one.what for one in found] == (["paragraph moved"] if moved != texts else [])


def test_a_region_covers_what_hangs_on_its_cells_and_no_more():
    region = Region(["Data!A1:C9", "sheet:Notes", "body/p*", "name:Rate"])
    for inside in ("Data!B2", "Data!A1:B2", "Data!B2/comment", "Notes!Z99", "sheet:Notes", "body/p12", "name:Rate"):
        assert region.covers(inside), inside
    for outside in ("Data!D1", "Data!A1:D9", "Data!2:2", "Other!A1", "sheet:Data", "body/t1", "name:Rates"):
        assert not region.covers(outside), outside
