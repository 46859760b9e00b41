"""From the bytes of a message or a mailbox to its tree, with the ranges that edits need."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from ..errors import UnreadableDocument, WrongKind
from ..node import Document, Node
from .charsets import decoded, header_text, payload
from .layout import Entity, entity_at, messages_in
from .markup import text_of_html

STRUCTURAL = {"content-type", "content-transfer-encoding", "content-disposition", "mime-version", "content-length"}
"""Headers that say how the message is packed; the tree says it in its own words."""
IDS = re.compile(r"<([^<>\s]+)>")
QUOTED_FROM = re.compile(r"^>(>*From )", re.MULTILINE)
MAX_NESTED = 8
"""Messages inside messages beyond this stay attachments."""
NEEDED = {"from", "to", "subject", "message-id", "date", "received", "sender", "cc", "mime-version", "content-type"}
NEEDED |= {"return-path", "x-mailer", "delivered-to", "reply-to"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node lies.

    Attributes:
        kind: ``message``, ``header``, ``body``, ``alternative`` or ``attachment``.
        entity: message or part.
        field_index: of a header among the entity's fields, -1 for others.
        parent: the multipart around a part.
        is_editable: False in a message that is packed in base64.
    """

    kind: str
    entity: Entity
    field_index: int = -1
    parent: Entity | None = None
    is_editable: bool = True


@dataclass(slots=True)
class Reading:
    """Messages that were read.

    Attributes:
        data: the bytes that places refer to.
        name: file name.
        places: address -> where.
        contents: address of an attachment -> its name and bytes.
        warnings: for the document.
        is_mailbox: whether lines beginning with ``From`` are quoted.
    """

    data: bytes
    name: str
    places: dict[str, Place] = field(default_factory=dict)
    contents: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    is_mailbox: bool = False

    def note(self, address: str, place: Place) -> str:
        """Remember a place; returns its address, made unique if the file uses an id twice."""
        unique, times = address, 2
        while unique in self.places:
            unique, times = f"{address}~{times}", times + 1
        self.places[unique] = place
        return unique

    def warn(self, address: str, problem: str) -> None:
        """Add a warning, unless there is no problem."""
        if problem:
            self.warnings.append(f"{address}: {problem}")


def read_places(data: bytes, name: str) -> tuple[Document, Reading]:
    """Read a message or a mailbox. Raises WrongKind, TooLarge or UnreadableDocument."""
    if not data.strip():
        raise UnreadableDocument(name, "the file is empty", remedy="get the file again")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise WrongKind(name, "UTF-16 text, not a message", remedy="export the message again")
    reading = Reading(data, name)
    is_mailbox = name.lower().endswith(".mbox") or (data.startswith(b"From ") and len(messages_in(data)) > 1)
    reading.is_mailbox = is_mailbox
    ranges = messages_in(data) if is_mailbox else [(0, len(data))]
    if not ranges:
        raise WrongKind(name, "no line of the mailbox begins a message", remedy="check the file's extension")
    nodes = []
    for number, (start, end) in enumerate(ranges, start=1):
        entity = entity_at(data, start, end, name)
        if not is_mailbox and not any(one.name.lower() in NEEDED for one in entity.fields):
            raise WrongKind(name, "no mail header at its beginning", remedy="check the file's extension")
        nodes.append(_message(reading, entity, number, "", True, 0))
    kind = "mbox" if is_mailbox else "eml"
    nodes = threaded(nodes)
    metadata = {"messages": len(nodes)} if is_mailbox else {}
    return Document(kind, name, tuple(nodes), metadata, tuple(reading.warnings)), reading


def _message(reading: Reading, entity: Entity, number: int, prefix: str, editable: bool, depth: int) -> Node:
    facts = message_facts({one.name.lower(): header_text(one.value) for one in reversed(entity.fields)})
    wanted = f"{prefix}msg:{facts.get('message_id') or number}"
    address = reading.note(wanted, Place("message", entity, is_editable=editable))
    children = []
    for index, one in enumerate(entity.fields):
        if one.name.lower() not in STRUCTURAL:
            place = Place("header", entity, index, is_editable=editable)
            where = reading.note(f"{address}/header/{one.name.lower()}", place)
            children.append(Node("header", where, header_text(one.value), {"name": one.name}))
    children += _parts(reading, entity, address, editable, depth)
    if entity.content_type.startswith("multipart/") and not entity.is_closed:
        reading.warn(address, "the last boundary is missing, the message may be cut off")
    return Node("message", address, "", facts, tuple(children))


