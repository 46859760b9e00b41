"""Renderers: a table of text and integers in, the bytes of a real file out. Same table, same bytes.

Every OOXML file gets fixed member times, every document fixed properties; no renderer reads a clock.
"""

from __future__ import annotations

from collections.abc import Callable

from journeyman.worlds.mini.render.delimited import render_csv
from journeyman.worlds.mini.render.docx import render_docx
from journeyman.worlds.mini.render.mail import render_owners as render_owners
from journeyman.worlds.mini.render.pdf import render_pdf
from journeyman.worlds.mini.render.xlsx import render_xlsx

Line = list[str | int]

RENDERERS: dict[str, Callable[[str, list[Line]], bytes]] = {
    "csv": render_csv,
    "docx": render_docx,
    "pdf": render_pdf,
    "xlsx": render_xlsx,
}
"""Suffix -> function of title and lines (header first)."""
