"""Two-column documents with true footnotes, through typst; the pages of facts are asked from the set document."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from journeyman.worlds.content import Block, Heading, Paragraph, Prose, Table, unmarked
from journeyman.worlds.render.places import Places, Style

FACES = {"Helvetica": "New Computer Modern", "Times": "Libertinus Serif", "Courier": "DejaVu Sans Mono"}
"""Faces that come with typst, so that the fonts of a machine do not matter."""


def render_typst(prose: Prose, style: Style, places: Places) -> bytes:
    """A two-column PDF without a date."""
    import typst

    stated: list[tuple[str, str]] = []
    source = _preamble(prose, style) + "\n".join(_block(block, stated) for block in prose.blocks)
    with TemporaryDirectory() as place:  # a compiler that is to be asked later wants a file
        path = Path(place) / "document.typ"
        path.write_text(source, encoding="utf-8")
        compiler = typst.Compiler(str(path), ignore_system_fonts=True)
        data = compiler.compile(format="pdf", pdf_tags=False)
        pages = json.loads(compiler.query("<f>", field="value")) if stated else []
    for (fact, surface), page in zip(stated, pages, strict=True):
        places.found.append((fact, surface, f"p{page}"))
    assert isinstance(data, bytes)
    return data


def _preamble(prose: Prose, style: Style) -> str:
    paper = "a4" if style.page == "A4" else "us-letter"
    return f"""#set document(title: {_text(prose.title)}, date: none)
#set page(paper: "{paper}", margin: {style.margin}pt, columns: 2, numbering: "1",
  header: text(size: 7.5pt)[#{_text(prose.header)}])
#set text(font: "{FACES[style.font]}", size: {style.size}pt)
#set par(justify: true)
#set columns(gutter: 22pt)
#set table(stroke: 0.5pt, inset: 3pt)
#let f = context [#metadata(here().page()) <f>]
"""


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _marked(text: str, stated: list[tuple[str, str]]) -> str:
    """Text as a typst expression in markup, each fact followed by a note of its page."""
    plain, pairs = unmarked(text)
    stated += pairs
    return f"#{_text(plain)}" + ";#f" * len(pairs)


def _block(block: Block, stated: list[tuple[str, str]]) -> str:
    match block:
        case Heading(level=0):
            place = '#place(top + center, scope: "parent", float: true, text(size: 1.7em, weight: "bold")'
            return f"{place}[{_marked(block.text, stated)}])\n"
        case Heading():
            return f"#heading(level: {block.level})[{_marked(block.text, stated)}]\n"
        case Paragraph():
            lead = "- " if block.style == "bullet" else ""
            body = _marked(block.text, stated)
            notes = "".join(f"#footnote[{_marked(note, stated)}]" for note in block.notes)
            return f"{lead}{body}{notes}\n"
        case Table():
            return _table(block, stated)
        case _:
            return "#colbreak(weak: true)\n"


def _table(block: Table, stated: list[tuple[str, str]]) -> str:
    count = len(block.rows[0])
    cells = [[f"[{_marked(cell, stated)}]" for cell in row] for row in block.rows]
    head = ", ".join(cell for row in cells[: block.header_rows] for cell in row)
    body = ",\n".join(", ".join(row) for row in cells[block.header_rows :])
    align = "(left, " + ", ".join(["right"] * (count - 1)) + ",)"
    columns = "(" + ", ".join(["1.6fr"] + ["1fr"] * (count - 1)) + ",)"
    caption = f"*#{_text(unmarked(block.caption)[0])}*\n\n" if block.caption else ""
    return f"{caption}#text(size: 0.82em)[#table(columns: {columns}, align: {align}, table.header({head}),\n{body})]\n"
