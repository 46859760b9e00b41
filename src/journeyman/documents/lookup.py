"""The command ``lookup PATH ROW [COL]``: print one value of a document.

A tree that was read before lies in the cache directory under the sha256 of the file; then no reader is loaded.
Trees in the cache were made from these very bytes, so both ways print the same.
"""

from __future__ import annotations

import sys
from posix import environ  # what ``os`` would decode: with -S it is not loaded yet

from .tree import NoSuchCell, NoSuchRow, Tree, UnreadableDocument, cell

CACHE = "/cache"
USAGE = "usage: lookup PATH ROW [COL]"


def main(arguments: list[str] | None = None, cache: str | None = None) -> int:
    """Print the value and return 0, or one line ``error: ...`` on standard error and return 1 (2 for bad usage).

    Args:
        arguments: the words after the command, by default those of the process.
        cache: directory of trees that were read before, by default ``$CACHE_DIR``, else ``/cache``.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    cache = environ.get(b"CACHE_DIR", CACHE.encode()).decode() if cache is None else cache
    if len(arguments) not in (2, 3):
        sys.stderr.write(f"{USAGE}\n")
        return 2
    path, row, *rest = arguments
    try:
        sys.stdout.write(cell(load(path, cache), row, rest[0] if rest else None) + "\n")
    except OSError:
        problem = "no such file"
    except NoSuchRow:
        problem = "no such row"
    except NoSuchCell:
        problem = "no such cell"
    except UnreadableDocument as error:
        problem = f"unreadable file: {error.what}"
    else:
        return 0
    sys.stderr.write(f"error: {problem}\n")
    return 1


def load(path: str, cache: str) -> Tree:
    """The tree of a file, from the cache if it is there. Raises OSError and UnreadableDocument."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        with open(f"{cache}/{_sha256(data)}.json", "rb") as file:
            stored = file.read()
    except OSError:
        from .reading import read

        return read(data, path.rpartition("/")[2])
    tree = _parse(stored.decode("utf-8"))
    if "unreadable" in tree:
        raise UnreadableDocument(path, tree["unreadable"])
    return tree


def _parse(text: str) -> Tree:
    """``json.loads`` through the C scanner that it uses itself; importing ``json`` doubles the time of a lookup."""
    try:
        from _json import make_scanner
    except ImportError:
        import json

        return dict(json.loads(text))
    return dict(make_scanner(_JsonSettings)(text, 0)[0])  # type: ignore[arg-type]


class _JsonSettings:
    """What the C scanner asks its decoder for: the defaults of ``json.loads``."""

    strict = True
    object_hook = object_pairs_hook = parse_constant = None
    parse_float, parse_int = float, int


def _sha256(data: bytes) -> str:
    try:
        from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]  # hashlib takes 5 ms to import
    except ImportError:
        try:
            from _sha256 import sha256  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            from hashlib import sha256
    return str(sha256(data).hexdigest())
