"""Checks of a mail that was written: recipients, the conversation, attachments, nobody outside."""

from __future__ import annotations

import hashlib
from typing import Any

from .bundle import Bundle, MalformedDeliverable
from .comparing import normal
from .outcome import Outcome


def headers(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Who gets it and what it answers.

    Params: ``file`` (eml); ``to``?, ``cc``?: exact sets of addresses; ``in_reply_to``?: message id; ``subject``?: words
    that it contains; ``inside``?: domains that recipients must belong to.
    """
    facts = message(bundle, params["file"])
    findings = []
    for field in ("to", "cc"):
        if field in params:
            wanted, given = {normal(one) for one in params[field]}, set(facts[field])
            findings += [f"{one} is missing in {field}" for one in sorted(wanted - given)]
            findings += [f"{one} does not belong in {field}" for one in sorted(given - wanted)]
    if params.get("in_reply_to") and facts["in_reply_to"] != params["in_reply_to"].strip("<>"):
        findings.append("it answers another message, or none")
    if params.get("subject") and normal(params["subject"]) not in normal(facts["subject"]):
        findings.append("the subject is another one")
    for one in (*facts["to"], *facts["cc"], *facts["bcc"]):
        if params.get("inside") and one.rpartition("@")[2] not in params["inside"]:
            findings.append(f"{one} is outside")
    return Outcome.of(0.0 if findings else 1.0, f"{params['file']}: recipients and conversation", findings)


def attached(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """A file of the truth or of the deliverable is attached, by content.

    Params: ``file``; ``names``: of delivered files or originals that must be attached.
    """
    given = {digest for _, digest in message(bundle, params["file"])["attachments"]}
    missing = []
    for name in params["names"]:
        data = bundle.files.get(name) or bundle.originals.get(name)
        if data is None:
            raise MalformedDeliverable(f"{name} is missing")
        if hashlib.sha256(data).hexdigest() not in given:
            missing.append(f"{name} is not attached as it is")
    return Outcome.of(0.0 if missing else 1.0, f"{len(given)} attachments", missing)


def message(bundle: Bundle, name: str) -> dict[str, Any]:
    """Recipients in lower case, ids, subject, attachments of a delivered message."""
    from email import policy
    from email.parser import BytesParser
    from email.utils import getaddresses

    parsed: Any = BytesParser(policy=policy.default).parsebytes(bundle.data(name))
    found: dict[str, Any] = {
        field: [
            address.lower() for _, address in getaddresses([str(one) for one in parsed.get_all(field, [])]) if address
        ]
        for field in ("to", "cc", "bcc")
    }
    if not found["to"]:
        raise MalformedDeliverable(f"{name} has no recipient")
    found["in_reply_to"] = str(parsed.get("In-Reply-To", "")).strip().strip("<>")
    found["subject"] = str(parsed.get("Subject", ""))
    found["attachments"] = [
        (part.get_filename() or "", hashlib.sha256(part.get_payload(decode=True) or b"").hexdigest())
        for part in parsed.iter_attachments()
    ]
    return found
