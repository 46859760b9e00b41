"""Mail messages: the plain body, and its ``name: value`` lines as one table of two columns."""

from __future__ import annotations

from .tree import Tree, UnreadableDocument, table

SHOWN_HEADERS = ("From", "To", "Cc", "Date", "Subject", "Message-ID")


def read_mail(data: bytes, name: str) -> Tree:
    """One message. The table is located by the Message-ID and the body lines from its first to its last entry."""
    from email import message_from_bytes, policy
    from email.errors import CloseBoundaryNotFoundDefect, MissingHeaderBodySeparatorDefect

    message = message_from_bytes(data, policy=policy.default)
    if not any(message.get(header) for header in ("From", "To", "Subject", "Message-ID")):
        raise UnreadableDocument(name, "the name says eml, but there is no mail header")
    parts = list(message.walk())
    for defect in (defect for part in parts for defect in part.defects):
        if isinstance(defect, CloseBoundaryNotFoundDefect | MissingHeaderBodySeparatorDefect):
            raise UnreadableDocument(name, f"damaged eml: {type(defect).__name__}")
    body = message.get_body(preferencelist=("plain", "html"))
    text = "" if body is None else str(body.get_content()).replace("\r\n", "\n")
    headers = [f"{header}: {message[header]}" for header in SHOWN_HEADERS if message[header]]
    tables = _entries(text, str(message["Message-ID"] or "no id"))
    return {"format": "eml", "tables": tables, "text": "\n".join([*headers, "", text.rstrip("\n")])}


def _entries(text: str, message_id: str) -> list[Tree]:
    lines, numbers = [["name", "value"]], []
    for number, line in enumerate(text.split("\n"), start=1):
        key, colon, value = line.partition(": ")
        if colon and key.strip() and value.strip():
            lines.append([key.strip(), value.strip()])
            numbers.append(number)
    if not numbers:
        return []
    return [table("entries", f"message {message_id}, body lines {numbers[0]}-{numbers[-1]}", lines)]
