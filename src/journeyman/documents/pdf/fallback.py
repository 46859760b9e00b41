"""A second reader for files that pdfium refuses: text of each page by pypdf, without boxes or tables."""

from __future__ import annotations

from ..errors import Encrypted, UnreadableDocument
from ..node import Document, Node

MAX_PAGES = 300


def read_with_pypdf(data: bytes, name: str, reason: str) -> Document:
    """A flat tree with the warning ``reason``.

    Raises:
        Encrypted: a password is needed.
        UnreadableDocument: pypdf finds no page either; the message is pdfium's.
    """
    import logging
    from io import BytesIO

    from pypdf import PdfReader
    from pypdf.errors import FileNotDecryptedError, WrongPasswordError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    nodes = []
    try:
        reader = PdfReader(BytesIO(data), strict=False)
        for number in range(1, min(len(reader.pages), MAX_PAGES) + 1):
            lines = [" ".join(line.split()) for line in reader.pages[number - 1].extract_text().splitlines()]
            kept = [line for line in lines if line]
            children = [Node("paragraph", f"p{number}/l{at}", line) for at, line in enumerate(kept, start=1)]
            nodes.append(Node("page", f"p{number}", children=tuple(children)))
    except (FileNotDecryptedError, WrongPasswordError) as error:
        raise Encrypted(name, "protected by a password", remedy="save it without a password") from error
    except Exception as error:  # pypdf's own zoo on damaged files
        if not nodes:
            raise UnreadableDocument(name, reason, remedy="fetch the file again") from error
    if not any(node.children for node in nodes):
        raise UnreadableDocument(name, reason, remedy="fetch the file again")
    return Document("pdf", name, tuple(nodes), {"pages": len(nodes)}, (f"{reason}; read by a second reader, no boxes",))
