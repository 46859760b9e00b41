"""What calls looked like and how long things took: tallies over stored records, without a statistic in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

UNREADABLE = "(unreadable call)"
_KINDS: dict[type, str] = {bool: "bool", int: "int", float: "float", str: "str", list: "list", type(None): "null"}


@dataclass
class Calls:
    """The calls of one tool with one shape of arguments.

    Attributes:
        tool, shape: which; the shape is the sorted names and types, e.g. ``col:str, path:str``.
        num_calls, num_errors, num_schema_errors: so far; schema errors are among the errors.
        tasks, are_errors: task of each call, and whether it was refused, in order.
        example: trial id of the first error, "" without one.
    """

    tool: str
    shape: str
    num_calls: int = 0
    num_errors: int = 0
    num_schema_errors: int = 0
    tasks: list[str] = field(default_factory=list)
    are_errors: list[bool] = field(default_factory=list)
    example: str = ""


def shape_of(arguments: Mapping[str, Any]) -> str:
    """Sorted names and types of arguments."""
    return ", ".join(f"{name}:{_kind(value)}" for name, value in sorted(arguments.items())) or "no arguments"


def tally_calls(records: Iterable[Mapping[str, Any]]) -> list[Calls]:
    """Every call of every record by tool and shape, those with most errors first."""
    found: dict[tuple[str, str], Calls] = {}
    for record in records:
        for turn in record.get("turns") or ():
            for call in turn.get("calls") or ():
                tool = str(call.get("tool") or UNREADABLE)
                shape = shape_of(call.get("arguments") or {})
                entry = found.setdefault((tool, shape), Calls(tool, shape))
                status = call.get("status")
                entry.num_calls += 1
                entry.tasks.append(str(record.get("task_id", "")))
                entry.are_errors.append(status != "ok")
                if status != "ok":
                    entry.num_errors += 1
                    entry.num_schema_errors += status != "tool_error"
                    entry.example = entry.example or str(record.get("trial_id", ""))
    return sorted(found.values(), key=lambda e: (-e.num_errors, -e.num_calls, e.tool, e.shape))


def durations(records: Iterable[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Seconds of every phase of a trial, and of every turn that called one tool, by operation."""
    found: dict[str, list[float]] = {}
    for record in records:
        for phase, seconds in (record.get("phases_s") or {}).items():
            found.setdefault(f"phase {phase}", []).append(float(seconds))
        for turn in record.get("turns") or ():
            calls = list(turn.get("calls") or ())
            if len(calls) == 1 and turn.get("elapsed_s"):
                found.setdefault(f"tool {calls[0].get('tool') or UNREADABLE}", []).append(float(turn["elapsed_s"]))
    return found


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "object")
