"""Mails: single files, and the mailbox of the mail application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from mimetypes import types_map

from journeyman.worlds.content import Mail, unmarked
from journeyman.worlds.render.places import Places


def render_mail(mail: Mail, files: Mapping[str, bytes], places: Places) -> bytes:
    """One message; attachments are files of the world. Facts lie at ``msg:<id>/body`` and at the subject."""
    message = EmailMessage(policy=SMTP.clone(max_line_length=998))
    message["Message-ID"] = f"<{mail.message_id}>"
    message["Date"] = format_datetime(mail.sent.replace(tzinfo=UTC))
    message["From"] = mail.sender
    message["To"] = ", ".join(mail.to)
    if mail.cc:
        message["Cc"] = ", ".join(mail.cc)
    message["Subject"] = places.take(mail.subject, f"msg:{mail.message_id}/header/subject")
    if mail.in_reply_to:
        message["In-Reply-To"] = message["References"] = f"<{mail.in_reply_to}>"
    message.set_content(places.take(mail.body, f"msg:{mail.message_id}/body"), cte="8bit")
    for path in mail.attachments:
        kind, _, subtype = types_map.get("." + path.rpartition(".")[2], "application/octet-stream").partition("/")
        message.add_attachment(files[path], maintype=kind, subtype=subtype, filename=path.rpartition("/")[2])
    if mail.attachments:
        message.set_boundary(f"=={mail.message_id.split('@')[0]}==")
    return message.as_bytes()


def render_mbox(mails: Sequence[tuple[Mail, bytes]]) -> bytes:
    """A mailbox in mbox format, mails in the order of their time."""
    parts = []
    for mail, data in sorted(mails, key=lambda one: (one[0].sent, one[0].message_id)):
        lines = data.replace(b"\r\n", b"\n").split(b"\n")
        quoted = [b">" + line if line.startswith(b"From ") else line for line in lines]
        address = unmarked(mail.sender)[0].rpartition("<")[2].rstrip(">")
        parts.append(f"From {address} {mail.sent.ctime()}\n".encode() + b"\n".join(quoted) + b"\n")
    return b"\n".join(parts)
