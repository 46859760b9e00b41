"""Edits of chat exports; the line or the file of a message is rewritten, all others keep their bytes. Ops:

- ``set`` ``text`` [``by`` ``at``]: of a message; with ``at`` it is marked as edited.
- ``insert`` ``user`` ``ts`` ``text`` [``thread_ts``]: a message into a channel that has some.
- ``delete``: a message.
- ``react`` ``name`` ``user``: add a reaction; ``unreact`` ``name`` ``user``: take it back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..editing import Change, ChangeReport, Edited, changes_of
from ..errors import BadEdit, Unsupported
from ..node import Document
from ..opc import open_package, rewritten
from .reader import read_entries
from .sources import Entry, Export


def edit(data: bytes, name: str, changes: Sequence[Change | Mapping[str, Any]]) -> Edited:
    """Apply changes, see the module for the ops.

    Raises:
        BadEdit: a change cannot be applied. NoSuchAddress: nothing has its address. Unsupported: a chat that a phone
        exported as text. UnreadableDocument: as in ``read``.
    """
    asked = changes_of(changes, name)
    document, export, entries = read_entries(data, name)
    if export.kind == "text":
        raise Unsupported(name, "a chat exported as text is not edited", remedy="write it as jsonl first")
    touched: list[Entry] = []
    for change in asked:
        change.require(OPS, name)
        document.find(change.address)
        entry = entries.get(change.address)
        if (entry is None) != (change.op == "insert"):
            wanted = "a channel" if change.op == "insert" else "a message"
            raise BadEdit(name, f"{change.op} needs the address of {wanted}", place=change.address)
        try:
            touched.append(OPS[change.op](export, change, entry, name))
        except ValueError as error:
            raise BadEdit(name, f"{change.op}: {error}", place=change.address) from error
    saved = _saved(data, name, export, touched)
    after = read_entries(saved, name)[0]
    return Edited(saved, tuple(_report(document, after, change) for change in asked), after.warnings)


def _set(export: Export, change: Change, entry: Entry | None, name: str) -> Entry:
    assert entry is not None
    text = change.text("text", name)
    if export.kind in ("slack", "json"):
        text = escaped(text)
    entry.fields["text"] = text
    if entry.fields.get("blocks"):
        del entry.fields["blocks"]  # the same text a second time, which would go stale
    if "at" in change.values:
        entry.fields["edited"] = {"user": str(change.values.get("by", "")), "ts": change.text("at", name)}
    return entry


def _insert(export: Export, change: Change, entry: Entry | None, name: str) -> Entry:
    fields: dict[str, Any] = {"type": "message"} if export.kind == "slack" else {"channel": change.address}
    text = change.text("text", name)
    text = escaped(text) if export.kind in ("slack", "json") else text
    fields |= {"user": change.text("user", name), "ts": change.text("ts", name), "text": text}
    if "thread_ts" in change.values:
        fields["thread_ts"] = change.text("thread_ts", name)
    same = [one for one in export.entries if one.channel == change.address]
    if any(str(one.fields.get("ts")) == fields["ts"] for one in same):
        raise ValueError(f"a message with ts {fields['ts']} exists")
    if export.kind != "jsonl" and not same:
        raise ValueError("the channel has no file yet")
    model = same[-1] if same else export.entries[-1]
    added = Entry(change.address, fields, model.file, -1)
    if export.kind != "jsonl":
        _messages(export, model.file).append(fields)
    return added


def _delete(export: Export, change: Change, entry: Entry | None, name: str) -> Entry:
    assert entry is not None
    if export.kind != "jsonl":
        messages = _messages(export, entry.file)
        del messages[next(at for at, one in enumerate(messages) if one is entry.fields)]
    entry.fields = {}
    return entry


def _react(export: Export, change: Change, entry: Entry | None, name: str) -> Entry:
    assert entry is not None
    reactions = _reactions(entry)
    word, user = change.text("name", name), change.text("user", name)
    found = next((one for one in reactions if one.get("name") == word), None)
    if found is None:
        found = {"name": word, "users": []}
        reactions.append(found)
    if user in found["users"]:
        raise ValueError(f"{user} has reacted with {word!r} already")
    found["users"].append(user)
    found["count"] = len(found["users"])
    entry.fields["reactions"] = reactions
    return entry


def _reactions(entry: Entry) -> list[dict[str, Any]]:
    """The reactions of a message; what is no reaction is left out, and each has its list of users."""
    held = entry.fields.get("reactions")
    found = [one for one in held if isinstance(one, dict)] if isinstance(held, list) else []
    for one in found:
        one["users"] = one["users"] if isinstance(one.get("users"), list) else []
    return found


def _unreact(export: Export, change: Change, entry: Entry | None, name: str) -> Entry:
    assert entry is not None
    reactions = _reactions(entry)
    word, user = change.text("name", name), change.text("user", name)
    found = next((one for one in reactions if one.get("name") == word and user in one["users"]), None)
    if found is None:
        raise ValueError(f"{user} has not reacted with {word!r}")
    found["users"].remove(user)
    found["count"] = len(found["users"])
    if not found["users"]:
        reactions.remove(found)
    if reactions:
        entry.fields["reactions"] = reactions
    else:
        del entry.fields["reactions"]
    return entry


OPS: dict[str, Callable[[Export, Change, Entry | None, str], Entry]] = {
    "set": _set,
    "insert": _insert,
    "delete": _delete,
    "react": _react,
    "unreact": _unreact,
}
"""Op -> function that changes the export and returns the entry it changed."""


def escaped(text: str) -> str:
    """Text in which nothing is taken for markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _messages(export: Export, file: str) -> list[Any]:
    value = export.values[file]
    found = value.get("messages") if isinstance(value, dict) else value
    assert isinstance(found, list)
    return found


