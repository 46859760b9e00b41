"""search: full text over every file of the world, by the same readers as the read tools, ranked by BM25 (SQLite FTS5).

The index lies in the sandbox's temporary directory; a call reads what is new or has changed since the last one. Ties
are broken by path and place, so the same files give the same answer.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .kinds import need_parsers
from .search_units import is_parsed, units_of
from .workspace import MAX_FILE_BYTES, Refused, Workspace

SNIPPET_WORDS = 24
_SCHEMA = """
CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, stamp TEXT, problem TEXT);
CREATE VIRTUAL TABLE IF NOT EXISTS units USING fts5(path UNINDEXED, place UNINDEXED, body, tokenize='porter unicode61');
"""
_MATCHING = "units MATCH :words AND (:below = '' OR path = :below OR path LIKE :like ESCAPE '!')"
_FIND = f"SELECT rowid, path, place FROM units WHERE {_MATCHING} ORDER BY round(bm25(units), 9), path, rowid"
_AROUND = f"SELECT snippet(units, 2, '[', ']', ' ... ', {SNIPPET_WORDS}) FROM units WHERE units MATCH ? AND rowid = ?"


def world(workspace: Workspace, query: str, path: str = "/", max_results: int = 10, match_all: bool = False) -> str:
    """Units that hold the words, best first: path, place in the file, words around."""
    words = [one for one in re.findall(r"[^\s\"]+", query) if re.search(r"\w", one)]
    if not words:
        raise Refused("the query holds no word")
    below = workspace.path(path)
    if not below.exists():
        workspace.directory(path)
    home = workspace.temporary / ".search"
    home.mkdir(parents=True, exist_ok=True)
    database = _opened(home / "index.db")
    try:
        problems = _refreshed(database, workspace)
        shown = workspace.shown(below).rstrip("/")
        like = shown.replace("!", "!!").replace("%", "!%").replace("_", "!_") + "/%"
        matching = (" " if match_all else " OR ").join('"{}"'.format(word.replace('"', '""')) for word in words)
        rows = database.execute(_FIND, {"words": matching, "below": shown, "like": like}).fetchall()
        lines = []
        for number, name, place in rows[:max_results]:
            around = " ".join(database.execute(_AROUND, (matching, number)).fetchone()[0].split())
            lines.append(json.dumps({"path": name, "place": place, "snippet": around}, ensure_ascii=False))
    finally:
        database.close()
    notes = [f"not searchable: {name}: {problem}" for name, problem in problems[:10]]
    return "\n".join([f"{len(rows)} places for {query!r}", *lines, *notes])


def _opened(path: Path) -> sqlite3.Connection:
    """The index; a damaged one is made anew."""
    for is_last in (False, True):
        database = sqlite3.connect(path, isolation_level=None)
        try:
            database.execute("PRAGMA synchronous=OFF")
            database.executescript(_SCHEMA)
            return database
        except sqlite3.DatabaseError:
            database.close()
            if is_last:
                raise
            path.unlink(missing_ok=True)
    raise AssertionError("unreachable")


def _refreshed(database: sqlite3.Connection, workspace: Workspace) -> list[tuple[str, str]]:
    """Bring the index up to date; returns the files that cannot be read, with the reason."""
    known = dict(database.execute("SELECT path, stamp FROM files"))
    present = {}
    start = len(str(workspace.root).rstrip("/"))
    for path in workspace.names():
        facts = os.stat(path)  # noqa: PTH116 - asked of every file
        present[path[start:]] = (path, f"{facts.st_size}-{facts.st_mtime_ns}", facts.st_size)
    if any(known.get(name) != stamp and is_parsed(name) for name, (_, stamp, _) in present.items()):
        need_parsers()
    database.execute("BEGIN")
    for name in [name for name in known if name not in present]:
        _forget(database, name)
    for name, (path, stamp, size) in present.items():
        if known.get(name) == stamp:
            continue
        if name in known:  # looks at every row
            _forget(database, name)
        problem = ""
        try:
            if size > MAX_FILE_BYTES:
                raise Refused("too large")
            file = Path(path)
            rows = [(name, place, f"{file.name}\n{text}") for place, text in units_of(file.read_bytes(), file.name)]
            database.executemany("INSERT INTO units (path, place, body) VALUES (?, ?, ?)", rows)
        except (MemoryError, KeyboardInterrupt):
            raise
        except BaseException as error:  # a panic of a Rust library is a BaseException
            problem = str(error)[:200] or type(error).__name__
        database.execute("INSERT INTO files VALUES (?, ?, ?)", (name, stamp, problem))
    database.execute("COMMIT")
    return list(database.execute("SELECT path, problem FROM files WHERE problem != '' ORDER BY path"))


def _forget(database: sqlite3.Connection, name: str) -> None:
    database.execute("DELETE FROM units WHERE path = ?", (name,))
    database.execute("DELETE FROM files WHERE path = ?", (name,))


TOOLS: dict[str, Callable[..., Any]] = {"world": world}
