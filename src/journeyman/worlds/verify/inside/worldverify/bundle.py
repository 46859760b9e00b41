"""What was delivered, read lazily and once: workbooks with fresh values, trees, JSON, tables, texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .workbook import Workbook


class MalformedDeliverable(Exception):
    """The deliverable is missing or is not what was asked for; the message says why."""


@dataclass
class Bundle:
    """The deliverable of one trial and the files of the truth it is compared with.

    Attributes:
        files: delivered name -> bytes.
        originals: name -> bytes of files of the world, as they were.
        extra: further data of the truth that checks share.
    """

    files: dict[str, bytes]
    originals: dict[str, bytes] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    _read: dict[tuple[str, str], Any] = field(default_factory=dict)
    _kept: dict[str, Any] = field(default_factory=dict)

    def kept(self, name: str, make: Callable[[], Any]) -> Any:
        """Something that checks of one deliverable share, made by the first and closed by ``close``."""
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]

    def close(self) -> None:
        """End what was kept."""
        while self._kept:
            self._kept.popitem()[1].close()

    def data(self, name: str) -> bytes:
        """The bytes of a delivered file. Raises MalformedDeliverable."""
        if name not in self.files:
            raise MalformedDeliverable(f"{name} is missing; delivered: {', '.join(sorted(self.files)) or 'nothing'}")
        if not self.files[name]:
            raise MalformedDeliverable(f"{name} is empty")
        return self.files[name]

    def workbook(self, name: str) -> Workbook:
        """A delivered workbook, its formulas computed. Raises MalformedDeliverable."""
        found: Workbook = self._once("workbook", name, lambda data: Workbook(data, name))
        return found

    def document(self, name: str) -> Any:
        """The tree of a delivered file of any format. Raises MalformedDeliverable."""

        def read(data: bytes) -> Any:
            from officedocs import open_document

            return open_document(data, name)

        return self._once("document", name, read)

    def json(self, name: str) -> Any:
        """A delivered JSON value. An object whose only key is ``answer`` with JSON as text is read through."""

        def read(data: bytes) -> Any:
            value = json.loads(data.decode("utf-8-sig"))
            inner = value.get("answer") if isinstance(value, dict) and len(value) == 1 else None
            if isinstance(inner, str) and inner.lstrip().startswith(("{", "[")):
                value = json.loads(inner)
            return value

        return self._once("json", name, read)

    def text(self, name: str) -> str:
        """All text of a delivered file in reading order."""
        if name.endswith((".txt", ".md", ".csv", ".py")):
            return str(self._once("text", name, lambda data: data.decode("utf-8-sig", "replace")))
        if name.endswith(".json"):
            return json.dumps(self.json(name), ensure_ascii=False)
        return str(self.document(name).text())

    def rows(self, name: str) -> list[list[str]]:
        """The records of a delivered csv file."""

        def read(data: bytes) -> list[list[str]]:
            document = self.document(name)
            grid: list[list[str]] = []
            for node in document.walk():
                if node.kind == "row":
                    grid.append([cell.text for cell in node.children])
            return grid

        found: list[list[str]] = self._once("rows", name, read)
        return found

    def _once(self, kind: str, name: str, read: Any) -> Any:
        if (kind, name) not in self._read:
            data = self.data(name)
            try:
                self._read[kind, name] = read(data)
            except MalformedDeliverable:
                raise
            except (MemoryError, RecursionError) as error:
                raise MalformedDeliverable(f"{name} asks for too much to be read: {type(error).__name__}") from error
            except Exception as error:  # whatever a reader meets in a file that an agent made is the file's
                raise MalformedDeliverable(f"{name} cannot be read: {str(error)[:300]}") from error
        return self._read[kind, name]