def _saved(data: bytes, name: str, export: Export, touched: list[Entry]) -> bytes:
    if export.kind == "slack":
        package = open_package(data, name)
        files = {entry.file for entry in touched}
        return rewritten(package, {file: _dumped(export.values[file], package.parts[file]) for file in files})
    if export.kind == "json":
        return _dumped(export.values[""], data)
    lines: list[bytes | None] = list(data.split(b"\n"))
    is_ascii = data.isascii()
    for entry in touched:
        line = json.dumps(entry.fields, ensure_ascii=is_ascii).encode() if entry.fields else None
        if entry.line >= 0:
            old = lines[entry.line] or b""
            lines[entry.line] = None if line is None else line + (b"\r" if old.endswith(b"\r") else b"")
        elif line is not None:
            at = len(lines) - 1 if lines and not lines[-1] else len(lines)
            lines.insert(at, line)
    return b"\n".join(line for line in lines if line is not None)


def _dumped(value: Any, old: bytes) -> bytes:
    """JSON with the indentation, the escapes and the last line end that it had before."""
    indent = re.search(rb"^[\[{]\r?\n( +|\t+)", old.lstrip())
    width: int | str | None = None if indent is None else indent[1].decode() if b"\t" in indent[1] else len(indent[1])
    separators = (",", ":") if indent is None and b'": ' not in old else None
    text = json.dumps(value, indent=width, ensure_ascii=old.isascii(), separators=separators)
    return text.encode("utf-8", "surrogatepass") + (b"\n" if old.endswith(b"\n") else b"")


def _report(before: Document, after: Document, change: Change) -> ChangeReport:
    address = f"{change.address}/{change.values['ts']}" if change.op == "insert" else change.address
    known = {node.address: node for node in before.walk()}
    found = {node.address: node for node in after.walk()}
    states = [_state(tree.get(address), change.op) for tree in (known, found)]
    return ChangeReport(change.op, address, *states)


def _state(node: Any, op: str) -> Any:
    if node is None:
        return None
    return node.attributes.get("reactions", []) if "react" in op else node.text
