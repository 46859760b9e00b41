"""The seven tools as a tool set over one sandbox with a shell. State: which files were read, and the todo list."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from journeyman.harness.code import bash, search
from journeyman.harness.code.files import Files
from journeyman.harness.code.refusal import Refusal
from journeyman.harness.code.schemas import DESCRIPTIONS, PRIORITIES, SCHEMAS, TODO_STATES
from journeyman.sandbox.protocol import Sandbox
from journeyman.tools.protocol import Observation


class CodeTools:
    """Implements ``ToolSet``.

    Args:
        sandbox: one that serves ``exec``.
        root: working directory; relative paths start here.
        spill_directory: where whole outputs of ``bash`` lie inside.
    """

    def __init__(self, sandbox: Sandbox, *, root: str = "/ws", spill_directory: str = "/tmp/outputs") -> None:
        self._sandbox, self._root = sandbox, root
        self._files = Files(sandbox, root)
        self._bash = bash.Bash(sandbox, root, spill_directory)
        self.todos: list[dict[str, str]] = []
        self._tools: dict[str, Callable[..., str]] = {
            "bash": self._bash.run,
            "read": self._files.read,
            "write": self._files.write,
            "edit": self._files.edit,
            "glob": self._glob,
            "grep": self._grep,
            "todowrite": self._todowrite,
        }

    @property
    def schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """See ``ToolSet.schemas``."""
        return SCHEMAS

    @property
    def descriptions(self) -> Mapping[str, str]:
        """See ``ToolSet.descriptions``."""
        return DESCRIPTIONS

    def call(self, name: str, arguments: Mapping[str, Any], *, deadline_s: float = 60.0) -> Observation:
        """See ``ToolSet.call``; ``bash`` keeps its own time limit within ``deadline_s``."""
        tool = self._tools.get(name)
        if tool is None:
            return Observation(f'error: no tool "{name}"', is_error=True)
        try:
            return Observation(tool(deadline_s=deadline_s, **arguments))
        except Refusal as refusal:
            return Observation(f"error: {refusal}", is_error=True)

    def close(self) -> None:
        """See ``ToolSet.close``: the sandbox belongs to the trial."""

    def forget(self) -> None:
        """A fresh context: nothing was read as far as the policy knows."""
        self._files.forget()
        self.todos = []

    def _glob(self, pattern: str, path: str | None = None, *, deadline_s: float) -> str:
        return search.glob(self._sandbox, self._root, pattern, path, deadline_s)

    def _grep(self, pattern: str, path: str | None = None, include: str | None = None, *, deadline_s: float) -> str:
        return search.grep(self._sandbox, self._root, pattern, path, include, deadline_s)

    def _todowrite(self, todos: Sequence[Any], *, deadline_s: float) -> str:
        for position, todo in enumerate(todos):
            if not isinstance(todo, Mapping) or not isinstance(todo.get("content"), str):
                raise Refusal(f"todos[{position}] must be an object with content, status and priority")
            for field, allowed in (("status", TODO_STATES), ("priority", PRIORITIES)):
                if todo.get(field) not in allowed:
                    raise Refusal(f"todos[{position}].{field} must be one of {', '.join(allowed)}")
        self.todos = [dict(todo) for todo in todos]
        return json.dumps(self.todos, indent=2, ensure_ascii=False)
