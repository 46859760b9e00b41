"""Names of WordprocessingML elements and attributes, with their namespaces."""

from __future__ import annotations

from typing import Any

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
W14 = "http://schemas.microsoft.com/office/word/2010/wordml"
W15 = "http://schemas.microsoft.com/office/word/2012/wordml"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
MC = "http://schemas.openxmlformats.org/markup-compatibility/2006"
XML_SPACE = "{http://www.w3.org/XML/1998/namespace}space"

VALUE = f"{{{W}}}val"
OFF = ("0", "false", "off", "none")
INSERTED = {"ins", "moveTo"}
DELETED = {"del", "moveFrom"}
KIND_OF_CHANGE = {
    "ins": "insertion",
    "del": "deletion",
    "moveTo": "moved here",
    "moveFrom": "moved away",
    "rPrChange": "formatting",
    "pPrChange": "formatting",
    "tblPrChange": "formatting",
    "trPrChange": "formatting",
    "tcPrChange": "formatting",
    "sectPrChange": "formatting",
    "cellIns": "insertion",
    "cellDel": "deletion",
    "numberingChange": "formatting",
}
"""Element that records a tracked change -> what it is called in the tree."""


def w(name: str) -> str:
    """A WordprocessingML name as lxml spells it."""
    return f"{{{W}}}{name}"


def local(element: Any) -> str:
    """Local name of an element; empty for comments and processing instructions."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def value(element: Any, path: str, attribute: str = "val") -> str | None:
    """An attribute of the descendant at ``path`` (local names of WordprocessingML, slash between), None if absent."""
    for name in path.split("/"):
        if element is None:
            return None
        element = element.find(f"{{{W}}}{name}")
    return None if element is None else element.get(f"{{{W}}}{attribute}")


def is_set(text: str | None) -> bool:
    """Whether a toggle with this value is on; it is when the value is left out."""
    return text is None or text.lower() not in OFF
