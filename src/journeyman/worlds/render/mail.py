"""Mails: single files, and the mailbox of the mail application. Written directly, as RFC 5322 and 2045 say."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC
from email.header import Header
from email.utils import format_datetime

from journeyman.worlds.content import Mail, unmarked
from journeyman.worlds.render.places import Places

KINDS = {
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "csv": "text/csv",
}
"""Suffix -> kind of an attachment; a table of the machine would make bytes depend on it."""


def render_mail(mail: Mail, files: Mapping[str, bytes], places: Places) -> bytes:
    """One message; attachments are files of the world. Facts lie at ``msg:<id>/body`` and at the subject."""
    subject = places.take(mail.subject, f"msg:{mail.message_id}/header/subject")
    body = places.take(mail.body, f"msg:{mail.message_id}/body")
    head = [
        ("Message-ID", f"<{mail.message_id}>"),
        ("Date", format_datetime(mail.sent.replace(tzinfo=UTC))),
        ("From", mail.sender),
        ("To", ", ".join(mail.to)),
        *([("Cc", ", ".join(mail.cc))] if mail.cc else []),
        ("Subject", subject),
    ]
    if mail.in_reply_to:
        head += [("In-Reply-To", f"<{mail.in_reply_to}>"), ("References", f"<{mail.in_reply_to}>")]
    lines = [f"{name}: {_encoded(value)}" for name, value in head] + ["MIME-Version: 1.0"]
    text = ['Content-Type: text/plain; charset="utf-8"', "Content-Transfer-Encoding: 8bit", "", body.rstrip("\n"), ""]
    if not mail.attachments:
        return _joined([*lines, *text])
    boundary = f"=={mail.message_id.split('@')[0]}=="
    lines += [f'Content-Type: multipart/mixed; boundary="{boundary}"', "", f"--{boundary}", *text]
    for path in mail.attachments:
        lines += [f"--{boundary}", *_attachment(path, files[path])]
    return _joined([*lines, f"--{boundary}--", ""])


def _attachment(path: str, data: bytes) -> list[str]:
    name = path.rpartition("/")[2]
    kind = KINDS.get(path.rpartition(".")[2], "application/octet-stream")
    return [
        f"Content-Type: {kind}",
        "Content-Transfer-Encoding: base64",
        f'Content-Disposition: attachment; filename="{name}"',
        "",
        *_lines_of(b64encode(data).decode()),
        "",
    ]


def _lines_of(text: str) -> list[str]:
    return [text[at : at + 76] for at in range(0, len(text), 76)]


def _encoded(value: str) -> str:
    """A header value; words beyond ASCII as encoded words."""
    return value if value.isascii() else Header(value, "utf-8", maxlinelen=900).encode()


def _joined(lines: Sequence[str]) -> bytes:
    return "\r\n".join("\r\n".join(line.split("\n")) for line in lines).encode()


def render_mbox(mails: Sequence[tuple[Mail, bytes]]) -> bytes:
    """A mailbox in mbox format, mails in the order of their time."""
    parts = []
    for mail, data in sorted(mails, key=lambda one: (one[0].sent, one[0].message_id)):
        lines = data.replace(b"\r\n", b"\n").split(b"\n")
        quoted = [b">" + line if line.startswith(b"From ") else line for line in lines]
        address = unmarked(mail.sender)[0].rpartition("<")[2].rstrip(">")
        parts.append(f"From {address} {mail.sent.ctime()}\n".encode() + b"\n".join(quoted) + b"\n")
    return b"\n".join(parts)
