"""The tables of a document, for ``lookup``: the suffix says what a file claims to be, the first bytes whether it is.

This view stands beside ``opening``, which gives the typed tree of every format, for two reasons. Worlds, caches of
read documents and published tasks hold these trees by the digest of their file, so a tree must not change while its
file does not; and a lookup without a cache starts from nothing, in a sandbox that has three reader libraries only.
"""

from __future__ import annotations

from .csv_tables import read_delimited
from .docx_tables import read_docx
from .mail_tables import read_mail
from .pdf_tables import read_pdf
from .tree import Tree, UnreadableDocument, brief
from .xlsx_tables import read_xlsx

READERS = {
    "csv": read_delimited,
    "docx": read_docx,
    "eml": read_mail,
    "pdf": read_pdf,
    "tsv": read_delimited,
    "xlsx": read_xlsx,
}

MAX_BYTES = 64_000_000
"""Larger files are refused before a reader sees them."""

MAX_UNPACKED_BYTES = 256_000_000
"""A zip container that claims to unpack to more is refused: it is a bomb or no office file."""

MAGIC = {b"%PDF-": "a PDF", b"PK\x03\x04": "a zip container", b"\xd0\xcf\x11\xe0": "a legacy Office file"}
EXPECTED = {"pdf": b"%PDF-", "xlsx": b"PK\x03\x04", "docx": b"PK\x03\x04"}


def read(data: bytes, name: str) -> Tree:
    """The tree of a document, see ``tree.py``. Same bytes and suffix, same tree.

    Args:
        data: the whole file.
        name: file name; only its suffix decides, in any case.

    Raises:
        UnreadableDocument: unknown suffix, wrong kind of content, damaged, or too large. Nothing else is raised.
    """
    suffix = name.rpartition(".")[2].lower()
    if suffix not in READERS:
        raise UnreadableDocument(name, f"no reader for {suffix!r}; readable: {', '.join(sorted(READERS))}")
    if not data:
        raise UnreadableDocument(name, "the file is empty")
    if len(data) > MAX_BYTES:
        raise UnreadableDocument(name, f"{len(data)} bytes are more than the {MAX_BYTES} that are read")
    _check_magic(data, name, suffix)
    try:
        return READERS[suffix](data, name)
    except UnreadableDocument:
        raise
    except Exception as error:  # reader libraries raise their own zoo on damaged files
        raise UnreadableDocument(name, f"damaged {suffix}: {brief(error)}") from error


def _check_magic(data: bytes, name: str, suffix: str) -> None:
    expected = EXPECTED.get(suffix)
    is_called = next((text for magic, text in MAGIC.items() if data.startswith(magic)), None)
    if expected is None:
        if is_called:
            raise UnreadableDocument(name, f"the name says {suffix}, the content is {is_called}")
    elif not data.startswith(expected):
        raise UnreadableDocument(name, f"the name says {suffix}, the content is {is_called or 'something else'}")
    if expected == b"PK\x03\x04":
        _check_container(data, name, suffix)


def _check_container(data: bytes, name: str, suffix: str) -> None:
    from io import BytesIO
    from zipfile import BadZipFile, ZipFile

    try:
        members = ZipFile(BytesIO(data)).infolist()
    except (BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UnreadableDocument(name, f"damaged {suffix}: {brief(error)}") from error
    unpacked = sum(member.file_size for member in members)
    if unpacked > MAX_UNPACKED_BYTES:
        raise UnreadableDocument(name, f"claims to unpack to {unpacked} bytes, {MAX_UNPACKED_BYTES} are allowed")
    part = {"xlsx": "xl/workbook.xml", "docx": "word/document.xml"}[suffix]
    if part not in {member.filename for member in members}:
        raise UnreadableDocument(name, f"the name says {suffix}, but the container has no {part}")
