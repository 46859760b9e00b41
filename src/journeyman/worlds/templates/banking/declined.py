"""What became of a tracked change in a filed Word copy, as an agent finds it out: the mail that declines it."""

from __future__ import annotations

import json

from journeyman.worlds.template import Lost, ToolCall
from journeyman.worlds.templates import reading


def is_marked(addressed: str) -> bool:
    """Whether a text, with its addresses, shows a tracked change."""
    return "[change " in addressed


def what_stays(subject: str, start: str, end: str) -> reading.Reading:
    """The words between ``start`` and ``end`` in the mail about a declined change.

    Raises:
        Lost: no mail with such a subject says so.
    """
    found = yield ToolCall("mail_search_mail", {"subject": subject})
    for line in found.splitlines():
        if line.startswith("{"):
            mail = json.loads((yield ToolCall("mail_read_mail", {"mail_id": json.loads(line)["mail_id"]})))
            if words := reading.words_between(" ".join(mail["body"].split()), start, end):
                return words
    raise Lost(f"no mail says what became of the change: {subject}")
