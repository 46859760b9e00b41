"""The truth of one world: rows in, queries out. Kept in memory; ``dump`` gives it as a file for the verifier."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from journeyman.worlds.truth.schema import BITEMPORAL, TABLES, statements

Row = dict[str, Any]

NESTED = (list, tuple, dict)
"""Values that are stored as JSON text."""


class Ambiguous(LookupError):
    """A query that must find exactly one row found none or several.

    Attributes:
        sql: the query.
        count: rows found; 2 stands for two or more.
    """

    def __init__(self, sql: str, count: int) -> None:
        super().__init__(f"{'no row' if not count else 'several rows'} for: {sql}")
        self.sql, self.count = sql, count


class Truth:
    """A bitemporal store.

    ``rows("SELECT ... WHERE id = :id", id="K1")`` sees every row that ever was; ``as_of(date).rows`` sees, under
    ``<table>_at``, what was so on a date as it was known then.
    """

    def __init__(self, data: bytes | None = None) -> None:
        self._base = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self._base.row_factory = _as_dict
        if data is not None:
            self._base.deserialize(data)
        else:
            self._base.executescript(";\n".join(statements()))

    def add(
        self,
        table: str,
        rows: Mapping[str, Any] | Iterable[Mapping[str, Any]],
        *,
        event: str,
        at: str = "",
        known: str = "",
    ) -> None:
        """Add rows.

        Args:
            table: of ``schema.TABLES``.
            rows: one or many; lists and mappings become JSON text; a row may bring its own ``valid_from`` and the like.
            event: source event of all of them.
            at: ``valid_from``; a row without it is valid from the beginning of time.
            known: ``known_from``; by default ``at``.
        """
        name = '"order"' if table == "order" else table
        columns = _columns(name)
        defaults = {"valid_from": at, "known_from": known or at, "source_event_id": event}
        many = [rows] if isinstance(rows, Mapping) else rows
        values = [[row[c] if c in row else defaults.get(c) for c in columns] for row in many]
        for made in values:
            for index, value in enumerate(made):
                if type(value) in NESTED:
                    made[index] = _plain(value)
        marks = ", ".join("?" * len(columns))
        self._base.executemany(f"INSERT INTO {name} VALUES ({marks})", values)

    def close(self, table: str, row_id: str, *, valid_to: str | None = None, known_to: str | None = None) -> None:
        """End a row's validity, or what was known: never delete."""
        for column, value in (("valid_to", valid_to), ("known_to", known_to)):
            if value is not None:
                self._base.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (value, row_id))

    def recode(self, table: str, row_id: str, column: str, value: Any) -> None:
        """Change what a row says before anything was written from it: for traps that work on the truth."""
        self._base.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (_plain(value), row_id))

    def rows(self, sql: str, **params: Any) -> list[Row]:
        """All rows of a query, with named parameters. Say ORDER BY when the order matters."""
        return self._base.execute(sql, params).fetchall()

    def one(self, sql: str, **params: Any) -> Row:
        """The one row of a query. Raises Ambiguous when there are none or several."""
        found = self._base.execute(sql, params).fetchmany(2)
        if len(found) != 1:
            raise Ambiguous(sql, len(found))
        return dict(found[0])

    def value(self, sql: str, **params: Any) -> Any:
        """The one value of a query. Raises Ambiguous."""
        (value,) = self.one(sql, **params).values()
        return value

    def as_of(self, date: str, known: str | None = None) -> View:
        """What was so on ``date``, as known on ``known`` (the same day if left out). ISO dates."""
        return View(self, date, date if known is None else known)

    def dump(self) -> bytes:
        """The database file. Equal worlds give equal bytes on one version of SQLite."""
        self._base.execute("UPDATE as_of_point SET valid = '9999-12-31', known = '9999-12-31'")
        return self._base.serialize()

    def _point(self, valid: str, known: str) -> None:
        self._base.execute("UPDATE as_of_point SET valid = ?, known = ?", (valid, known))


class View:
    """The truth at a point of both times: tables under the names ``<table>_at``."""

    def __init__(self, truth: Truth, date: str, known: str) -> None:
        self._truth, self.date, self.known = truth, date, known

    def rows(self, sql: str, **params: Any) -> list[Row]:
        """As ``Truth.rows``."""
        self._truth._point(self.date, self.known)
        return self._truth.rows(sql, **params)

    def one(self, sql: str, **params: Any) -> Row:
        """As ``Truth.one``."""
        self._truth._point(self.date, self.known)
        return self._truth.one(sql, **params)

    def value(self, sql: str, **params: Any) -> Any:
        """As ``Truth.value``."""
        self._truth._point(self.date, self.known)
        return self._truth.value(sql, **params)


@cache
def _columns(table: str) -> tuple[str, ...]:
    return (*(column.strip() for column in TABLES[table].split(",")), *BITEMPORAL)


def _as_dict(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> Row:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


def _plain(value: Any) -> Any:
    if type(value) in NESTED:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return value
