"""A mail that lists who looks after which client, in the order it is given."""

from __future__ import annotations

from collections.abc import Mapping

SENT = "Mon, 05 Jan 2026 09:00:00 +0000"
MESSAGE_ID = "<owners@office.example>"


def render_owners(clients: Mapping[str, str]) -> bytes:
    """RFC 5322 with CRLF, fixed date and Message-ID; one ``person: client`` line each."""
    from email.message import EmailMessage
    from email.policy import SMTP

    message = EmailMessage(policy=SMTP)
    message["From"] = "desk@office.example"
    message["To"] = "team@office.example"
    message["Date"] = SENT
    message["Subject"] = "Account owners"
    message["Message-ID"] = MESSAGE_ID
    entries = "\n".join(f"{person}: {client}" for person, client in clients.items())
    message.set_content(f"The clients and who looks after them.\n\n{entries}\n")
    return message.as_bytes()
