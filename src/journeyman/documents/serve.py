"""Reading as a service of frames, for a program that forks one child per request inside a sandbox.

Importing this module loads the reader libraries and reads one sample of each kind, so that a forked child starts warm.
"""

from __future__ import annotations

import json

from .reading import read
from .tree import Tree, UnreadableDocument


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


def encode(tree: Tree) -> bytes:
    """Canonical JSON of a tree."""
    return json.dumps(tree, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
