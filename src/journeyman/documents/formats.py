"""The formats: which suffix belongs to which reader, and what the first bytes must show.

A package of a format offers ``read(data, name) -> Document`` and, where its row says so, ``write(document) -> bytes``
and ``edit(data, name, changes) -> Edited``. A new suffix is a new row here and nothing else.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType

from .errors import Unsupported

PDF, ZIP, OLE, TEXT = "pdf", "zip", "ole", "text"
"""Containers, as the first bytes tell them apart."""


@dataclass(frozen=True, slots=True)
class Format:
    """One row of the table.

    Attributes:
        package: of the reader, below this package; empty for a format that is recognised, but not read.
        container: what the bytes must be.
        content: what ``content.detect`` must say; several suffixes may share it.
        is_written: the package has ``write``.
        is_edited: the package has ``edit``.
    """

    package: str
    container: str
    content: str
    is_written: bool = False
    is_edited: bool = False

    def module(self, name: str) -> ModuleType:
        """The package of the reader. Raises Unsupported for a format that is only recognised."""
        if not self.package:
            known = ", ".join(sorted({row.content for row in FORMATS.values() if row.package}))
            raise Unsupported(name, f"{self.content} files are not read", remedy=f"convert it; readable: {known}")
        return importlib.import_module(f".{self.package}", __package__)


FORMATS: dict[str, Format] = {
    "pdf": Format("pdf", PDF, "pdf", is_written=True),
    "csv": Format("delimited", TEXT, "text", is_written=True, is_edited=True),
    "tsv": Format("delimited", TEXT, "text", is_written=True, is_edited=True),
    "xlsx": Format("xlsx", ZIP, "xlsx", is_written=True, is_edited=True),
    "xlsm": Format("xlsx", ZIP, "xlsx", is_edited=True),
    "xltx": Format("xlsx", ZIP, "xlsx", is_edited=True),
    "xltm": Format("xlsx", ZIP, "xlsx", is_edited=True),
    "xlsb": Format("xlsx", ZIP, "xlsb"),
    "xls": Format("xlsx", OLE, "xls"),
    "docx": Format("docx", ZIP, "docx", is_written=True, is_edited=True),
    "docm": Format("docx", ZIP, "docx", is_edited=True),
    "dotx": Format("docx", ZIP, "docx", is_edited=True),
    "dotm": Format("docx", ZIP, "docx", is_edited=True),
    "doc": Format("", OLE, "doc"),
    "pptx": Format("pptx", ZIP, "pptx", is_written=True, is_edited=True),
    "pptm": Format("pptx", ZIP, "pptx", is_edited=True),
    "ppsx": Format("pptx", ZIP, "pptx", is_edited=True),
    "potx": Format("pptx", ZIP, "pptx", is_edited=True),
    "ppt": Format("", OLE, "ppt"),
    "eml": Format("mail", TEXT, "text", is_written=True, is_edited=True),
    "mbox": Format("mail", TEXT, "text", is_written=True, is_edited=True),
    "msg": Format("mail", OLE, "msg"),
    "json": Format("chat", TEXT, "text", is_written=True, is_edited=True),
    "jsonl": Format("chat", TEXT, "text", is_written=True, is_edited=True),
    "txt": Format("chat", TEXT, "text"),
    "zip": Format("chat", ZIP, "zip", is_written=True, is_edited=True),
    "ics": Format("calendar", TEXT, "text", is_written=True, is_edited=True),
}
"""Suffix in lower case -> row."""


def suffix_of(name: str) -> str:
    """The suffix of a file name in lower case, empty when there is none."""
    _, dot, suffix = name.rpartition("/")[2].rpartition(".")
    return suffix.lower() if dot else ""
