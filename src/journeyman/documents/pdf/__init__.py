"""PDF: pages in reading order, with tables, footnotes, running titles, links, annotations, form fields, attachments.

Promises: columns are never mixed, whatever order the file was written in; a page without a text layer is said to have
none; every place has an address. Addresses: ``p3`` a page, ``p3@x0,y0,x1,y1`` a block by its box in points from the top
left corner of the page as shown, ``p3/t1`` a table, ``p3/t1/r2c1`` a cell, ``p3/a1`` a link, annotation or field,
``attachment1`` a file inside. PDFs are read and, for simple trees, written; they are not edited.
"""

from __future__ import annotations

from ..errors import Encrypted, UnreadableDocument
from ..node import Document
from .fallback import read_with_pypdf
from .reader import read_with_pdfium
from .writer import write_pdf


def read(data: bytes, name: str) -> Document:
    """The tree of a PDF; files that pdfium refuses are tried with a second reader, which a warning says.

    Raises:
        Encrypted: a password is needed.
        UnreadableDocument: damaged beyond both readers.
    """
    try:
        return read_with_pdfium(data, name)
    except Encrypted:
        raise
    except UnreadableDocument as error:
        return read_with_pypdf(data, name, error.what)


def write(document: Document) -> bytes:
    """A PDF of simple nodes. Raises Unsupported for what cannot be set."""
    return write_pdf(document)
