"""Reading as a service of frames, for a program that forks a child per request inside a sandbox.

Importing this module loads the reader libraries, so that every forked child has them. ``handle`` reads one document,
``handle_many`` several in one child, which halves the CPU time; when that child dies, the caller asks one by one.
"""

from __future__ import annotations

import gc
import importlib
import json
from typing import Any

from .reading import read
from .tree import Tree, UnreadableDocument

LIBRARIES = ("csv", "email.policy", "docx", "openpyxl", "pdfplumber")


def handle(payload: bytes) -> bytes:
    """Read one document.

    Args:
        payload: file name in UTF-8, a line feed, the bytes of the file.

    Returns:
        The tree as UTF-8 JSON with sorted keys and no white space.

    Raises:
        UnreadableDocument: the document cannot be read, or the payload has no name.
    """
    name, separator, data = payload.partition(b"\n")
    if not separator:
        raise UnreadableDocument("request", "no file name before the content")
    return encode(read(data, name.decode("utf-8", "replace")))


def handle_many(payload: bytes) -> bytes:
    """Read several documents, each answered by itself.

    Args:
        payload: JSON ``[[name, size in bytes], ...]``, a line feed, the contents one after the other.

    Returns:
        JSON list in the same order: the tree of each, or ``{"unreadable": reason}``.
    """
    header, _, contents = payload.partition(b"\n")
    answers: list[Tree] = []
    at = 0
    for name, size in json.loads(header):
        try:
            answers.append(read(contents[at : at + size], name))
        except UnreadableDocument as error:
            answers.append({"unreadable": error.what})
        at += size
    return encode(answers)


def encode(value: Any) -> bytes:
    """Canonical JSON of trees."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def _preload() -> None:
    for library in LIBRARIES:
        importlib.import_module(library)
    gc.collect()
    gc.freeze()


_preload()
