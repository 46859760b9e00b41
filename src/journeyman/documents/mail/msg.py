"""Outlook messages (``.msg``): an OLE container of properties, recipients, attachments and messages within messages."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from ..errors import UnreadableDocument, WrongKind
from ..node import Document, Node
from .charsets import decoded, header_text
from .layout import entity_at
from .markup import text_of_html
from .reader import STRUCTURAL, message_facts
from .rtf import text_of_rtf

STRING, STRING8, BINARY, OBJECT, TIME, INT = 0x001F, 0x001E, 0x0102, 0x000D, 0x0040, 0x0003
SUBJECT, BODY, HTML, RTF, HEADERS, CLASS = 0x0037, 0x1000, 0x1013, 0x1009, 0x007D, 0x001A
SENDER_NAME, SENDER_MAIL, SENDER_SMTP, SENT_AT, RECEIVED_AT = 0x0C1A, 0x0C1F, 0x5D01, 0x0039, 0x0E06
MESSAGE_ID, IN_REPLY_TO, REFERENCES, TO, CC, BCC = 0x1035, 0x1042, 0x1039, 0x0E04, 0x0E03, 0x0E02
CODE_PAGE, INTERNET_CODE_PAGE = 0x3FFD, 0x3FDE
CONTENT, LONG_NAME, SHORT_NAME, DISPLAY_NAME, MIME_TYPE, CONTENT_ID = 0x3701, 0x3707, 0x3704, 0x3001, 0x370E, 0x3712
MAIL, SMTP, RECIPIENT_TYPE = 0x3003, 0x39FE, 0x0C15
RECIPIENT_TYPES = {1: "To", 2: "Cc", 3: "Bcc"}
HEADER_BYTES = {"top": 32, "nested": 24, "other": 8}
"""Bytes before the entries of a stream of fixed properties."""
EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
MAX_NESTED = 8


@dataclass(slots=True)
class _Storage:
    """One storage of the container: a message, a recipient or an attachment."""

    container: Any
    listing: Mapping[tuple[str, ...], list[str]]
    path: list[str]
    header_bytes: int
    children: list[str]
    fixed: dict[tuple[int, int], bytes]
    code_page: str = "cp1252"

    def text(self, tag: int) -> str:
        for kind in (STRING, STRING8):
            data = self.stream(tag, kind)
            if data is not None:
                text = data.decode("utf-16-le", "replace") if kind == STRING else decoded(data, self.code_page)[0]
                return text.rstrip("\0")
        return ""

    def stream(self, tag: int, kind: int) -> bytes | None:
        name = f"__substg1.0_{tag:04X}{kind:04X}"
        found = next((one for one in self.children if one.upper() == name.upper()), None)
        if found is None:
            return None
        try:
            data: bytes = self.container.openstream([*self.path, found]).read()
        except OSError:
            return None
        return data

    def number(self, tag: int) -> int | None:
        data = self.fixed.get((tag, INT))
        return None if data is None else int(struct.unpack("<i", data[:4])[0])

    def instant(self, tag: int) -> str:
        data = self.fixed.get((tag, TIME))
        ticks = 0 if data is None else struct.unpack("<Q", data)[0]
        try:
            return (EPOCH + timedelta(microseconds=ticks // 10)).isoformat() if ticks else ""
        except OverflowError:
            return ""

    def below(self, name: str, header_bytes: int) -> _Storage:
        return _storage(self.container, self.listing, [*self.path, name], header_bytes, self.code_page)


def read_msg(data: bytes, name: str) -> tuple[Document, dict[str, tuple[str, bytes]]]:
    """The tree of an Outlook message and, by address, names and bytes of its attachments.

    Raises:
        WrongKind: an OLE container of another kind. UnreadableDocument: a damaged one.
    """
    from io import BytesIO

    import olefile

    if not data.startswith(b"\xd0\xcf\x11\xe0"):
        raise WrongKind(name, "no Outlook message", remedy="check the file's extension")
    try:
        with olefile.OleFileIO(BytesIO(data)) as container:
            listing: dict[tuple[str, ...], list[str]] = {}
            for path in container.listdir(streams=True, storages=True):
                listing.setdefault(tuple(path[:-1]), []).append(path[-1])
            if not any(one.startswith("__properties") for one in listing.get((), [])):
                raise WrongKind(name, "an OLE container that holds no message", remedy="check the file's extension")
            contents: dict[str, tuple[str, bytes]] = {}
            warnings: list[str] = []
            top = _storage(container, listing, [], HEADER_BYTES["top"], "cp1252")
            node = _message(top, "", contents, warnings, 0)
    except UnreadableDocument:
        raise
    except Exception as error:  # the container library raises its own zoo on damaged files
        raise UnreadableDocument(name, f"damaged container: {str(error)[:120]}", remedy="export it again") from error
    kind = top.text(CLASS)
    return Document("msg", name, (node,), {"class": kind} if kind else {}, tuple(warnings)), contents


def _storage(
    container: Any, listing: Mapping[tuple[str, ...], list[str]], path: list[str], header_bytes: int, code_page: str
) -> _Storage:
    children = listing.get(tuple(path), [])
    storage = _Storage(container, listing, path, header_bytes, children, {}, code_page)
    stream = next((one for one in children if one.lower() == "__properties_version1.0"), None)
    if stream is not None:
        data = container.openstream([*path, stream]).read()[header_bytes:]
        for at in range(0, len(data) - 15, 16):
            kind, tag = struct.unpack("<HH", data[at : at + 4])
            storage.fixed[tag, kind] = data[at + 8 : at + 16]
    page = storage.number(CODE_PAGE) or storage.number(INTERNET_CODE_PAGE)
    if page:
        storage.code_page = "utf-8" if page == 65001 else f"cp{page}"
    return storage


def _message(
    storage: _Storage, prefix: str, contents: dict[str, tuple[str, bytes]], warnings: list[str], depth: int
) -> Node:
    headers = _headers(storage)
    facts = message_facts({key.lower(): text for key, text in reversed(headers)})
    sent_at = storage.instant(SENT_AT) or storage.instant(RECEIVED_AT)
    if "sent_at" not in facts and sent_at:
        facts["sent_at"] = sent_at
    address = f"{prefix}msg:{facts.get('message_id', 1)}"
    nodes, seen = [], dict.fromkeys((key.lower() for key, _ in headers), 0)
    for key, text in headers:
        seen[key.lower()] += 1
        suffix = f"~{seen[key.lower()]}" if seen[key.lower()] > 1 else ""
        nodes.append(Node("header", f"{address}/header/{key.lower()}{suffix}", text, {"name": key}))
    nodes += _bodies(storage, address, warnings)
    names = sorted(one for one in storage.children if one.startswith("__attach_version1.0_"))
    for number, name in enumerate(names, start=2):
        part = storage.below(name, HEADER_BYTES["other"])
        nodes.append(_attachment(part, f"{address}/part{number}", contents, warnings, depth))
    return Node("message", address, "", facts, tuple(nodes))


def _headers(storage: _Storage) -> list[tuple[str, str]]:
    """Headers of the transport where they were kept, completed from the message's properties."""
    raw = storage.text(HEADERS).encode("utf-8", "replace")
    entity = entity_at(raw, 0, len(raw), "headers", depth=0) if raw else None
    fields = [] if entity is None else [(one.name, header_text(one.value)) for one in entity.fields]
    found = [(key, text) for key, text in fields if key.lower() not in STRUCTURAL]
    known = {key.lower() for key, _ in found}
    people: dict[str, list[str]] = {}
    recipients = [] if "to" in known else [one for one in storage.children if one.startswith("__recip_version1.0_")]
    for name in sorted(recipients):
        person = storage.below(name, HEADER_BYTES["other"])
        kind = RECIPIENT_TYPES.get(person.number(RECIPIENT_TYPE) or 1, "To")
        people.setdefault(kind, []).append(_person(person.text(DISPLAY_NAME), person.text(SMTP) or person.text(MAIL)))
    own = {
        "From": _person(storage.text(SENDER_NAME), storage.text(SENDER_SMTP) or storage.text(SENDER_MAIL)),
        "To": ", ".join(people.get("To", [])) or storage.text(TO),
        "Cc": ", ".join(people.get("Cc", [])) or storage.text(CC),
        "Bcc": ", ".join(people.get("Bcc", [])) or storage.text(BCC),
        "Subject": storage.text(SUBJECT),
        "Message-ID": storage.text(MESSAGE_ID),
        "In-Reply-To": storage.text(IN_REPLY_TO),
        "References": storage.text(REFERENCES),
    }
    return found + [(key, text) for key, text in own.items() if text and key.lower() not in known]


