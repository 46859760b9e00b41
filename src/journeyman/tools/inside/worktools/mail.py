"""mail: one mailbox of records; mails of mbox and eml files beside them are read too. Nothing leaves the sandbox."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from email.utils import getaddresses, parsedate_to_datetime
from pathlib import Path
from typing import Any

from .state import found, load, new_id, now, store, when
from .workspace import Refused, Workspace

_ADDRESS = re.compile(r"[^@\s,;<>]+@[^@\s,;<>]+")
SHOWN = 200
"""Characters of a body that a list shows."""


def _home(workspace: Workspace) -> Path:
    return workspace.apps / "mail"


def _own(workspace: Workspace) -> list[dict[str, Any]]:
    mails: list[dict[str, Any]] = load(_home(workspace) / "mails.json", [])
    return mails


def _mails(workspace: Workspace) -> list[dict[str, Any]]:
    """Every mail, newest first."""
    mails = [*_own(workspace), *_imported(_home(workspace), workspace.temporary / ".mail")]
    return sorted(mails, key=lambda one: (str(one.get("timestamp")), str(one.get("mail_id"))), reverse=True)


def _imported(home: Path, kept: Path) -> list[dict[str, Any]]:
    """Mails of mailbox files in the state directory; what was read of the same files before is kept below ``kept``."""
    paths = [path for path in sorted(home.glob("**/*")) if path.suffix in (".eml", ".mbox")] if home.is_dir() else []
    if not paths:
        return []
    facts = [(path, path.stat()) for path in paths]
    stamp = hashlib.sha256(repr([(str(path), one.st_size, one.st_mtime_ns) for path, one in facts]).encode())
    place = kept / f"{stamp.hexdigest()[:24]}.json"
    with contextlib.suppress(OSError, ValueError):
        records: list[dict[str, Any]] = json.loads(place.read_bytes())
        return records
    records = _parsed(paths)
    with contextlib.suppress(OSError):
        kept.mkdir(parents=True, exist_ok=True)
        part = place.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(records, ensure_ascii=False), encoding="utf-8", errors="surrogatepass")
        part.replace(place)
    return records


def _parsed(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """The mails of these files."""
    import mailbox
    from email import policy
    from email.parser import BytesParser

    parser = BytesParser(policy=policy.default)
    records = []
    for path in paths:
        if path.suffix == ".eml":
            records.append(_record(parser.parsebytes(path.read_bytes()), path.name))
        else:
            box = mailbox.mbox(path, create=False)
            for at, key in enumerate(box.iterkeys()):
                records.append(_record(parser.parsebytes(box.get_bytes(key)), f"{path.name}-{at}"))
            box.close()
    return records


def _record(message: Any, fallback: str) -> dict[str, Any]:
    part = message.get_body(("plain", "html"))
    date = message["date"]
    addresses = {key: [one for _, one in getaddresses(message.get_all(key, []))] for key in ("to", "cc", "from")}
    mail_id = str(message["message-id"] or fallback).strip()
    references = str(message["references"] or "").split()
    return {
        "mail_id": mail_id,
        "timestamp": parsedate_to_datetime(str(date)).isoformat() if date else "",
        "from_email": (addresses["from"] or [""])[0],
        "to": addresses["to"],
        "subject": str(message["subject"] or ""),
        "body": part.get_content() if part is not None else "",
        "body_format": "html" if part is not None and part.get_content_subtype() == "html" else "plain",
        "cc": addresses["cc"],
        "bcc": [],
        "attachments": [one.get_filename() for one in message.iter_attachments()],
        "thread_id": references[0] if references else mail_id,
        "in_reply_to": str(message["in-reply-to"] or "") or None,
        "references": references,
    }


def _line(mail: dict[str, Any]) -> str:
    keys = ("mail_id", "timestamp", "from_email", "to", "subject", "thread_id", "attachments")
    brief = {key: mail[key] for key in keys if mail.get(key)}
    body = " ".join(str(mail.get("body", "")).split())
    return json.dumps({**brief, "body": body[:SHOWN]}, ensure_ascii=False)


def list_mails(workspace: Workspace, limit: int = 50, offset: int = 0) -> str:
    """A line a mail, newest first."""
    mails = _mails(workspace)
    if offset and offset >= len(mails):
        raise Refused(f"there are {len(mails)} mails, none at offset {offset}")
    return "\n".join([f"{len(mails)} mails", *(_line(one) for one in mails[offset : offset + limit])])


def read_mail(workspace: Workspace, mail_id: str) -> dict[str, Any]:
    """The whole record."""
    return found(_mails(workspace), "mail_id", mail_id, "mail", "mail_list_mails")


def search_mail(
    workspace: Workspace,
    from_email: str | None = None,
    to_email: str | None = None,
    subject: str | None = None,
    after_date: str | None = None,
    before_date: str | None = None,
    thread_id: str | None = None,
    limit: int = 50,
) -> str:
    """Mails that pass every condition."""
    since = when(after_date, "after_date") if after_date else None
    until = when(before_date, "before_date") if before_date else None
    if not any((from_email, to_email, subject, since, until, thread_id)):
        raise Refused("search_mail needs at least one condition; mail_list_mails lists all")

    def passes(mail: dict[str, Any]) -> bool:
        receivers = " ".join([*mail.get("to", []), *(mail.get("cc") or []), *(mail.get("bcc") or [])]).lower()
        sent = when(str(mail["timestamp"]), "timestamp") if mail.get("timestamp") else None
        return (
            (not from_email or from_email.lower() in str(mail.get("from_email")).lower())
            and (not to_email or to_email.lower() in receivers)
            and (not subject or subject.lower() in str(mail.get("subject")).lower())
            and (not thread_id or mail.get("thread_id") == thread_id)
            and (since is None or (sent is not None and sent >= since))
            and (until is None or (sent is not None and sent < until))
        )

    hits = [one for one in _mails(workspace) if passes(one)]
    return "\n".join([f"{len(hits)} mails match", *(_line(one) for one in hits[:limit])])


def _addresses(value: str | Sequence[str] | None, what: str) -> list[str]:
    words = [value] if isinstance(value, str) else list(value or [])
    found_here = [one for _, one in getaddresses(words) if one]
    bad = [one for one in found_here if not _ADDRESS.fullmatch(one)]
    if bad or (words and not found_here):
        raise Refused(f"{what}: {(bad or words)[0]!r} is no mail address")
    return list(dict.fromkeys(found_here))


def send_mail(
    workspace: Workspace,
    from_email: str,
    to_email: str | Sequence[str],
    subject: str,
    body: str,
    cc: str | Sequence[str] | None = None,
    bcc: str | Sequence[str] | None = None,
    attachments: Sequence[str] | None = None,
    body_format: str = "plain",
    thread_id: str | None = None,
    in_reply_to: str | None = None,
    references: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Store a mail as sent; the answer is the record as it stands in the mailbox."""
    receivers = _addresses(to_email, "to_email")
    if not receivers:
        raise Refused("to_email names nobody")
    for path in attachments or ():
        workspace.file(path)
    own = _own(workspace)
    mail_id = new_id("mail-", len(own), from_email, receivers, subject, body)
    record = {
        "mail_id": mail_id,
        "timestamp": now(),
        "from_email": _addresses(from_email, "from_email")[0],
        "to": receivers,
        "subject": subject,
        "body": body,
        "body_format": body_format,
        "cc": _addresses(cc, "cc"),
        "bcc": _addresses(bcc, "bcc"),
        "attachments": [workspace.shown(workspace.file(path)) for path in attachments or ()],
        "thread_id": thread_id or mail_id,
        "in_reply_to": in_reply_to,
        "references": list(references or ()),
    }
    store(workspace, _home(workspace) / "mails.json", [*own, record])
    return {"sent": found(_own(workspace), "mail_id", mail_id, "mail", "mail_list_mails")}


