"""From a tree to a file of messages: JSON lines, one JSON file, or a zip as Slack exports it. Same tree, same bytes."""

from __future__ import annotations

import json
from typing import Any

from ..errors import Unsupported
from ..node import Document, Node
from .edits import escaped

KEPT = ("user", "user_name", "reactions", "edited", "subtype", "deleted")


def write(document: Document) -> bytes:
    """The file of a tree; the suffix of its name decides: ``.jsonl``, ``.json`` or ``.zip``.

    Raises:
        Unsupported: another suffix, or a channel of a zip whose messages have no stamps in seconds.
    """
    suffix = document.name.rpartition(".")[2].lower()
    if suffix == "jsonl":
        lines = [_fields(node, message, False) for node in document.nodes for message in node.children]
        return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines).encode("utf-8")
    if suffix == "json":
        messages = [_fields(node, message, True) for node in document.nodes for message in node.children]
        value = {
            "channels": [_channel(node) for node in document.nodes],
            "users": _users(document),
            "messages": messages,
        }
        return json.dumps(value, ensure_ascii=False, indent=1).encode("utf-8") + b"\n"
    if suffix == "zip":
        return _zip(document)
    raise Unsupported(document.name, f"chats are not written as {suffix!r}", remedy="name it .jsonl, .json or .zip")


def _fields(channel: Node, message: Node, is_escaped: bool) -> dict[str, Any]:
    known = message.attributes
    text = str(known.get("source", escaped(message.text) if is_escaped else message.text))
    stamp = message.address.removeprefix(f"{channel.address}/").partition("~")[0]
    fields: dict[str, Any] = {"channel": channel.address, "ts": stamp, "text": text}
    fields |= {key: known[key] for key in KEPT if key in known}
    if "answers" in known:
        fields["thread_ts"] = str(known["answers"]).rpartition("/")[2]
    elif "replies" in known:
        fields |= {"thread_ts": stamp, "reply_count": known["replies"]}
    if "files" in known:
        keys = {"name": "name", "type": "mimetype", "size_bytes": "size", "url": "url_private"}
        fields["files"] = [{keys[key]: value for key, value in one.items()} for one in known["files"]]
    return fields


def _channel(node: Node) -> dict[str, Any]:
    known = node.attributes
    return {"name": node.address} | {key: known[key] for key in ("id", "members", "topic", "purpose") if key in known}


def _users(document: Document) -> list[dict[str, str]]:
    return [{"id": key, "name": shown} for key, shown in dict(document.metadata.get("users", {})).items()]


def _zip(document: Document) -> bytes:
    from io import BytesIO
    from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

    files: dict[str, Any] = {"users.json": _users(document), "channels.json": [], "dms.json": []}
    for node in document.nodes:
        own = node.address[1:]
        listing = "dms.json" if node.address.startswith("@") else "channels.json"
        known = _channel(node) | {"name": own}
        for key in ("topic", "purpose"):
            known.update({key: {"value": known[key]}} if key in known else {})
        files[listing].append(
            known if listing == "channels.json" else {"id": own} | {k: v for k, v in known.items() if k == "members"}
        )
        for message in node.children:
            day = str(message.attributes.get("sent_at", ""))[:10]
            if not day:
                raise Unsupported(document.name, "a message without a date has no file in a zip", place=message.address)
            fields = _fields(node, message, True)
            del fields["channel"]
            files.setdefault(f"{own}/{day}.json", []).append({"type": "message", **fields})
    out = BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as target:
        for part, value in files.items():
            member = ZipInfo(part)
            member.compress_type = ZIP_DEFLATED
            target.writestr(member, json.dumps(value, ensure_ascii=False, indent=4))
    return out.getvalue()
