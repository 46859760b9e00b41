"""The top level of a legacy Office container: which streams it holds itself, apart from those of embedded objects.

[MS-CFB]: a header, sectors chained by a table (FAT), and a directory whose entries form a binary tree below the root.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

END_OF_CHAIN = 0xFFFFFFFA
"""Sector numbers from here on are marks, not sectors."""

MAX_ENTRIES = 100_000
ENTRY = 128


def top_streams(data: bytes) -> set[str]:
    """Names of the streams and storages at the top level in lower case; empty for a directory that is damaged."""
    try:
        size = 1 << struct.unpack_from("<H", data, 30)[0]
        if size not in (512, 4096):
            return set()
        directory = b"".join(_chain(data, size))
        root = directory[:ENTRY]
        return set(_siblings(directory, struct.unpack_from("<I", root, 76)[0]))
    except (struct.error, UnicodeDecodeError, IndexError):
        return set()


def _chain(data: bytes, size: int) -> Iterator[bytes]:
    """Sectors of the directory, in order."""
    per_sector = size // 4
    fat_sectors = [one for one in struct.unpack_from("<109I", data, 76) if one < END_OF_CHAIN]
    sector = struct.unpack_from("<I", data, 48)[0]
    seen: set[int] = set()
    while sector < END_OF_CHAIN and sector not in seen and len(seen) * size < MAX_ENTRIES * ENTRY:
        seen.add(sector)
        yield data[(sector + 1) * size : (sector + 2) * size]
        table = sector // per_sector
        if table >= len(fat_sectors):
            return  # beyond the tables that the header names: more than 6 MB in; the start of the directory is enough
        sector = struct.unpack_from("<I", data, (fat_sectors[table] + 1) * size + 4 * (sector % per_sector))[0]


def _siblings(directory: bytes, first: int) -> Iterator[str]:
    waiting, seen = [first], set[int]()
    while waiting:
        at = waiting.pop()
        if at in seen or at * ENTRY + ENTRY > len(directory):
            continue
        seen.add(at)
        entry = directory[at * ENTRY : (at + 1) * ENTRY]
        length, left, right = *struct.unpack_from("<H", entry, 64), *struct.unpack_from("<II", entry, 68)
        if 2 <= length <= 64:
            yield entry[: length - 2].decode("utf-16-le").lower()
        waiting += [left, right]
