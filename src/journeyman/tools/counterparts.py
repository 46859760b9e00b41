"""A ``ToolSet`` around another one in which the people of a task's script answer mails, and acts are put on record.

It stands outside the sandbox: neither the script nor the journal can be read or changed by what runs inside. Answers
are stored in the mailbox by the same tool that the agent uses; they are there when the next call is made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from journeyman.tasks.counterparts import JOURNAL, Script, Talk, answered, entry, journal_bytes
from journeyman.tools.around import AroundTools
from journeyman.tools.protocol import Observation
from journeyman.tools.toolset import ToolSet

MAILS = ("mail_send_mail", "mail_reply_mail", "mail_reply_all_mail", "mail_forward_mail")
ACTS = (
    *MAILS,
    *("chat_post_message", "chat_reply_to_thread", "chat_delete_post"),
    *("calendar_create_event", "calendar_update_event", "calendar_delete_event"),
)
"""Tools whose successful calls are put on record."""


class AnsweringTools(AroundTools):
    """Implements ``ToolSet``.

    Args:
        tools: the real ones, of which the mail server is needed; closed with this set.
        script: who answers.
    """

    def __init__(self, tools: ToolSet, script: Script) -> None:
        super().__init__(tools)
        self.script = script
        self.entries: list[dict[str, Any]] = []
        self._talk = Talk(script)

    def call(self, name: str, arguments: Mapping[str, Any], *, deadline_s: float = 60.0) -> Observation:
        """See ``ToolSet.call``. A mail that was stored is answered before this returns."""
        seen = self.tools.call(name, arguments, deadline_s=deadline_s)
        if name not in ACTS or seen.is_error:
            return seen
        stored = _stored(seen.text)
        self.entries.append(entry("agent", name, arguments=dict(arguments), stored=stored))
        if name in MAILS and str(stored.get("from_email", "")).lower() == self.script.agent:
            self._answer(stored, str(arguments.get("body", "")), deadline_s)
        return seen

    def _answer(self, mail: Mapping[str, Any], text: str, deadline_s: float) -> None:
        receivers = [*(mail.get("to") or ()), *(mail.get("cc") or ())]
        for answer, line in answered(self._talk, receivers, text):
            subject = str(mail.get("subject", ""))
            reply = {
                "from_email": answer.person,
                "to_email": [self.script.agent],
                "subject": subject if subject.lower().startswith("re:") else f"Re: {subject}",
                "body": f"{answer.text}\n\n{self.script.people[answer.person].name}\n",
                "thread_id": str(mail.get("thread_id") or mail.get("mail_id")),
                "in_reply_to": str(mail.get("mail_id")),
            }
            self.tools.call("mail_send_mail", reply, deadline_s=deadline_s)
            self.entries.append(line)

    def journal(self) -> dict[str, bytes]:
        """The journal under its name among the deliverables."""
        return {JOURNAL: journal_bytes(self.script, self.entries)}

    def drop_connection(self, name: str) -> None:
        """End the connection behind a tool, where the real tools have one; for faults."""
        drop = getattr(self.tools, "drop_connection", None)
        if drop is not None:
            drop(name)


def journal_of(tools: Any) -> dict[str, bytes]:
    """The journal that a set of tools keeps, however it is wrapped; empty where nobody answers."""
    while tools is not None:
        if isinstance(tools, AnsweringTools):
            return tools.journal()
        tools = getattr(tools, "tools", None)
    return {}


def _stored(text: str) -> dict[str, Any]:
    """The record that a tool says it has stored; empty where its answer is cut or is no record."""
    start = text.find("{")
    try:
        value = json.loads(text[start:]) if start >= 0 else {}
    except ValueError:
        return {}
    inner = next((value[key] for key in ("sent", "created", "updated") if isinstance(value.get(key), dict)), value)
    return dict(inner)
