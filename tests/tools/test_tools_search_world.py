"""What can be read can be found: facts planted in every kind of file are found by the words they are written with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from journeyman.sandbox.protocol import Sandbox
from journeyman.tools import SandboxTools

FACTS = {
    "notes.txt": ("harbour fee 7341", "lines 41-45"),
    "data/rows.csv": ("tollgate 8812", "r21c1 to r31c2"),
    "model.xlsx": ("ballast 9051.5", "Cargo!A21 to Cargo!B31"),
    "memo.docx": ("demurrage clause 17b", "body/p9 to "),
    "deep.docx": ("footer stamp QX-55", "footer1"),
    "talk.pptx": ("winch upgrade 4410", "s2"),
    "terms.pdf": ("lighterage 3907 tonnes", "p2"),
    "offer.eml": ("pilotage quote 6120", "msg:"),
    "plan.ics": ("drydock slot 2231", "event:u7"),
    "team.json": ("mooring line 5518", "lines 1-1"),
}
"""File -> (a fact as it is written there, where search has to say it stands)."""


def fill(world: Path) -> None:
    """Write each fact once, after other text."""
    import docx
    import openpyxl
    import pptx
    from reportlab.pdfgen.canvas import Canvas

    (world / "data").mkdir(parents=True)
    filler = [f"row {number}" for number in range(43)]
    (world / "notes.txt").write_text("\n".join([*filler, FACTS["notes.txt"][0], "end"]))
    rows = [f"r{number},{number}" for number in range(30)] + [FACTS["data/rows.csv"][0].replace(" ", ",")]
    (world / "data/rows.csv").write_text("\n".join(rows))
    book = openpyxl.Workbook()
    book.active.title = "Cargo"
    for number in range(30):
        book.active.append([f"r{number}", number])
    book.active.append(["ballast", 9051.5])
    book.save(world / "model.xlsx")
    for name in ("memo.docx", "deep.docx"):
        word = docx.Document()
        for number in range(10):
            word.add_paragraph(f"paragraph {number}")
        if name == "memo.docx":
            word.add_paragraph(FACTS[name][0])
        else:
            word.sections[0].footer.paragraphs[0].text = FACTS[name][0]
        word.save(str(world / name))
    deck = pptx.Presentation()
    for title in ("first", FACTS["talk.pptx"][0]):
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = title
    deck.save(str(world / "talk.pptx"))
    page = Canvas(str(world / "terms.pdf"))
    for text in ("nothing here", FACTS["terms.pdf"][0]):
        page.drawString(72, 700, text)
        page.showPage()
    page.save()
    head = "From: a@p.example\nTo: b@p.example\nSubject: Quote\nMessage-ID: <q@p.example>\n\n"
    (world / "offer.eml").write_text(f"{head}{FACTS['offer.eml'][0]}\n")
    times = ("DTSTART:20260301T100000Z", "DTEND:20260301T110000Z", f"SUMMARY:{FACTS['plan.ics'][0]}")
    lines = ("BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", "UID:u7", *times, "END:VEVENT", "END:VCALENDAR", "")
    (world / "plan.ics").write_bytes("\r\n".join(lines).encode())
    (world / "team.json").write_text(json.dumps({"note": FACTS["team.json"][0]}))
    (world / "broken.xlsx").write_bytes(b"PK\x03\x04 nothing")


@pytest.fixture(scope="module")
def finder(open_office: Callable[..., Sandbox], tmp_path_factory: pytest.TempPathFactory) -> SandboxTools:
    world = tmp_path_factory.mktemp("search") / "world"
    fill(world)
    return SandboxTools(open_office(world), servers=("search", "code"))


@pytest.mark.parametrize("path", list(FACTS))
def test_a_planted_fact_is_found_with_its_place(finder: SandboxTools, path: str) -> None:
    words, place = FACTS[path]
    seen = finder.call("search_world", {"query": words, "match_all": True})
    hits = [json.loads(line) for line in seen.text.splitlines()[1:] if line.startswith("{")]
    assert [hit["path"] for hit in hits] == [f"/{path}"]
    assert hits[0]["place"].startswith(place), hits[0]
    assert "[" in hits[0]["snippet"]


def test_a_file_that_cannot_be_read_is_named(finder: SandboxTools) -> None:
    assert "not searchable: /broken.xlsx" in finder.call("search_world", {"query": "anything"}).text


def test_the_same_question_gives_the_same_answer_and_ties_stand_by_path(finder: SandboxTools) -> None:
    once = finder.call("search_world", {"query": "paragraph"}).text
    assert finder.call("search_world", {"query": "paragraph"}).text == once
    paths = [json.loads(line)["path"] for line in once.splitlines() if line.startswith("{")]
    assert paths[0] < paths[-1]


def test_a_changed_file_is_found_by_its_new_words_only(finder: SandboxTools) -> None:
    finder.call("code_exec", {"code": "echo 'capstan 1199' > new.txt"})
    assert "/new.txt" in finder.call("search_world", {"query": "capstan"}).text
    finder.call("code_exec", {"code": "rm new.txt"})
    assert finder.call("search_world", {"query": "capstan"}).text.startswith("0 places")


def test_only_files_below_the_path_are_searched(finder: SandboxTools) -> None:
    assert finder.call("search_world", {"query": "ballast", "path": "/data"}).text.startswith("0 places")
    assert "/data/rows.csv" in finder.call("search_world", {"query": "tollgate", "path": "/data"}).text
