"""Where in the bytes of a message its headers, its body and its parts lie.

Reading and editing share this map, so an edit replaces one range and leaves every other byte, whatever its line endings
and however broken it is. Nothing is decoded here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..errors import TooLarge

HEADER = re.compile(rb"([!-9;-~]+)[ \t]*:(.*(?:\r?\n[ \t].*)*)(?:\r?\n|\Z)")
BOUNDARY = re.compile(rb"""boundary[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))""", re.IGNORECASE)
FROM_LINE = re.compile(rb"(?:\A|(?<=\n)\r?\n|(?<=\n\n)|(?<=\r\n\r\n))From [^\r\n]*\r?\n")
"""Begins a message of a mailbox; the empty line before it belongs to neither message."""
MAX_DEPTH = 30
MAX_PARTS = 10_000


@dataclass(frozen=True, slots=True)
class Field:
    """One header field.

    Attributes:
        name: as written.
        value: raw, with its folds, without the line end.
        start, end: of the whole field, line end included.
    """

    name: str
    value: bytes
    start: int
    end: int


@dataclass(slots=True)
class Entity:
    """A message or a part of one.

    Attributes:
        start, body_start, end: of the headers, of the body, of the whole.
        fields: headers in order.
        children: parts of a multipart, or the message in a part that is a message.
        is_closed: whether a multipart has its last boundary.
    """

    start: int
    body_start: int
    end: int
    fields: list[Field] = field(default_factory=list)
    children: list[Entity] = field(default_factory=list)
    is_closed: bool = True

    def raw(self, name: str) -> bytes:
        """Raw value of the first field of this name, without folds; empty without one."""
        for one in self.fields:
            if one.name.lower() == name:
                return re.sub(rb"\r?\n(?=[ \t])", b"", one.value).strip()
        return b""

    @property
    def content_type(self) -> str:
        """Content type in lower case, ``text/plain`` where it is missing or no type."""
        found = self.raw("content-type").split(b";")[0].strip().lower().decode("ascii", "replace")
        return found if re.fullmatch(r"[\w.+-]+/[\w.+-]+", found) else "text/plain"

    @property
    def encoding(self) -> str:
        """Transfer encoding in lower case."""
        found = re.split(rb"[;\s]", self.raw("content-transfer-encoding").lower())[0]
        return found.decode("ascii", "replace")

    def leaves(self) -> Iterator[Entity]:
        """Parts that are no multipart, in order; a message inside is one leaf."""
        if self.children and self.content_type.startswith("multipart/"):
            for child in self.children:
                yield from child.leaves()
        else:
            yield self


def entity_at(data: bytes, start: int, end: int, name: str, depth: int = 0) -> Entity:
    """The map of the message in ``data[start:end]``. Raises TooLarge when it is nested too deeply."""
    if depth > MAX_DEPTH:
        raise TooLarge(name, f"parts are nested more than {MAX_DEPTH} deep", place=f"byte {start}")
    entity = _headers(data, start, end)
    if entity.content_type.startswith("multipart/"):
        _split(data, entity, name, depth)
    elif entity.content_type == "message/rfc822" and entity.encoding not in ("base64", "quoted-printable"):
        entity.children.append(entity_at(data, entity.body_start, end, name, depth + 1))
    return entity


def messages_in(data: bytes) -> list[tuple[int, int]]:
    """Ranges of the messages of an mbox, without their ``From`` lines."""
    starts = list(FROM_LINE.finditer(data))
    if not starts:
        return []
    last = len(data) - (2 if data.endswith(b"\n\r\n") else 1 if data.endswith(b"\n\n") else 0)
    ends = [match.start() for match in starts[1:]] + [last]
    return [(match.end(), end) for match, end in zip(starts, ends, strict=True)]


def _headers(data: bytes, start: int, end: int) -> Entity:
    fields: list[Field] = []
    at = start
    while at < end:
        blank = 2 if data.startswith(b"\r\n", at) else 1 if data.startswith(b"\n", at) else 0
        if blank:
            return Entity(start, min(at + blank, end), end, fields)
        match = HEADER.match(data, at, end)
        if match is None:
            line_end = data.find(b"\n", at, end)
            if fields or line_end < 0 or not data.startswith((b"From ", b">From "), at):
                break  # a body without the blank line before it
            at = line_end + 1
            continue
        fields.append(Field(match[1].decode("ascii"), match[2], match.start(), match.end()))
        at = match.end()
    return Entity(start, min(at, end), end, fields)


def _split(data: bytes, entity: Entity, name: str, depth: int) -> None:
    match = BOUNDARY.search(entity.raw("content-type"))
    if match is None:
        return
    boundary = (re.sub(rb"\\(.)", rb"\1", match[1]) if match[1] is not None else match[2]).rstrip()
    pattern = re.compile(rb"(?:^|(?<=\n))--" + re.escape(boundary) + rb"(--)?[ \t]*(?:\r?\n|\Z)")
    found = list(pattern.finditer(data, entity.body_start, entity.end))
    entity.is_closed = any(one[1] for one in found)
    for number, one in enumerate(found):
        if one[1]:
            break
        last = found[number + 1].start() if number + 1 < len(found) else entity.end
        if number + 1 < len(found):  # the line end before a boundary belongs to the boundary
            last -= 2 if data[last - 2 : last] == b"\r\n" else 1 if data[last - 1 : last] == b"\n" else 0
        entity.children.append(entity_at(data, one.end(), max(last, one.end()), name, depth + 1))
        if len(entity.children) > MAX_PARTS:
            raise TooLarge(name, f"more than {MAX_PARTS} parts", place=f"byte {entity.start}")
