"""Names and arguments of OpenCode's seven tools, as JSON schemas, and what the policy is told about each."""

from __future__ import annotations

from typing import Any

DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 600_000
MAX_OUTPUT_LINES = 2_000
MAX_OUTPUT_BYTES = 50 * 1024
MAX_READ_LINES = 2_000
MAX_LINE_CHARS = 2_000
MAX_MATCHES = 100
MAX_FILE_BYTES = 16_000_000

TODO_STATES = ("pending", "in_progress", "completed", "cancelled")
PRIORITIES = ("high", "medium", "low")


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


_TODO = _object(
    {
        "content": _text("what is to be done"),
        "status": {"type": "string", "enum": list(TODO_STATES)},
        "priority": {"type": "string", "enum": list(PRIORITIES)},
    }
)

SCHEMAS: dict[str, dict[str, Any]] = {
    "bash": _object(
        {"command": _text("shell command line"), "description": _text("what it does, in a few words")},
        {
            "timeout": {
                "type": "integer",
                "description": f"milliseconds, {DEFAULT_TIMEOUT_MS} by default, at most {MAX_TIMEOUT_MS}",
            },
            "workdir": _text("directory it runs in"),
        },
    ),
    "read": _object(
        {"filePath": _text("absolute path of a file or directory")},
        {
            "offset": {"type": "integer", "description": "first line, counted from 1"},
            "limit": {"type": "integer", "description": f"number of lines, {MAX_READ_LINES} by default"},
        },
    ),
    "write": _object({"content": _text("all of the file"), "filePath": _text("absolute path")}),
    "edit": _object(
        {
            "filePath": _text("absolute path"),
            "oldString": _text("text to replace"),
            "newString": _text("text to put there"),
        },
        {"replaceAll": {"type": "boolean", "description": "replace every occurrence"}},
    ),
    "glob": _object(
        {"pattern": _text("e.g. **/*.csv")}, {"path": _text("directory to search, the working directory by default")}
    ),
    "grep": _object(
        {"pattern": _text("regular expression")},
        {"path": _text("directory or file to search"), "include": _text("pattern of file names, e.g. *.{csv,txt}")},
    ),
    "todowrite": _object({"todos": {"type": "array", "description": "the whole list", "items": _TODO}}),
}
"""Name -> schema of the arguments, in the order offered."""

DESCRIPTIONS: dict[str, str] = {
    "bash": (
        "Run a shell command and return its output. Standard input is empty. Output beyond "
        f"{MAX_OUTPUT_LINES} lines or {MAX_OUTPUT_BYTES // 1024} KiB is cut to its end, and all of it kept in a file."
    ),
    "read": "Read a text file with line numbers, or list a directory.",
    "write": "Write a whole file. A file that exists must have been read before.",
    "edit": "Replace text in a file that was read before. The text must occur once, unless replaceAll is set.",
    "glob": f"Find files by name, newest first, at most {MAX_MATCHES}.",
    "grep": f"Find lines by a regular expression, at most {MAX_MATCHES}, newest files first.",
    "todowrite": "Write the todo list of this work.",
}
