"""From a tree to a message or a mailbox. The same tree gives the same bytes.

Attachments are nodes without their bytes; these are given beside the tree. Boundaries are made from the content.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from ..errors import Unsupported
from ..node import Document, Node
from .encoding import base64_lines, body_bytes, header_bytes

MIME_VERSION = b"MIME-Version: 1.0"
UNKNOWN_SENDER = "MAILER-DAEMON Thu Jan  1 00:00:00 1970"
"""What a mailbox says of a message before its headers; readers take sender and date from the headers."""


def write(document: Document, contents: Mapping[str, bytes] | None = None) -> bytes:
    """The file of a tree: a message with CRLF line ends, or a mailbox with LF.

    Args:
        document: ``eml`` or ``mbox``.
        contents: address of an attachment -> its bytes.

    Raises:
        Unsupported: another format, an attachment without its bytes, or a header that cannot be written.
    """
    given = contents or {}
    if document.format == "mbox":
        written = [_message(document.name, node, given, b"\n") for node in document.nodes]
        return b"".join(b"From " + UNKNOWN_SENDER.encode() + b"\n" + _quoted(one) + b"\n" for one in written)
    if document.format != "eml" or len(document.nodes) != 1:
        raise Unsupported(document.name, f"{document.format} is not written as mail", remedy="written are eml and mbox")
    return _message(document.name, document.nodes[0], given, b"\r\n")


def _quoted(message: bytes) -> bytes:
    lines = [b">" + line if line.lstrip(b">").startswith(b"From ") else line for line in message.split(b"\n")]
    text = b"\n".join(lines)
    return text if text.endswith(b"\n") else text + b"\n"


def _message(name: str, node: Node, contents: Mapping[str, bytes], end: bytes) -> bytes:
    out = []
    for child in node.children:
        if child.kind == "header":
            header = str(child.attributes.get("name", child.address.rpartition("/")[2].partition("~")[0]))
            try:
                out.append(header_bytes(header, child.text, end))
            except ValueError as error:
                raise Unsupported(name, str(error), place=child.address) from error
    texts = [_text_part(child, end) for child in node.children if child.kind in ("body", "alternative")]
    files = [_file_part(name, child, contents, end) for child in node.children if child.kind == "attachment"]
    entity = _multipart(b"alternative", texts, end) if len(texts) > 1 else texts[0] if texts else None
    if files:
        entity = _multipart(b"mixed", [*([entity] if entity else []), *files], end)
    headers, body = entity or (b"", b"")
    version = MIME_VERSION + end if headers else b""
    return b"".join(out) + version + headers + end + body


def _text_part(node: Node, end: bytes) -> tuple[bytes, bytes]:
    kind = str(node.attributes.get("type", "text/plain"))
    text = str(node.attributes.get("source", node.text)) if kind == "text/html" else node.text
    content, charset, encoding = body_bytes(text, str(node.attributes.get("charset", "utf-8")), "7bit", end)
    headers = f'Content-Type: {kind}; charset="{charset}"'.encode() + end
    return headers + f"Content-Transfer-Encoding: {encoding}".encode() + end, content


def _file_part(name: str, node: Node, contents: Mapping[str, bytes], end: bytes) -> tuple[bytes, bytes]:
    kind = str(node.attributes.get("type", "application/octet-stream"))
    if kind == "message/rfc822" and node.children:
        return b"Content-Type: message/rfc822" + end, _message(name, node.children[0], contents, end)
    if node.address not in contents:
        remedy = "give the bytes of attachments by address"
        raise Unsupported(name, "the tree does not hold the attachment's bytes", place=node.address, remedy=remedy)
    lines = [f"Content-Type: {kind}".encode(), b"Content-Transfer-Encoding: base64"]
    disposition = "inline" if node.attributes.get("inline") else "attachment"
    lines.append(f"Content-Disposition: {disposition}{_file_name(str(node.attributes.get('name', '')))}".encode())
    if "content_id" in node.attributes:
        lines.append(f"Content-ID: <{node.attributes['content_id']}>".encode())
    return end.join(lines) + end, base64_lines(contents[node.address], end)


def _file_name(name: str) -> str:
    from urllib.parse import quote

    if not name:
        return ""
    if name.isascii() and not set(name) & set('"\\\r\n'):
        return f'; filename="{name}"'
    return f"; filename*=utf-8''{quote(name, safe='')}"


def _multipart(kind: bytes, parts: list[tuple[bytes, bytes]], end: bytes) -> tuple[bytes, bytes]:
    joined = [headers + end + content for headers, content in parts]
    boundary = b"=_" + sha256(b"".join(joined)).hexdigest()[:24].encode()
    body = b"".join(b"--" + boundary + end + one + end for one in joined) + b"--" + boundary + b"--" + end
    return b"Content-Type: multipart/" + kind + b'; boundary="' + boundary + b'"' + end, body
