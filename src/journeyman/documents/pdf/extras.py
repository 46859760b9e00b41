"""What a PDF holds beside its text: metadata, links, annotations, form fields, attachments."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any

from ..node import Node
from .boxes import Sheet

MAX_ANNOTATIONS_PER_PAGE = 2_000
MAX_ATTACHMENTS = 1_000

METADATA = {
    "Title": "title",
    "Author": "author",
    "Subject": "subject",
    "Keywords": "keywords",
    "Creator": "creator",
    "Producer": "producer",
    "CreationDate": "created",
    "ModDate": "modified",
}
"""Keys of the file -> keys of ``Document.metadata``."""

SUBTYPES = {
    1: "note",
    2: "link",
    3: "free text",
    4: "line",
    9: "highlight",
    10: "underline",
    11: "squiggly",
    12: "strikeout",
    13: "stamp",
    14: "caret",
    15: "ink",
    17: "attachment",
    20: "field",
}
"""pdfium's number -> our word; drawing aids and pop-ups are left out."""

FIELDS = {1: "button", 2: "check box", 3: "radio button", 4: "choice", 5: "list", 6: "text", 7: "signature"}


def metadata_of(document: Any) -> dict[str, Any]:
    """JSON values; empty ones are left out."""
    found: dict[str, Any] = {"pages": len(document), "version": (document.get_version() or 0) / 10}
    for key, name in METADATA.items():
        value = document.get_metadata_value(key).strip("\0 \r\n")
        if value:
            found[name] = _iso(value) if name in ("created", "modified") else value
    return found


def _iso(value: str) -> str:
    """A PDF date as ISO 8601; what is none is given as it stands."""
    form = r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:Z|([+-])(\d\d)'?(\d\d)?)?"
    match = re.match(form, value)
    if not match:
        return value
    year, month, day, hour, minute, second, sign, h, m = match.groups()
    text = "-".join(part for part in (year, month, day) if part)
    if hour:
        text += f"T{hour}:{minute or '00'}:{second or '00'}"
        text += f"{sign}{h}:{m or '00'}" if sign else "Z" if "Z" in value else ""
    return text


def annotations_of(page: Any, form: Any, sheet: Sheet, number: int) -> list[Node]:
    """Links, annotations and form fields of a page in the order of the file.

    Args:
        page: a ``PdfPage``.
        form: handle of the form environment, or None.
        sheet: how the page lies.
        number: of the page, from 1.
    """
    import pypdfium2.raw as raw

    found = []
    count = raw.FPDFPage_GetAnnotCount(page)
    for at in range(min(count, MAX_ANNOTATIONS_PER_PAGE)):
        annotation = raw.FPDFPage_GetAnnot(page, at)
        if not annotation:
            continue
        try:
            kind = SUBTYPES.get(raw.FPDFAnnot_GetSubtype(annotation))
            if kind is None:
                continue
            rect = raw.FS_RECTF()
            raw.FPDFAnnot_GetRect(annotation, rect)
            box = sheet.shown_box(rect.left, rect.bottom, rect.right, rect.top)
            node = _node(raw, page, form, annotation, kind, f"p{number}/a{at + 1}")
            attributes = {"box": [round(edge, 1) for edge in box], **node.attributes}
            found.append(Node(node.kind, node.address, node.text, attributes))
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
    return found


def _node(raw: Any, page: Any, form: Any, annotation: Any, kind: str, address: str) -> Node:
    def entry(key: bytes) -> str:
        return wide(lambda buffer, size: raw.FPDFAnnot_GetStringValue(annotation, key, buffer, size))

    if kind == "link":
        return Node("link", address, attributes=_target(raw, page, annotation))
    if kind != "field":
        author = entry(b"T")
        return Node("annotation", address, entry(b"Contents"), {"type": kind, **({"author": author} if author else {})})
    if form is None:
        return Node("field", address, entry(b"V"), {"name": entry(b"T")})

    def of_form(call: Any) -> str:
        return wide(lambda buffer, size: call(form, annotation, buffer, size))

    type_ = FIELDS.get(raw.FPDFAnnot_GetFormFieldType(form, annotation), "field")
    attributes: dict[str, Any] = {"name": of_form(raw.FPDFAnnot_GetFormFieldName), "type": type_}
    if type_ in ("check box", "radio button"):
        attributes["checked"] = bool(raw.FPDFAnnot_IsChecked(form, annotation))
        attributes["value"] = of_form(raw.FPDFAnnot_GetFormFieldExportValue)
    if type_ in ("choice", "list"):
        n_options = min(raw.FPDFAnnot_GetOptionCount(form, annotation), 1000)
        attributes["options"] = [
            wide(partial(raw.FPDFAnnot_GetOptionLabel, form, annotation, at)) for at in range(max(0, n_options))
        ]
    return Node("field", address, of_form(raw.FPDFAnnot_GetFormFieldValue), attributes)


def _target(raw: Any, page: Any, annotation: Any) -> dict[str, Any]:
    """Where a link leads: an address outside, or a page of this document."""
    link = raw.FPDFAnnot_GetLink(annotation)
    if not link:
        return {}
    document = page.pdf
    action = raw.FPDFLink_GetAction(link)
    if action:
        size = raw.FPDFAction_GetURIPath(document, action, None, 0)
        if size:
            buffer = ctypes.create_string_buffer(size)
            raw.FPDFAction_GetURIPath(document, action, buffer, size)
            return {"uri": buffer.raw[: size - 1].decode("utf-8", "replace").rstrip("\0")}
    target = raw.FPDFLink_GetDest(document, link) or (raw.FPDFAction_GetDest(document, action) if action else None)
    at = raw.FPDFDest_GetDestPageIndex(document, target) if target else -1
    return {"page": at + 1} if at >= 0 else {}


def attachments_of(document: Any) -> list[Node]:
    """Files inside the file, by name, with size and digest; they are not opened."""
    found = []
    for at in range(min(document.count_attachments(), MAX_ATTACHMENTS)):
        attachment = document.get_attachment(at)
        attributes: dict[str, Any] = {"name": attachment.get_name()}
        try:
            content = bytes(attachment.get_data())
        except Exception:  # an entry without a stream
            attributes["problem"] = "no content"
        else:
            attributes.update(size_bytes=len(content), sha256=sha256(content).hexdigest())
        found.append(Node("attachment", f"attachment{at + 1}", attributes=attributes))
    return found


def wide(call: Callable[[Any, int], int]) -> str:
    """Text of a function that fills a buffer with UTF-16 and returns its size in bytes."""
    import pypdfium2.raw as raw

    size = call(None, 0)
    if size <= 2 or size > 4_000_000:
        return ""
    buffer = ctypes.create_string_buffer(size)
    call(ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    return buffer.raw[: size - 2].decode("utf-16-le", "replace").rstrip("\0")