def _person(name: str, mail: str) -> str:
    if not name or name == mail:
        return mail or name
    quoted = f'"{name}"' if any(one in name for one in ",;@<>") else name
    return f"{quoted} <{mail}>" if mail else name


def _bodies(storage: _Storage, address: str, warnings: list[str]) -> list[Node]:
    plain = storage.text(BODY)
    source = storage.text(HTML)
    binary = storage.stream(HTML, BINARY)
    if not source and binary:
        page = storage.number(INTERNET_CODE_PAGE)
        source = decoded(binary, "utf-8" if page in (None, 65001) else f"cp{page}")[0]
    compressed = storage.stream(RTF, BINARY)
    nodes = []
    if plain.strip() or not (source or compressed):
        nodes.append(Node("body", f"{address}/body", plain.replace("\r\n", "\n"), {"type": "text/plain", "part": 1}))
    if source:
        kind, where = ("alternative", f"{address}/part1") if nodes else ("body", f"{address}/body")
        source = source.replace("\r\n", "\n")
        nodes.append(Node(kind, where, text_of_html(source), {"type": "text/html", "part": 1, "source": source}))
    if compressed and not nodes:
        text, problem = text_of_rtf(compressed)
        nodes.append(Node("body", f"{address}/body", text, {"type": "text/rtf", "part": 1}))
        if problem:
            warnings.append(f"{address}/body: {problem}")
    return nodes


