"""What a turn of the terminal protocol says, in JSON or XML: commands with durations, and whether the work is done.

Small slips are put right and named; what cannot be read is a ``BadAnswer``, which goes back to the policy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

MAX_DURATION_S = 60.0
DEFAULT_DURATION_S = 1.0


class BadAnswer(ValueError):
    """The turn cannot be read; the text says what to put right."""


@dataclass(frozen=True)
class Command:
    """Keystrokes, and the seconds to wait after them."""

    keystrokes: str
    duration_s: float = DEFAULT_DURATION_S


@dataclass(frozen=True)
class Answer:
    """One turn as read.

    Attributes:
        commands: in order.
        is_complete: the policy says that the task is done.
        analysis, plan: its words.
        notes: what was put right or looks wrong, for the policy.
    """

    commands: tuple[Command, ...]
    is_complete: bool
    analysis: str = ""
    plan: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format:
    """One way to write an answer: how it is read, how it is explained, and what a confirmation looks like."""

    read: Callable[[str], Answer]
    explained: str
    confirmation: str


_DECODER = json.JSONDecoder(strict=False)
_FIELDS = ("analysis", "plan", "commands")
_CLOSERS = {"{": "}", "[": "]"}


def read_json(text: str) -> Answer:
    """An answer in JSON. Raises BadAnswer."""
    start = text.find("{")
    if start < 0:
        raise BadAnswer("no JSON object in the response")
    notes: list[str] = []
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        value, end = _completed(text[start:]), len(text)
        if value is None:
            raise BadAnswer(f"invalid JSON: {error}") from None
        notes.append("AUTO-CORRECTED: the JSON was incomplete and was closed; check that nothing is missing")
    if text[:start].strip():
        notes.append("text before the JSON object was ignored")
    if text[end:].strip():
        notes.append("text after the JSON object was ignored")
    missing = [name for name in _FIELDS if name not in value]
    if missing:
        raise BadAnswer(f"missing required fields: {', '.join(missing)}")
    if not isinstance(value["commands"], list):
        raise BadAnswer('"commands" must be an array')
    commands = [_command(index, item, notes) for index, item in enumerate(value["commands"], start=1)]
    complete = value.get("task_complete", False)
    if isinstance(complete, str):
        complete = complete.strip().lower() in ("true", "yes", "1")
        notes.append('AUTO-CORRECTED: "task_complete" was text; it must be true or false')
    return _answer(commands, complete is True, str(value["analysis"]), str(value["plan"]), notes)


def read_xml(text: str) -> Answer:
    """An answer in XML; keystrokes stand verbatim between their tags. Raises BadAnswer."""
    notes: list[str] = []
    start = text.find("<response>")
    if start < 0:
        raise BadAnswer("no <response> tag in the response")
    end = text.find("</response>", start)
    if end < 0:
        notes.append("AUTO-CORRECTED: </response> was missing")
    body = text[start + len("<response>") : end if end >= 0 else len(text)]
    if text[:start].strip():
        notes.append("text before <response> was ignored")
    if end >= 0 and text[end + len("</response>") :].strip():
        notes.append("text after </response> was ignored")
    inner = re.search(r"<commands>(.*?)(?:</commands>|\Z)", body, re.DOTALL)
    is_empty = re.search(r"<commands\s*/>", body) is not None
    if inner is None and not is_empty:
        raise BadAnswer("no <commands> section in the response")
    commands = []
    for number, found in enumerate(_KEYSTROKES.finditer(inner[1] if inner else ""), start=1):
        duration = re.search(r'duration\s*=\s*"([^"]*)"', found[1])
        item = {"keystrokes": found[2]} | ({"duration": duration[1]} if duration else {})
        commands.append(_command(number, item, notes))
    if inner and "<keystrokes" in inner[1] and inner[1].count("<keystrokes") != len(commands):
        raise BadAnswer("a <keystrokes> tag is not closed")
    said = {
        name: re.search(rf"<{name}>(.*?)</{name}>", body, re.DOTALL) for name in ("analysis", "plan", "task_complete")
    }
    missing = [name for name in ("analysis", "plan") if said[name] is None]
    if missing:
        notes.append(f"missing: {', '.join(f'<{name}>' for name in missing)}")
    words = {name: match[1].strip() if match else "" for name, match in said.items()}
    return _answer(commands, words["task_complete"].lower() == "true", words["analysis"], words["plan"], notes)


_KEYSTROKES = re.compile(r"<keystrokes([^>]*)>(.*?)</keystrokes>", re.DOTALL)


def _command(number: int, item: Any, notes: list[str]) -> Command:
    if not isinstance(item, Mapping) or not isinstance(item.get("keystrokes"), str):
        raise BadAnswer(f'command {number} must be an object with "keystrokes" as text')
    duration = item.get("duration", DEFAULT_DURATION_S)
    try:
        seconds = float(duration)
    except (TypeError, ValueError):
        seconds = float("nan")
    if isinstance(duration, bool) or not seconds >= 0:
        notes.append(f"command {number}: duration {duration!r} is no number of seconds; {DEFAULT_DURATION_S} was taken")
        seconds = DEFAULT_DURATION_S
    if seconds > MAX_DURATION_S:
        notes.append(f"command {number}: duration is capped at {MAX_DURATION_S:g} seconds")
    unknown = [str(name) for name in item if name not in ("keystrokes", "duration")]
    if unknown:
        notes.append(f"command {number}: unknown fields {', '.join(unknown)} were ignored")
    return Command(item["keystrokes"], min(seconds, MAX_DURATION_S))


def _answer(commands: list[Command], complete: bool, analysis: str, plan: str, notes: list[str]) -> Answer:
    for number, command in enumerate(commands[:-1], start=1):
        if len(command.keystrokes) > 4 and not command.keystrokes.endswith("\n"):
            notes.append(f"command {number} does not end with a newline, so the next one continues its line")
    return Answer(tuple(commands), complete, analysis, plan, tuple(notes))


def _completed(text: str) -> dict[str, Any] | None:
    """The object of a JSON text whose end is missing, or None where closing it is not enough."""
    open_brackets: list[str] = []
    in_string = escaped = False
    for letter in text:
        if in_string:
            in_string = escaped or letter != '"'
            escaped = letter == "\\" and not escaped
        elif letter == '"':
            in_string = True
        elif letter in "{[":
            open_brackets.append(letter)
        elif letter in "}]" and (not open_brackets or _CLOSERS[open_brackets.pop()] != letter):
            return None
    closed = text + ('"' if in_string else "") + "".join(_CLOSERS[letter] for letter in reversed(open_brackets))
    try:
        value = _DECODER.decode(closed)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


_RULES = (
    "Keystrokes are typed verbatim: end a command with a newline to run it. A string that is a key's name as tmux has "
    "it, such as C-c, C-d, Escape or Up, is that key. The duration is how many seconds to wait afterwards, 1.0 unless "
    f"you say otherwise and at most {MAX_DURATION_S:g}: 0.1 for what is immediate, more for what takes long; to wait "
    "on, send empty keystrokes."
)

FORMATS: dict[str, Format] = {
    "json": Format(
        read_json,
        "Answer with one JSON object and nothing else:\n"
        '{"analysis": "what you see", "plan": "what you do next", '
        '"commands": [{"keystrokes": "ls -la\\n", "duration": 0.1}], "task_complete": false}\n' + _RULES,
        'include "task_complete": true in your JSON again',
    ),
    "xml": Format(
        read_xml,
        "Answer with one response element and nothing else:\n<response>\n<analysis>what you see</analysis>\n"
        '<plan>what you do next</plan>\n<commands>\n<keystrokes duration="0.1">ls -la\n</keystrokes>\n</commands>\n'
        "<task_complete>false</task_complete>\n</response>\n" + _RULES,
        "include <task_complete>true</task_complete> again",
    ),
}
"""Name -> format."""
