"""PDF: ruled tables with page and box, and the running text. Columns of prose are out of scope here."""

from __future__ import annotations

from .tree import Tree, UnreadableDocument, table


def read_pdf(data: bytes, name: str) -> Tree:
    """Tables in page order; box = x0,y0,x1,y1 in points from the top left corner of the page."""
    from io import BytesIO

    import pdfplumber

    tables, texts = [], []
    with pdfplumber.open(BytesIO(data)) as document:
        if not document.pages:
            raise UnreadableDocument(name, "damaged pdf: no page in it")
        for page in document.pages:
            texts.append(page.extract_text())
            for number, found in enumerate(page.find_tables(), start=1):
                lines = [[cell or "" for cell in row] for row in found.extract()]
                box = ",".join(f"{edge:.0f}" for edge in found.bbox)
                tables.append(table(f"table {number}", f"page {page.page_number}, box {box}", lines))
    return {"format": "pdf", "tables": tables, "text": "\n".join(texts)}