def _answer(
    workspace: Workspace, original: dict[str, Any], to: Iterable[str], cc: Iterable[str], body: str, **more: Any
) -> dict[str, Any]:
    subject = str(original.get("subject", ""))
    return send_mail(
        workspace,
        from_email=(original.get("to") or [original["from_email"]])[0],
        to_email=list(to),
        cc=list(cc),
        subject=subject if subject.lower().startswith("re:") else f"Re: {subject}",
        body=body,
        thread_id=original.get("thread_id") or original["mail_id"],
        in_reply_to=original["mail_id"],
        references=[*(original.get("references") or []), original["mail_id"]],
        **more,
    )


def reply_mail(
    workspace: Workspace,
    original_mail_id: str,
    body: str,
    attachments: Sequence[str] | None = None,
    body_format: str = "plain",
) -> dict[str, Any]:
    """Answer the sender."""
    original = read_mail(workspace, original_mail_id)
    return _answer(
        workspace, original, [original["from_email"]], (), body, attachments=attachments, body_format=body_format
    )


def reply_all_mail(
    workspace: Workspace,
    original_mail_id: str,
    body: str,
    attachments: Sequence[str] | None = None,
    body_format: str = "plain",
) -> dict[str, Any]:
    """Answer the sender and everybody who got the mail, but oneself."""
    original = read_mail(workspace, original_mail_id)
    others = [*(original.get("to") or [])[1:], *(original.get("cc") or [])]
    others = [one for one in others if one != original["from_email"]]
    return _answer(
        workspace, original, [original["from_email"]], others, body, attachments=attachments, body_format=body_format
    )


def forward_mail(
    workspace: Workspace,
    original_mail_id: str,
    to_email: str | Sequence[str],
    body: str = "",
    cc: str | Sequence[str] | None = None,
    bcc: str | Sequence[str] | None = None,
    attachments: Sequence[str] | None = None,
    body_format: str = "plain",
) -> dict[str, Any]:
    """Send a mail on, with its text below one's own."""
    original = read_mail(workspace, original_mail_id)
    subject = str(original.get("subject", ""))
    head = f"From: {original['from_email']}\nDate: {original.get('timestamp')}\nSubject: {subject}"
    kept = [one for one in original.get("attachments") or () if workspace.path(str(one)).is_file()]
    return send_mail(
        workspace,
        from_email=(original.get("to") or [original["from_email"]])[0],
        to_email=to_email,
        subject=subject if subject.lower().startswith("fwd:") else f"Fwd: {subject}",
        body=f"{body}\n\n---------- Forwarded message ----------\n{head}\n\n{original.get('body', '')}".lstrip(),
        cc=cc,
        bcc=bcc,
        attachments=[*kept, *(attachments or ())],
        body_format=body_format,
        references=[original["mail_id"]],
    )


TOOLS: dict[str, Callable[..., Any]] = {
    "list_mails": list_mails,
    "read_mail": read_mail,
    "search_mail": search_mail,
    "send_mail": send_mail,
    "reply_mail": reply_mail,
    "reply_all_mail": reply_all_mail,
    "forward_mail": forward_mail,
}
