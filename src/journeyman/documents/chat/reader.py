"""From an export to its tree: channels with their messages in order of time."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from ..node import Document, Node
from .sources import Entry, Export, load

MARKUP = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


def read_entries(data: bytes, name: str) -> tuple[Document, Export, dict[str, Entry]]:
    """The tree, the export behind it, and the entry of each message's address. Raises UnreadableDocument."""
    export = load(data, name)
    entries: dict[str, Entry] = {}
    channels: dict[str, list[Node]] = {channel: [] for channel in export.channels}
    for entry in sorted(export.entries, key=lambda one: _sort_key(str(one.fields.get("ts") or one.fields.get("id")))):
        address, times = f"{entry.channel}/{entry.fields.get('ts') or entry.fields.get('id')}", 2
        unique = address
        while unique in entries:
            unique, times = f"{address}~{times}", times + 1
        entries[unique] = entry
        channels.setdefault(entry.channel, []).append(_message(export, entry, unique))
    nodes = [
        Node("channel", channel, "", _about(channel, export.channels.get(channel, {})), tuple(m))
        for channel, m in channels.items()
    ]
    metadata = {"kind": export.kind, "messages": len(entries)} | ({"users": export.users} if export.users else {})
    return Document("chat", name, tuple(nodes), metadata, tuple(export.warnings)), export, entries


def _message(export: Export, entry: Entry, address: str) -> Node:
    fields = entry.fields
    source = str(fields.get("text") or "")
    text = plain(source, export.users) if export.kind in ("slack", "json") else source
    user = str(fields.get("user") or fields.get("bot_id") or "")
    attributes: dict[str, Any] = {"user": user} if user else {}
    if shown := fields.get("user_name") or export.users.get(user) or _profile_name(fields) or fields.get("username"):
        attributes["user_name"] = str(shown)
    if sent_at := instant_of(str(fields.get("ts") or fields.get("sent_at") or "")):
        attributes["sent_at"] = sent_at
    thread = fields.get("thread_ts")
    if thread and str(thread) != str(fields.get("ts")):
        attributes["answers"] = f"{entry.channel}/{thread}"
    elif fields.get("reply_count"):
        attributes["replies"] = fields["reply_count"]
    if isinstance(fields.get("reactions"), list):
        attributes["reactions"] = [_reaction(one) for one in fields["reactions"] if isinstance(one, dict)]
    if isinstance(fields.get("edited"), dict):
        attributes["edited"] = {key: str(value) for key, value in fields["edited"].items()}
    if isinstance(fields.get("files"), list):
        attributes["files"] = [_file(one) for one in fields["files"] if isinstance(one, dict)]
    for key in ("subtype", "deleted"):
        if fields.get(key):
            attributes[key] = fields[key]
    if source != text:
        attributes["source"] = source
    return Node("message", address, text, attributes)


def plain(text: str, users: dict[str, str]) -> str:
    """A message as people see it: names for ids, labels for links, characters for entities."""

    def shown(match: re.Match[str]) -> str:
        mark, target, label = match[1], match[2], match[3]
        if mark == "@":
            return f"@{label or users.get(target, target)}"
        if mark == "#":
            return f"#{label or target}"
        if mark == "!":
            return f"@{label or target.partition('^')[0]}"
        return f"{label} ({target})" if label and label != target else target.removeprefix("mailto:")

    text = MARKUP.sub(shown, text)
    for entity, character in ENTITIES:
        text = text.replace(entity, character)
    return text


def instant_of(stamp: str) -> str:
    """A stamp in seconds since 1970 as ISO 8601 in UTC, another text as it stands."""
    try:
        seconds, _, fraction = stamp.partition(".")
        moment = datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return stamp if re.match(r"\d{4}-\d{2}-\d{2}", stamp) else ""
    return moment.replace(microsecond=int(fraction[:6].ljust(6, "0")) if fraction.isdigit() else 0).isoformat()


def _sort_key(stamp: str) -> tuple[int, float, str]:
    try:
        return 0, float(stamp), stamp
    except ValueError:
        return 1, 0.0, stamp


def _about(name: str, channel: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in ("topic", "purpose"):
        held = channel.get(key)
        text = held.get("value") if isinstance(held, dict) else held
        found.update({key: str(text)} if text else {})
    found.update({"id": str(channel["id"])} if channel.get("id") and str(channel["id"]) != name[1:] else {})
    if isinstance(channel.get("members"), list):
        found["members"] = [str(one) for one in channel["members"]]
    return found


def _reaction(fields: dict[str, Any]) -> dict[str, Any]:
    users = fields.get("users") if isinstance(fields.get("users"), list) else []
    return {"name": str(fields.get("name", "")), "users": [str(one) for one in users or []]}


def _file(fields: dict[str, Any]) -> dict[str, Any]:
    keys = (("name", "name"), ("type", "mimetype"), ("size_bytes", "size"), ("url", "url_private"))
    return {key: fields[source] for key, source in keys if fields.get(source)}


def _profile_name(fields: dict[str, Any]) -> str:
    profile = fields.get("user_profile")
    return str(profile.get("display_name") or profile.get("real_name") or "") if isinstance(profile, dict) else ""
