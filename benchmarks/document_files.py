"""Office files with known content for benchmarks and tests: same call, same bytes.

Paragraph i of a PDF is ``MARKi ... ENDi``: kept when a text holds it whole, mixed when another paragraph's mark or end
stands inside, lost otherwise.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from io import BytesIO
from typing import Any

VOCABULARY = "alpha beta market revenue growth margin capital of the and quarter in report a cost analysis debt value"
WORDS = VOCABULARY.split()
MM = 72 / 25.4


def two_col(sections: int = 50) -> bytes:
    """A4, two frames 80 mm wide; per section 5 marked paragraphs of 90 words, a ruled table of 9 rows, one paragraph.

    A running header, a rule and a numbered note stand on every page. Marks: ``5 * sections``.
    """
    from reportlab.lib import colors
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate, Paragraph, Table, TableStyle

    draw, styles = random.Random(1), getSampleStyleSheet()
    grid = TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black)])

    def decorate(canvas: Any, document: Any) -> None:
        canvas.setFont("Helvetica", 8)
        canvas.drawString(18 * MM, 285 * MM, "Quarterly report - confidential")
        canvas.line(18 * MM, 15 * MM, 192 * MM, 15 * MM)
        canvas.drawString(18 * MM, 10 * MM, f"Note: figures are unaudited. Page {document.page}")

    flow: list[Any] = []
    for section in range(sections):
        flow.append(Paragraph(f"Section {section + 1}", styles["Heading2"]))
        for part in range(5):
            mark = 5 * section + part
            flow.append(Paragraph(f"MARK{mark} {_prose(draw, 90)} END{mark}", styles["BodyText"]))
        rows = [[f"row {row}", str(draw.randint(1, 999)), str(draw.randint(1, 999))] for row in range(8)]
        flow.append(Table([["Item", "2024", "2025"], *rows], style=grid))
        flow.append(Paragraph(_prose(draw, 30), styles["BodyText"]))
    buffer = BytesIO()
    document = BaseDocTemplate(buffer, pagesize=A4, invariant=1)
    frames = [Frame(x * MM, 20 * MM, 80 * MM, 255 * MM, 0, 0, 0, 0) for x in (18, 112)]
    document.addPageTemplates(PageTemplate(frames=frames, onPage=decorate))
    document.build(flow)
    return buffer.getvalue()


def row_order(pages: int = 50) -> bytes:
    """Two columns of 220 pt whose lines are written across both, 10 marked paragraphs a page, 9 pt on 12 pt."""
    return _columns(pages, (50.0, 310.0), 220.0, 60)


def three_columns(pages: int = 3) -> bytes:
    """Three columns of 150 pt written across, below a title over all of them; 15 marked paragraphs a page."""
    return _columns(pages, (40.0, 220.0, 400.0), 150.0, 40, title="One title over all three columns")


def narrow_gutter(pages: int = 2) -> bytes:
    """Two columns with 6 pt of white between them, written across; 10 marked paragraphs a page."""
    return _columns(pages, (50.0, 276.0), 220.0, 60)


def _columns(pages: int, lefts: tuple[float, ...], width: float, n_words: int, title: str = "") -> bytes:
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfbase.pdfmetrics import stringWidth
    from reportlab.pdfgen.canvas import Canvas

    draw, buffer, mark = random.Random(2), BytesIO(), 0
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    for _ in range(pages):
        columns = []
        for _ in lefts:
            lines: list[str] = []
            for _ in range(5):
                words = [f"MARK{mark}", *(draw.choice(WORDS) for _ in range(n_words)), f"END{mark}"]
                lines += [*_broken(words, lambda text: stringWidth(text, "Helvetica", 9) <= width), ""]
                mark += 1
            columns.append(lines)
        if title:
            canvas.setFont("Helvetica", 14)
            canvas.drawString(lefts[0], 805, f"{title}, from the first to the last of the page's columns")
        canvas.setFont("Helvetica", 9)
        for row in range(max(map(len, columns))):
            for left, lines in zip(lefts, columns, strict=True):
                if row < len(lines) and lines[row]:
                    canvas.drawString(left, 780 - 12 * row, lines[row])
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def _broken(words: list[str], fits: Callable[[str], bool]) -> list[str]:
    lines, line = [], ""
    for word in words:
        longer = f"{line} {word}".strip()
        if fits(longer):
            line = longer
        else:
            lines.append(line)
            line = word
    return [*lines, line]


def _prose(draw: random.Random, n_words: int) -> str:
    return " ".join(draw.choice(WORDS) for _ in range(n_words))


def kept_and_mixed(text: str, n_marks: int) -> tuple[int, int]:
    """Paragraphs that stand whole in a text, and those with another inside."""
    kept = mixed = 0
    for mark in range(n_marks):
        found = re.search(rf"MARK{mark}\b.*?END{mark}\b", text, re.DOTALL)
        if found:
            has_other = len(re.findall(r"(?:MARK|END)\d", found.group(0))) > 2
            kept, mixed = kept + (not has_other), mixed + has_other
    return kept, mixed
