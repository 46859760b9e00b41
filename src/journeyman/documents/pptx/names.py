"""Names of PresentationML, DrawingML and chart elements, with their namespaces."""

from __future__ import annotations

from typing import Any

P = "http://schemas.openxmlformats.org/presentationml/2006/main"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
C = "http://schemas.openxmlformats.org/drawingml/2006/chart"
DGM = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
MC = "http://schemas.openxmlformats.org/markup-compatibility/2006"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"

EMU_PER_POINT = 12700


def p(name: str) -> str:
    """A PresentationML name as lxml spells it."""
    return f"{{{P}}}{name}"


def a(name: str) -> str:
    """A DrawingML name as lxml spells it."""
    return f"{{{A}}}{name}"


def c(name: str) -> str:
    """A chart name as lxml spells it."""
    return f"{{{C}}}{name}"


def r(name: str) -> str:
    """A relationship attribute as lxml spells it."""
    return f"{{{R}}}{name}"


def local(element: Any) -> str:
    """Local name of an element; empty for comments and processing instructions."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def number(text: str | None) -> int | None:
    """A whole number, None when it is none."""
    try:
        return int(text) if text is not None and len(text) < 20 else None
    except ValueError:
        return None
