"""output: read on in a text that was too long for one answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .workspace import Refused, Workspace

_LOOK = 4096
"""Characters from the start that show whether a file is text."""


def read_page(workspace: Workspace, file_path: str, offset: int = 0, limit: int = 15_000) -> str:
    """``limit`` characters from ``offset``, and where to read on."""
    data, _ = workspace.read(file_path)
    text = data.decode("utf-8", "replace")
    head = text[:_LOOK]
    odd = sum(1 for char in head if char == "\ufffd" or (char < " " and char not in "\t\n\r\f\x1b"))
    if 10 * odd > len(head):
        raise Refused(f"{file_path} is not a text file; this reads on in texts that were cut")
    if text and offset >= len(text):
        raise Refused(f"{file_path} has {len(text)} characters, fewer than offset {offset}")
    end = min(offset + limit, len(text))
    rest = f"read on with offset {end}" if end < len(text) else "end of the text"
    return f"{text[offset:end]}\n[characters {offset} to {end} of {len(text)}; {rest}]"


TOOLS: dict[str, Callable[..., Any]] = {"read_page": read_page}
