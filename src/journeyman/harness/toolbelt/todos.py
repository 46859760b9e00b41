"""The todo list: what the policy set out to do and how far it is. Pure text in, text out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

STATES = ("pending", "in_progress", "completed", "cancelled")
OPEN = ("pending", "in_progress")
MAX_TODOS = 100

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "todos": {
            "type": "array",
            "description": "todos to write",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "content": {"type": "string"},
                    "status": {"type": "string", "enum": list(STATES)},
                },
                "required": ["id", "content", "status"],
            },
        },
        "merge": {"type": "boolean", "description": "true: update by id and keep the others; false: replace all"},
    },
    "required": ["todos"],
}


class TodoError(ValueError):
    """What is wrong with the todos of a call, in words for the policy. Nothing was changed."""


class Todos:
    """The list, in the order of its first writing."""

    def __init__(self) -> None:
        self._items: dict[str, tuple[str, str]] = {}  # id -> content, status

    @property
    def open(self) -> list[str]:
        """Ids that are neither completed nor cancelled."""
        return [key for key, (_, status) in self._items.items() if status in OPEN]

    def write(self, todos: Sequence[Any], *, merge: bool) -> str:
        """Write todos and return the whole list as text.

        With ``merge`` an id that exists may come without content, and keeps its own.

        Raises:
            TodoError: a todo is no object, lacks a field, or its status is unknown; or there are too many.
        """
        new = dict(self._items) if merge else {}
        for position, todo in enumerate(todos):
            if not isinstance(todo, Mapping):
                raise TodoError(f"todos[{position}] must be an object with id, content and status")
            key, status = todo.get("id"), todo.get("status")
            content = todo.get("content", new[key][0] if isinstance(key, str) and key in new else None)
            for name, value in (("id", key), ("content", content), ("status", status)):
                if not isinstance(value, str) or not value:
                    raise TodoError(f'todos[{position}] needs "{name}" as text')
            if status not in STATES:
                raise TodoError(f'todos[{position}]: status must be one of {", ".join(STATES)}, got "{status}"')
            new[str(key)] = (str(content), str(status))
        if len(new) > MAX_TODOS:
            raise TodoError(f"at most {MAX_TODOS} todos, got {len(new)}")
        self._items = new
        return self.text()

    def text(self) -> str:
        """One line a todo."""
        lines = [f"{key} [{status}] {content}" for key, (content, status) in self._items.items()]
        return "\n".join(lines) or "(no todos)"

    def clear(self) -> None:
        """Forget everything."""
        self._items = {}
