"""Where messages stand in an export: files of a zip, entries of a JSON file, lines of JSON or of plain text.

Each message is a mapping of the schema in ``__init__`` with the place it came from, so that an edit rewrites one line
or one file and leaves the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import TooLarge, UnreadableDocument, WrongKind

MAX_MESSAGES = 1_000_000
LISTS = {"channels.json": "#", "groups.json": "#", "mpims.json": "#", "dms.json": "@"}
"""Files of a Slack export that list conversations -> mark before their names."""


@dataclass(slots=True)
class Entry:
    """One message as it was found.

    Attributes:
        channel: name with its mark, ``#general`` or ``@D024``.
        fields: the mapping as it stands in the file.
        file: member of the zip, empty for a single file.
        line: of a JSON-lines file from 0, -1 for others.
    """

    channel: str
    fields: dict[str, Any]
    file: str = ""
    line: int = -1


@dataclass(slots=True)
class Export:
    """A whole export.

    Attributes:
        kind: ``slack`` (zip), ``json``, ``jsonl`` or ``text``.
        entries: in the order of the file.
        channels: name -> what the export says about it.
        users: id -> name shown.
        values: file -> parsed JSON, whose message mappings are those of ``entries``.
        warnings: for the document.
    """

    kind: str
    entries: list[Entry] = field(default_factory=list)
    channels: dict[str, dict[str, Any]] = field(default_factory=dict)
    users: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def add(self, entry: Entry, name: str) -> None:
        """Add a message. Raises TooLarge."""
        if len(self.entries) >= MAX_MESSAGES:
            raise TooLarge(name, f"more than {MAX_MESSAGES} messages")
        self.entries.append(entry)
        self.channels.setdefault(entry.channel, {})


def load(data: bytes, name: str) -> Export:
    """Read an export of any kind. Raises WrongKind, TooLarge or UnreadableDocument."""
    if data.startswith(b"PK\x03\x04"):
        return _of_zip(data, name)
    text = _text(data, name)
    stripped = text.lstrip()
    if not stripped:
        raise UnreadableDocument(name, "the file is empty", remedy="export the chat again")
    if stripped[0] == "[" and name.lower().endswith(".txt"):
        return _of_text(text, name)
    if stripped[0] in "[{":
        return _of_json(text, name)
    return _of_text(text, name)


def _text(data: bytes, name: str) -> str:
    for codec in ("utf-8-sig", "utf-16") if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig", "cp1252"):
        try:
            return data.decode(codec)
        except UnicodeError:
            continue
    raise UnreadableDocument(name, "the text is in no known encoding", remedy="save it as UTF-8")


def _of_zip(data: bytes, name: str) -> Export:
    from ..opc import open_package

    package = open_package(data, name)
    export = Export("slack")
    for part in ("users.json", *LISTS):
        if part in package.parts:
            export.values[part] = _json(package.parts[part].decode("utf-8", "replace"), name, part)
    for user in _mappings(export.values.get("users.json")):
        export.users[str(user.get("id", ""))] = _user_name(user)
    names: dict[str, str] = {}
    for part, mark in LISTS.items():
        for channel in _mappings(export.values.get(part)):
            own = str(channel.get("name") or channel.get("id") or "")
            names[own] = f"{mark}{own}"
            export.channels[f"{mark}{own}"] = dict(channel)
    for part in sorted(package.parts):
        folder, _, base = part.rpartition("/")
        if not folder or not base.endswith(".json"):
            continue
        export.values[part] = _json(package.parts[part].decode("utf-8", "replace"), name, part)
        own = folder.rpartition("/")[2]
        for fields in _mappings(export.values[part]):
            if "ts" in fields:
                export.add(Entry(names.get(own, f"#{own}"), fields, part), name)
    if not export.entries and not export.channels:
        raise WrongKind(name, "the zip holds no chat export", remedy="check the file's extension")
    return export


def _of_json(text: str, name: str) -> Export:
    try:
        value = json.loads(text)
    except ValueError:
        return _of_lines(text, name)
    except RecursionError as error:
        raise TooLarge(name, "the JSON is nested too deeply") from error
    if isinstance(value, dict) and "text" in value:
        return _of_lines(text, name)
    export = Export("json", values={"": value})
    messages = value
    if isinstance(value, dict):
        messages = value.get("messages")
        for user in _mappings(value.get("users")):
            export.users[str(user.get("id", ""))] = _user_name(user)
        for channel in _mappings(value.get("channels")):
            export.channels[_marked(str(channel.get("name") or ""))] = dict(channel)
    found = [fields for fields in _mappings(messages) if _time_of(fields)]
    if not found and not (isinstance(messages, list) and not messages):
        raise WrongKind(name, "the JSON holds no messages", remedy="a message has 'ts' and 'text', see the schema")
    default = name.rpartition("/")[2].rpartition(".")[0] or name
    for fields in found:
        export.add(Entry(_marked(str(fields.get("channel") or default)), fields), name)
    return export


def _of_lines(text: str, name: str) -> Export:
    export = Export("jsonl")
    default = name.rpartition("/")[2].rpartition(".")[0] or name
    broken = []
    for number, line in enumerate(text.split("\n")):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            broken.append(number + 1)
            continue
        if isinstance(fields, dict) and _time_of(fields):
            export.add(Entry(_marked(str(fields.get("channel") or default)), fields, "", number), name)
        else:
            broken.append(number + 1)
    if not export.entries:
        where = f"line {broken[0]}" if broken else ""
        raise UnreadableDocument(name, "no line is a message in JSON", place=where, remedy="see the schema")
    if broken:
        export.warnings.append(f"lines that are no messages: {', '.join(map(str, broken[:20]))}")
    return export


STAMP = re.compile(
    r"^\u200e?\[?(?P<a>\d{1,4})[./-](?P<b>\d{1,2})[./-](?P<c>\d{2,4}),? "
    r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2}))?[ \u202f]?"
    r"(?P<half>[APap]\.?[Mm]\.?)?\]?(?: [-–])? (?P<rest>.*)$"
)


def _of_text(text: str, name: str) -> Export:
    """A chat that a phone exported: a stamp, a name, a colon and the text, which may run over several lines."""
    export = Export("text")
    matches: list[tuple[re.Match[str], list[str]]] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        match = STAMP.match(line)
        if match is not None:
            matches.append((match, []))
        elif matches:
            matches[-1][1].append(line)
    if not matches:
        raise WrongKind(name, "neither JSON nor a chat with dates at its lines", remedy="check the file's extension")
    title = name.rpartition("/")[2].rpartition(".")[0]
    title = re.sub(r"^(?:WhatsApp Chat (?:with|-) |_chat$)", "", title) or "chat"
    is_month_first, is_certain = _order([match for match, _ in matches])
    if not is_certain:
        export.warnings.append("day and month cannot be told apart; the day was taken to be first")
    for match, more in matches:
        user, colon, words = match["rest"].partition(": ")
        body = "\n".join([words if colon else match["rest"], *more]).rstrip("\n")
        moment = _moment(match, is_month_first)
        if moment is None:
            export.warnings.append(f"no date: {match[0][:40]!r}")
            continue
        fields: dict[str, Any] = {"ts": moment, "text": body.replace("\u200e", "")}
        fields |= {"user": user.strip("\u200e ")} if colon else {"subtype": "system"}
        export.add(Entry(_marked(title), fields), name)
    return export


def _order(matches: list[re.Match[str]]) -> tuple[bool, bool]:
    """Whether months come first, and whether that is certain."""
    if any(len(match["a"]) == 4 or int(match["a"]) > 12 for match in matches):
        return False, True
    return (True, True) if any(int(match["b"]) > 12 for match in matches) else (False, False)


def _moment(match: re.Match[str], is_month_first: bool) -> str | None:
    from datetime import datetime

    numbers = [int(match[key]) for key in "abc"]
    if len(match["a"]) == 4:
        year, month, day = numbers
    else:
        day, month, year = (numbers[1], numbers[0], numbers[2]) if is_month_first else numbers
    hour, half = int(match["hour"]), (match["half"] or "").lower()[:1]
    hour = hour % 12 + (12 if half == "p" else 0) if half else hour
    try:
        year += 2000 if year < 100 else 0
        return datetime(year, month, day, hour, int(match["minute"]), int(match["second"] or 0)).isoformat()
    except ValueError:
        return None


def _json(text: str, name: str, part: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableDocument(name, f"damaged JSON: {str(error)[:80]}", place=part) from error


def _mappings(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _user_name(user: Mapping[str, Any]) -> str:
    held = user.get("profile")
    profile: dict[str, Any] = held if isinstance(held, dict) else {}
    names = (profile.get("display_name"), user.get("real_name"), profile.get("real_name"), user.get("name"))
    return str(next((one for one in names if one), user.get("id", "")))


def _marked(channel: str) -> str:
    return channel if channel.startswith(("#", "@")) else f"#{channel}"


def _time_of(fields: Mapping[str, Any]) -> str:
    return str(fields.get("ts") or fields.get("id") or "")