def _attachment(
    part: _Storage, where: str, contents: dict[str, tuple[str, bytes]], warnings: list[str], depth: int
) -> Node:
    name = part.text(LONG_NAME) or part.text(SHORT_NAME) or part.text(DISPLAY_NAME)
    name = name.replace("\\", "/").rpartition("/")[2]
    attributes: dict[str, Any] = {"name": name} if name else {}
    inner = f"__substg1.0_{CONTENT:04X}{OBJECT:04X}"
    if inner in part.children:
        nested = part.below(inner, HEADER_BYTES["nested"])
        if any(one.lower().startswith("__properties") for one in nested.children) and depth < MAX_NESTED:
            child = _message(nested, f"{where}/", contents, warnings, depth + 1)
            return Node("attachment", where, "", attributes | {"type": "message/rfc822"}, (child,))
        return Node("attachment", where, "", attributes | {"type": "application/x-ole-storage"})
    content = part.stream(CONTENT, BINARY)
    kind = part.text(MIME_TYPE) or "application/octet-stream"
    if content is None:
        warnings.append(f"{where}: the attachment is a link or missing")
        return Node("attachment", where, "", attributes | {"type": kind})
    contents[where] = (name or where.rpartition("/")[2], content)
    attributes |= {"type": kind, "size_bytes": len(content), "sha256": sha256(content).hexdigest()}
    if content_id := part.text(CONTENT_ID):
        attributes["content_id"] = content_id
    return Node("attachment", where, "", attributes)
