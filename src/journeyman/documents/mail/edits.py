"""Edits of messages and mailboxes, on their bytes: what is not named keeps every one of them. Ops:

- ``set`` ``text``: of a header or a plain body; ``set`` ``source``: of an HTML body.
- ``replace`` ``old`` ``new``: in a header or body; in an HTML body in its source.
- ``insert`` ``header`` ``text``: a header at the end of those of a message.
- ``delete``: a header, or an attachment of a multipart message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..editing import Change, ChangeReport, Edited, changes_of
from ..errors import BadEdit, NoSuchAddress
from ..node import Document, Node
from .encoding import body_bytes, header_bytes
from .layout import Entity
from .reader import Place, Reading, parameter, read_places

Patch = tuple[int, int, bytes]
"""Start, end and what takes the place of these bytes."""


def edit(data: bytes, name: str, changes: Sequence[Change | Mapping[str, Any]]) -> Edited:
    """Apply changes, see the module for the ops.

    Raises:
        BadEdit: a change cannot be applied. NoSuchAddress: nothing has its address. UnreadableDocument: as in ``read``.
    """
    asked = changes_of(changes, name)
    document, reading = read_places(data, name)
    patches: list[Patch] = []
    before = []
    for change in asked:
        change.require(OPS, name)
        place = _place(document, reading, change)
        node = document.find(change.address)
        try:
            patches += OPS[change.op](reading, change, place, node)
        except ValueError as error:
            raise BadEdit(name, f"{change.op}: {error}", place=change.address) from error
        before.append(node.attributes["name"] if node.kind == "attachment" and "name" in node.attributes else node.text)
    saved = _patched(data, patches, name)
    after, _ = read_places(saved, name)
    reports = [_report(after, change, old) for change, old in zip(asked, before, strict=True)]
    return Edited(saved, tuple(reports), after.warnings)


def _place(document: Document, reading: Reading, change: Change) -> Place:
    document.find(change.address)
    place = reading.places[change.address]
    if not place.is_editable:
        problem = "it lies in a message that is packed in base64"
        raise BadEdit(reading.name, problem, place=change.address, remedy="edit the attachment and attach it again")
    return place


def _set(reading: Reading, change: Change, place: Place, node: Node) -> list[Patch]:
    if place.kind == "header":
        return [_header_patch(reading, place, change.text("text", reading.name))]
    if place.kind not in ("body", "alternative"):
        raise ValueError("only headers and bodies are set")
    if node.attributes["type"] == "text/html":
        if "source" not in change.values:
            raise ValueError("this body is HTML; give its 'source'")
        return _body_patches(reading, place, change.text("source", reading.name))
    return _body_patches(reading, place, change.text("text", reading.name))


def _replace(reading: Reading, change: Change, place: Place, node: Node) -> list[Patch]:
    old, new = change.text("old", reading.name), change.text("new", reading.name)
    text = str(node.attributes.get("source", node.text))
    if not old or old not in text:
        raise ValueError(f"{old!r} does not occur there")
    if place.kind == "header":
        return [_header_patch(reading, place, text.replace(old, new))]
    if place.kind not in ("body", "alternative"):
        raise ValueError("words are replaced in headers and bodies")
    return _body_patches(reading, place, text.replace(old, new))


def _insert(reading: Reading, change: Change, place: Place, node: Node) -> list[Patch]:
    if place.kind != "message":
        raise ValueError("headers are inserted into messages")
    field_end = place.entity.fields[-1].end if place.entity.fields else place.entity.start
    name, text = change.text("header", reading.name), change.text("text", reading.name)
    return [(field_end, field_end, header_bytes(name, text, _line_end(reading, place.entity)))]


def _delete(reading: Reading, change: Change, place: Place, node: Node) -> list[Patch]:
    if place.kind == "header":
        field = place.entity.fields[place.field_index]
        return [(field.start, field.end, b"")]
    if place.kind != "attachment" or place.parent is None:
        raise ValueError("only headers and attachments of multipart messages are deleted")
    if len(place.parent.children) == 1:
        raise ValueError("it is the only part of its message")
    data = reading.data
    line = data.rfind(b"\n", 0, place.entity.start - 1) + 1  # the boundary before the part goes with it
    end = place.entity.end
    end += 2 if data.startswith(b"\r\n", end) else 1 if data.startswith(b"\n", end) else 0
    return [(line, end, b"")]


OPS: dict[str, Callable[[Reading, Change, Place, Node], list[Patch]]] = {
    "set": _set,
    "replace": _replace,
    "insert": _insert,
    "delete": _delete,
}
"""Op -> function that gives the patches."""


def _header_patch(reading: Reading, place: Place, text: str) -> Patch:
    field = place.entity.fields[place.field_index]
    return field.start, field.end, header_bytes(field.name, text, _line_end(reading, place.entity))


def _body_patches(reading: Reading, place: Place, text: str) -> list[Patch]:
    entity = place.entity
    end = _line_end(reading, entity)
    if reading.is_mailbox:
        text = ("\n" + text).replace("\nFrom ", "\n>From ").removeprefix("\n") if "From " in text else text
        text = text if text.endswith("\n") or place.parent is not None else text + "\n"
    declared = parameter(entity, "charset")
    content, charset, encoding = body_bytes(text, declared, entity.encoding, end)
    patches: list[Patch] = [(entity.body_start, entity.end, content)]
    if charset.lower() != (declared or "us-ascii").lower():
        patches.append(
            _structural_patch(reading, entity, "Content-Type", f'{entity.content_type}; charset="{charset}"')
        )
    if encoding != entity.encoding:
        patches.append(_structural_patch(reading, entity, "Content-Transfer-Encoding", encoding))
    if entity.body_start == entity.end and entity.fields and not _has_blank_line(reading, entity):
        patches[0] = (entity.body_start, entity.end, end + content)
    return patches


def _structural_patch(reading: Reading, entity: Entity, name: str, text: str) -> Patch:
    end = _line_end(reading, entity)
    for field in entity.fields:
        if field.name.lower() == name.lower():
            return field.start, field.end, header_bytes(field.name, text, end)
    at = entity.fields[-1].end if entity.fields else entity.start
    return at, at, header_bytes(name, text, end)


def _has_blank_line(reading: Reading, entity: Entity) -> bool:
    return entity.body_start > entity.fields[-1].end


def _line_end(reading: Reading, entity: Entity) -> bytes:
    at = reading.data.find(b"\n", entity.start)
    return b"\r\n" if at > 0 and reading.data[at - 1 : at] == b"\r" else b"\n"


def _patched(data: bytes, patches: list[Patch], name: str) -> bytes:
    ordered = sorted(enumerate(patches), key=lambda one: (one[1][0], one[1][1], one[0]))
    out, at = [], 0
    for _, (start, end, content) in ordered:
        if start < at:
            raise BadEdit(name, "two changes of this call touch the same place", place=f"byte {start}")
        out += [data[at:start], content]
        at = end
    return b"".join([*out, data[at:]])


def _report(after: Document, change: Change, before: str) -> ChangeReport:
    if change.op == "delete":
        return ChangeReport(change.op, change.address, before, None)
    address = change.address
    if change.op == "insert":
        address = f"{change.address}/header/{str(change.values['header']).lower()}"
        same = [
            node.address for node in after.walk() if node.address == address or node.address.startswith(f"{address}~")
        ]
        address, before = (same[-1] if same else address), ""
    try:
        return ChangeReport(change.op, address, before or None, after.find(address).text)
    except NoSuchAddress:
        note = "the message has a new id, its addresses begin with it"
        return ChangeReport(change.op, address, before, str(change.values.get("text", "")), note)
