"""PDF: plain pages and the hostile variant drawn directly, two-column documents with footnotes set by typst.

Drawing lines that are already set is fast, and the page of each fact is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO

from journeyman.worlds.content import Prose
from journeyman.worlds.render.places import Places, Style
from journeyman.worlds.render.setting import Page, Setter
from journeyman.worlds.render.typesetting import render_typst

SCAN_DPI = 110
INK, PAPER = 40, 246


def render_pdf(prose: Prose, style: Style, places: Places) -> bytes:
    """A PDF without dates and random ids."""
    if prose.setter == "typst":
        return render_typst(prose, style, places)
    from reportlab.pdfgen.canvas import Canvas

    setter = Setter(prose, style, places)
    buffer = BytesIO()
    with _binary_streams():
        canvas = Canvas(buffer, pagesize=(setter.width, setter.height), invariant=1, pageCompression=1)
        canvas.setTitle(prose.title)
        canvas.setAuthor("")
        last = setter.pages[-1]
        pages = setter.pages if last.runs[2:] or last.image else setter.pages[:-1] or setter.pages
        for page in pages:
            _draw(canvas, page, setter, is_row_order=prose.setter == "rows")
            canvas.showPage()
        canvas.save()
    return buffer.getvalue()


@contextmanager
def _binary_streams() -> Iterator[None]:
    """Streams without their detour through ASCII, which is slow; the library has a global switch only."""
    from reportlab import rl_config

    before = rl_config.useA85
    rl_config.useA85 = 0
    try:
        yield
    finally:
        rl_config.useA85 = before


def _draw(canvas: object, page: Page, setter: Setter, is_row_order: bool) -> None:
    from reportlab.pdfgen.canvas import Canvas

    assert isinstance(canvas, Canvas)
    if page.image:
        _draw_scan(canvas, page.image, setter)
        return
    canvas.setLineWidth(0.6)
    for grid in page.grids:
        canvas.grid(grid.xs, grid.ys)
    runs = sorted(page.runs, key=lambda run: (-run[1], run[0])) if is_row_order else page.runs
    text = canvas.beginText()
    font: tuple[str, float] = ("", 0.0)
    for x, y, line, name, size in runs:
        if (name, size) != font:
            font = (name, size)
            text.setFont(name, size)
        text.setTextOrigin(x, y)
        text.textOut(line)
    canvas.drawText(text)


def _draw_scan(canvas: object, lines: tuple[str, ...], setter: Setter) -> None:
    """Text as grey pixels, a little uneven: there is nothing to select."""
    from PIL import Image, ImageDraw, ImageFont
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    assert isinstance(canvas, Canvas)
    width, height = (round(extent * SCAN_DPI / 72) for extent in (setter.width, setter.height))
    image = Image.new("L", (width, height), PAPER)
    pen = ImageDraw.Draw(image)
    face = ImageFont.load_default(size=SCAN_DPI * 11 / 72)
    for number, line in enumerate(lines):
        pen.text((width // 9 + number % 3, height // 10 + number * SCAN_DPI // 4), line, fill=INK, font=face)
    canvas.drawImage(ImageReader(image), 0, 0, setter.width, setter.height)
