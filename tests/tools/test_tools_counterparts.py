"""Answers come into the mailbox at once, acts are put on record, and neither can be made up from inside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from journeyman.tasks.counterparts import JOURNAL, Script
from journeyman.tools.counterparts import AnsweringTools, journal_of
from journeyman.tools.fault_rules import plan_of
from journeyman.tools.faults import FaultyTools
from journeyman.tools.inside.worktools.serve import answer_of
from journeyman.tools.protocol import Observation
from journeyman.tools.surface import specs_of

SCRIPT = Script.of(
    {
        "agent": "desk@a.example",
        "seal": "s3al",
        "people": [
            {"address": "ann@a.example", "name": "Ann Alder", "otherwise": "What about it?",
             "rules": [{"when": [["day"]], "says": "On 4 March.", "marks": ["said:day"]}]},
        ],
    }
)  # fmt: skip


class Served:
    """The tools of mail and calendar as they are served in a sandbox, here in this process, on a directory."""

    def __init__(self, root: Path) -> None:
        self.base = {"root": str(root / "ws"), "apps": str(root / "apps"), "tmp": str(root / "tmp")}
        for path in self.base.values():
            Path(path).mkdir()
        self.schemas = {name: spec.schema for name, spec in specs_of(("mail", "calendar")).items()}
        self.descriptions = dict.fromkeys(self.schemas, "")
        self.is_closed = False

    def call(self, name: str, arguments: Mapping[str, Any], *, deadline_s: float = 60.0) -> Observation:
        answer = answer_of({"tool": name, "arguments": dict(arguments), **self.base})
        return Observation(answer["content"], answer["is_error"])

    def close(self) -> None:
        self.is_closed = True


def mail(body: str, sender: str = "desk@a.example", **more: Any) -> dict[str, Any]:
    return {"from_email": sender, "to_email": ["ann@a.example"], "subject": "Meeting", "body": body, **more}


def journal(tools: Any) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(journal_of(tools)[JOURNAL])
    return value


def test_an_answer_lies_in_the_thread_of_the_mail_it_answers(tmp_path: Path):
    tools = AnsweringTools(Served(tmp_path), SCRIPT)
    sent = json.loads(tools.call("mail_send_mail", mail("Which day?")).text)["sent"]
    found = tools.call("mail_search_mail", {"thread_id": sent["thread_id"], "from_email": "ann@a.example"}).text
    answer = json.loads(found.splitlines()[1])
    assert answer["subject"] == "Re: Meeting"
    assert "On 4 March." in answer["body"]
    full = json.loads(tools.call("mail_read_mail", {"mail_id": answer["mail_id"]}).text)
    assert full["in_reply_to"] == sent["mail_id"]
    again = json.loads(tools.call("mail_reply_mail", {"original_mail_id": answer["mail_id"], "body": "The day?"}).text)
    assert again["sent"]["to"] == ["ann@a.example"]
    assert [one["by"] for one in journal(tools)["entries"]] == ["agent", "ann@a.example"] * 2


def test_acts_are_on_record_in_their_order_and_reads_are_not(tmp_path: Path):
    tools = AnsweringTools(Served(tmp_path), SCRIPT)
    tools.call("mail_list_mails", {})
    tools.call("mail_send_mail", mail("Which day?"))
    event = {
        "summary": "Review",
        "start": {"dateTime": "2025-03-04T09:00:00Z"},
        "end": {"dateTime": "2025-03-04T10:00:00Z"},
    }
    tools.call("calendar_create_event", event)
    tools.call("calendar_create_event", {**event, "end": {"dateTime": "2025-03-03T10:00:00Z"}})
    entries = journal(tools)["entries"]
    assert [one["tool"] for one in entries] == ["mail_send_mail", "mail_send_mail", "calendar_create_event"]
    assert entries[1]["marks"] == ["said:day"]
    assert entries[2]["stored"]["id"].startswith("event-")
    assert journal(tools)["seal"] == "s3al"


def test_nobody_answers_a_mail_in_another_name_and_an_answer_in_ones_own_hand_is_no_answer(tmp_path: Path):
    tools = AnsweringTools(Served(tmp_path), SCRIPT)
    tools.call("mail_send_mail", mail("Which day?", sender="ben@a.example"))
    tools.call("mail_send_mail", {**mail("On 4 March.", sender="ann@a.example"), "to_email": ["desk@a.example"]})
    assert [one["by"] for one in journal(tools)["entries"]] == ["agent", "agent"]
    assert not any(one.get("marks") for one in journal(tools)["entries"])


def test_the_journal_is_found_under_faults_and_closing_closes_the_real_tools(tmp_path: Path):
    served = Served(tmp_path)
    plan = plan_of({"error_rules": [{"error_type": "server_error", "tool": "mail_send_mail", "max_occurrences": 1}]})
    tools = FaultyTools(AnsweringTools(served, SCRIPT), [plan])
    assert tools.call("mail_send_mail", mail("Which day?")).is_error
    assert not journal(tools)["entries"]
    tools.call("mail_send_mail", mail("Which day?"))
    assert len(journal(tools)["entries"]) == 2
    tools.close()
    assert served.is_closed
    assert journal_of(served) == journal_of(None) == {}
