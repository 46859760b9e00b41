"""The belt: a tool set in front of another one, from which the policy takes what it needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from journeyman.errors import nearest
from journeyman.harness.toolbelt import todos as todo_list
from journeyman.harness.toolbelt.todos import TodoError, Todos
from journeyman.tools.protocol import Observation
from journeyman.tools.toolset import ToolSet

MAX_TOOLS = 80
"""Tools on the belt at once, the meta tools not counted."""

STATUSES = ("completed", "blocked", "failed")


def _named(description: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"tool_name": {"type": "string", "description": description}},
        "required": ["tool_name"],
    }


META: dict[str, tuple[str, dict[str, Any]]] = {
    "toolbelt_list_tools": (
        "List every tool that can be put on the belt, by domain, and which are on it.",
        {"type": "object", "properties": {}, "required": []},
    ),
    "toolbelt_inspect_tool": ("Show what a tool does and its arguments.", _named("name of a listed tool")),
    "toolbelt_add_tool": ("Put a tool on the belt; it can be called from then on.", _named("name of a listed tool")),
    "toolbelt_remove_tool": ("Take a tool off the belt.", _named("name of a tool on the belt")),
    "todo_write": ("Write the plan: todos with a status each.", todo_list.SCHEMA),
    "final_answer": (
        "End the work. Refused while todos are pending or in progress.",
        {
            "type": "object",
            "properties": {
                "answer": {"type": "string", "description": "the answer, or what was done and where it lies"},
                "status": {"type": "string", "enum": list(STATUSES)},
            },
            "required": ["answer", "status"],
        },
    ),
}
"""Name -> description and schema of the tools that are always on the belt."""


def domain_of(name: str) -> str:
    """The server a tool belongs to: its name up to the first underscore."""
    return name.partition("_")[0]


class Toolbelt:
    """Implements ``ToolSet``: the meta tools, and those tools of ``tools`` that were added.

    Args:
        tools: all tools.
        initial: those on the belt from the start.
        max_tools: how many may be on it.
    """

    def __init__(self, tools: ToolSet, initial: Sequence[str] = (), max_tools: int = MAX_TOOLS) -> None:
        self._tools, self._max_tools = tools, max_tools
        self._belt: dict[str, None] = dict.fromkeys(initial)
        self._schemas = self._offered()
        self.readable: Mapping[str, Mapping[str, Any]] = {**{n: s for n, (_, s) in META.items()}, **tools.schemas}
        self.todos = Todos()
        self.final: tuple[str, str | None] | None = None
        self._meta: dict[str, Callable[..., Observation]] = {
            "toolbelt_list_tools": self._list,
            "toolbelt_inspect_tool": self._inspect,
            "toolbelt_add_tool": self._add,
            "toolbelt_remove_tool": self._remove,
            "todo_write": self._write_todos,
            "final_answer": self._finish,
        }

    @property
    def schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """See ``ToolSet.schemas``: the meta tools and the belt, as of now."""
        return self._schemas

    @property
    def descriptions(self) -> Mapping[str, str]:
        """See ``ToolSet.descriptions``."""
        return {name: META[name][0] if name in META else self._tools.descriptions[name] for name in self._schemas}

    def call(self, name: str, arguments: Mapping[str, Any], *, deadline_s: float = 60.0) -> Observation:
        """See ``ToolSet.call``. A tool that is not on the belt is refused with what to do about it."""
        if name in self._meta:
            return self._meta[name](**arguments)
        if name not in self._belt:
            return self._unknown(name)
        return self._tools.call(name, arguments, deadline_s=deadline_s)

    def close(self) -> None:
        """See ``ToolSet.close``."""
        self._tools.close()

    def begin_again(self, initial: Sequence[str]) -> None:
        """A fresh context: the belt as at the start, no todos."""
        self._belt = dict.fromkeys(initial)
        self._schemas = self._offered()
        self.todos.clear()

    def _offered(self) -> dict[str, Mapping[str, Any]]:
        offered: dict[str, Mapping[str, Any]] = {name: schema for name, (_, schema) in META.items()}
        return offered | {name: self._tools.schemas[name] for name in self._belt}

    def _list(self) -> Observation:
        domains: dict[str, list[str]] = {}
        for name in self._tools.schemas:
            domains.setdefault(domain_of(name), []).append(f"{name}*" if name in self._belt else name)
        lines = [f"{domain}: {', '.join(names)}" for domain, names in domains.items()]
        return Observation("\n".join([*lines, f"* on the belt: {len(self._belt)} of at most {self._max_tools}"]))

    def _inspect(self, tool_name: str) -> Observation:
        if tool_name not in self._tools.schemas:
            return self._unknown(tool_name)
        return Observation(self._shown(tool_name))

    def _add(self, tool_name: str) -> Observation:
        if tool_name not in self._tools.schemas:
            return self._unknown(tool_name)
        if tool_name not in self._belt and len(self._belt) >= self._max_tools:
            text = f"error: the belt holds {self._max_tools} tools already; remove one first"
            return Observation(text, is_error=True)
        self._belt[tool_name] = None
        self._schemas = self._offered()
        return Observation(f"added; you can call it now\n{self._shown(tool_name)}")

    def _remove(self, tool_name: str) -> Observation:
        if tool_name not in self._belt:
            return Observation(f'error: "{tool_name}" is not on the belt', is_error=True)
        del self._belt[tool_name]
        self._schemas = self._offered()
        return Observation(f"removed {tool_name}; {len(self._belt)} tools are on the belt")

    def _write_todos(self, todos: Sequence[Any], merge: bool = True) -> Observation:
        try:
            return Observation(self.todos.write(todos, merge=merge))
        except TodoError as error:
            return Observation(f"error: {error}", is_error=True)

    def _finish(self, answer: str, status: str) -> Observation:
        if self.todos.open:
            left = ", ".join(self.todos.open)
            text = f"error: todos are open: {left}; complete or cancel them with todo_write, then answer"
            return Observation(text, is_error=True)
        self.final = (answer, status)
        return Observation("")

    def _shown(self, name: str) -> str:
        return f"{name}: {self._tools.descriptions[name]}\narguments: {json.dumps(self._tools.schemas[name])}"

    def _unknown(self, name: str) -> Observation:
        if name in self._tools.schemas:
            return Observation(f"error: {name} is not on the belt; put it there with toolbelt_add_tool", is_error=True)
        near = nearest(name, self._tools.schemas)
        hint = f" Did you mean {near}?" if near else " See toolbelt_list_tools."
        return Observation(f'error: no tool "{name}".{hint}', is_error=True)