def message_facts(headers: dict[str, str]) -> dict[str, Any]:
    """Ids, addresses and date of a message from its headers by lower-case name."""
    from email.utils import getaddresses

    facts: dict[str, Any] = {}
    for key, header in (("message_id", "message-id"), ("in_reply_to", "in-reply-to")):
        found = IDS.findall(headers.get(header, "")) or headers.get(header, "").split()[:1]
        if found:
            facts[key] = found[0]
    if references := IDS.findall(headers.get("references", "")):
        facts["references"] = references
    for key in ("from", "to", "cc", "bcc", "reply-to"):
        if headers.get(key):
            pairs = getaddresses([headers[key]], **TOLERANT)
            people = [
                {"name": person, "address": mail} if person else {"address": mail} for person, mail in pairs if mail
            ]
            facts.update({key.replace("-", "_"): people} if people else {})
    sent_at = instant_of(headers.get("date", ""))
    return facts | ({"sent_at": sent_at} if sent_at else {})


def _tolerant() -> dict[str, Any]:
    from email import utils

    return {"strict": False} if getattr(utils, "supports_strict_parsing", False) else {}


TOLERANT = _tolerant()
"""Newer Pythons refuse odd address lists unless told not to; a reader of foreign mail must not refuse."""


def instant_of(text: str) -> str:
    """A mail date as ISO 8601 with its offset; empty when it is none."""
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def _parts(reading: Reading, entity: Entity, address: str, editable: bool, depth: int) -> list[Node]:
    leaves = list(_with_parents(entity, None))
    body = _body_index(leaves)
    nodes = []
    for number, (leaf, parent) in enumerate(leaves, start=1):
        is_body = number - 1 == body
        raw = reading.data[leaf.body_start : leaf.end]
        content, problem = payload(raw, leaf.encoding)
        if is_body or _is_alternative(leaf, parent):
            kind = "body" if is_body else "alternative"
            where = f"{address}/body" if is_body else f"{address}/part{number}"
            where = reading.note(where, Place(kind, leaf, -1, parent, editable))
            reading.warn(where, problem)
            nodes.append(_text_node(reading, kind, where, leaf, content, number))
        else:
            nodes.append(_attachment(reading, leaf, parent, content, (address, number), editable, depth))
    return sorted(nodes, key=lambda node: node.kind != "body")


def _text_node(reading: Reading, kind: str, where: str, leaf: Entity, content: bytes, number: int) -> Node:
    charset = parameter(leaf, "charset")
    text, problem = decoded(content, charset)
    reading.warn(where, problem)
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    if reading.is_mailbox:
        text = QUOTED_FROM.sub(r"\1", text)
    attributes: dict[str, Any] = {"type": leaf.content_type, "part": number}
    if charset:
        attributes["charset"] = charset.lower()
    if leaf.content_type == "text/html":
        attributes["source"] = text
        text = text_of_html(text)
    return Node(kind, where, text, attributes)


def _attachment(
    reading: Reading,
    leaf: Entity,
    parent: Entity | None,
    content: bytes,
    at: tuple[str, int],
    editable: bool,
    depth: int,
) -> Node:
    address, number = at
    where = reading.note(f"{address}/part{number}", Place("attachment", leaf, -1, parent, editable))
    name = file_name(leaf)
    is_message = leaf.content_type == "message/rfc822"
    fallback = f"part{number}" + (".eml" if is_message else SUFFIXES.get(leaf.content_type, ""))
    reading.contents[where] = (name or fallback, content)
    attributes: dict[str, Any] = {"name": name} if name else {}
    attributes |= {"type": leaf.content_type, "size_bytes": len(content), "sha256": sha256(content).hexdigest()}
    if leaf.raw("content-disposition").lower().startswith(b"inline"):
        attributes["inline"] = True
    if content_id := leaf.raw("content-id").decode("utf-8", "replace").strip("<>"):
        attributes["content_id"] = content_id
    children: tuple[Node, ...] = ()
    if is_message and depth < MAX_NESTED:
        children = (_nested(reading, leaf, content, where, editable, depth),)
    return Node("attachment", where, "", attributes, children)


def _nested(reading: Reading, leaf: Entity, content: bytes, where: str, editable: bool, depth: int) -> Node:
    if leaf.children:
        return _message(reading, leaf.children[0], 1, f"{where}/", editable, depth + 1)
    inner = Reading(content, reading.name)
    node = _message(inner, entity_at(content, 0, len(content), reading.name), 1, f"{where}/", False, depth + 1)
    reading.places.update(inner.places)
    reading.contents.update(inner.contents)
    reading.warnings.extend(inner.warnings)
    return node


def _with_parents(entity: Entity, parent: Entity | None) -> list[tuple[Entity, Entity | None]]:
    if entity.children and entity.content_type.startswith("multipart/"):
        return [pair for child in entity.children for pair in _with_parents(child, entity)]
    return [(entity, parent)]


def _body_index(leaves: list[tuple[Entity, Entity | None]]) -> int:
    """Which leaf is the body: the first plain text that is no attachment, else the first HTML; -1 without any."""
    for wanted in ("text/plain", "text/html"):
        for index, (leaf, _) in enumerate(leaves):
            if leaf.content_type == wanted and _is_shown(leaf):
                return index
    for index, (leaf, parent) in enumerate(leaves):
        if parent is None and leaf.content_type.startswith("text/") and _is_shown(leaf):
            return index
    return -1


def _is_shown(leaf: Entity) -> bool:
    return not leaf.raw("content-disposition").lower().startswith(b"attachment") and not file_name(leaf)


def _is_alternative(leaf: Entity, parent: Entity | None) -> bool:
    return parent is not None and leaf.content_type in ("text/plain", "text/html") and _is_shown(leaf)


def parameter(leaf: Entity, name: str) -> str:
    """A parameter of the content type, empty without one."""
    pattern = rb"""(?:^|;)\s*""" + name.encode() + rb"""\s*=\s*(?:"([^"]*)"|([^\s;]+))"""
    found = re.search(pattern, leaf.raw("content-type"), re.IGNORECASE)
    return "" if found is None else (found[1] if found[1] is not None else found[2]).decode("ascii", "replace")


def file_name(leaf: Entity) -> str:
    """The name of an attachment, however it is encoded; without folders."""
    from email.message import Message

    for header, key in (("content-disposition", "filename"), ("content-type", "name")):
        raw = leaf.raw(header)
        if not raw:
            continue
        holder = Message()
        holder[header] = raw.decode("utf-8", "surrogateescape")
        try:
            found = holder.get_param(key, None, header)
        except (ValueError, TypeError, IndexError, LookupError):
            continue
        if isinstance(found, tuple):
            charset, _, text = found
            found = decoded(text.encode("latin-1", "replace"), charset or "utf-8")[0]
        if found:
            text = header_text(str(found).encode("utf-8", "surrogateescape"))
            return text.replace("\\", "/").rpartition("/")[2]
    return ""


SUFFIXES = {
    "application/pdf": ".pdf",
    "text/csv": ".csv",
    "text/calendar": ".ics",
    "text/html": ".html",
    "text/plain": ".txt",
    "image/png": ".png",
    "image/jpeg": ".jpg",
}
"""Content type -> suffix of an attachment without a name."""


def threaded(nodes: list[Node]) -> list[Node]:
    """The messages with ``thread``: the id of the earliest message known to begin their conversation."""
    parents: dict[str, str] = {}
    for node in nodes:
        known = node.attributes
        chain = [*known.get("references", []), *([known["in_reply_to"]] if "in_reply_to" in known else [])]
        own = known.get("message_id")
        for parent, child in zip(chain, [*chain[1:], own], strict=True) if chain and own else ():
            if child != parent:
                parents.setdefault(str(child), parent)
    found = []
    for node in nodes:
        root, seen = str(node.attributes.get("message_id", "")), set()
        while root in parents and root not in seen:
            seen.add(root)
            root = parents[root]
        attributes = {**node.attributes, "thread": root} if root and len(nodes) > 1 else node.attributes
        found.append(Node(node.kind, node.address, node.text, attributes, node.children))
    return found
