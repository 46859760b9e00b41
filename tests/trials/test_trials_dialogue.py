"""People of a task's script answer in its trials, and the journal is delivered with what the agent left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from journeyman.errors import EnvironmentMissing, InputError
from journeyman.harness import SPECS
from journeyman.sandbox import PROVIDERS
from journeyman.tasks.counterparts import FILE, JOURNAL
from journeyman.tasks.task import Task, TaskDraft, load_task, write_task
from journeyman.tools.counterparts import AnsweringTools
from journeyman.tools.protocol import Observation
from journeyman.tools.surface import specs_of
from journeyman.trials.executors.protocol import Desk
from journeyman.trials.offer import Offer
from journeyman.trials.record import TrialRequest
from journeyman.trials.worldgates.building import Order, build

SCRIPT = {
    "agent": "desk@a.example",
    "seal": "s3al",
    "people": [{"address": "ann@a.example", "name": "Ann", "rules": [], "otherwise": "What about it?"}],
}


class Mailbox:
    """A mailbox that keeps what is sent."""

    def __init__(self) -> None:
        self.schemas = {name: spec.schema for name, spec in specs_of(("mail",)).items()}
        self.descriptions = dict.fromkeys(self.schemas, "")
        self.mails: list[Mapping[str, Any]] = []

    def call(self, name: str, arguments: Mapping[str, Any], *, deadline_s: float = 60.0) -> Observation:
        self.mails.append(arguments)
        record = {"mail_id": f"m{len(self.mails)}", **arguments, "to": arguments["to_email"]}
        return Observation(json.dumps({"sent": record}))

    def close(self) -> None:
        self.mails.clear()


def dialogue(directory: Path) -> Task:
    files = {
        "environment/Dockerfile": b"FROM debian:12\n",
        "solution/solve.sh": b"true\n",
        "tests/test.sh": b"echo 1 >/logs/verifier/reward.txt\n",
        f"tests/{FILE}": json.dumps(SCRIPT).encode(),
    }
    return load_task(write_task(TaskDraft("ask ann\n", {}, files), directory))


def test_the_people_of_a_task_answer_in_its_trial_and_the_desk_delivers_the_journal(tmp_path: Path) -> None:
    request = TrialRequest(dialogue(tmp_path / "task"), SPECS["react"], ("test",), 0)
    mailbox = Mailbox()
    tools = Offer().around(mailbox, request, 1)
    assert isinstance(tools, AnsweringTools)
    mail = {"from_email": "desk@a.example", "to_email": ["ann@a.example"], "subject": "Hello", "body": "Ann?"}
    tools.call("mail_send_mail", mail)
    assert [one["from_email"] for one in mailbox.mails] == ["desk@a.example", "ann@a.example"]
    desk = Desk(None, tools=tools)  # type: ignore[arg-type]
    delivered = json.loads(desk.collect(None)[JOURNAL])  # type: ignore[arg-type]
    assert delivered["seal"] == "s3al"
    assert [one["by"] for one in delivered["entries"]] == ["agent", "ann@a.example"]


def test_a_harness_without_mail_is_refused_before_anything_runs(tmp_path: Path) -> None:
    task = dialogue(tmp_path / "task")
    with pytest.raises(InputError, match="people answer mails, and harness code offers no mail_send_mail"):
        Offer().check([task], ("bash",), "harness code")
    Offer().check([task], tuple(Mailbox().schemas), "harness react")


@pytest.mark.thorough
def test_a_dialogue_is_solved_through_the_tools_and_leaves_the_mailbox_as_it_was(tmp_path: Path) -> None:
    try:
        PROVIDERS["bwrap"]()
    except EnvironmentMissing as missing:
        pytest.skip(str(missing))
    order = Order(7, 1, 2, "train", ("TD1", "TD2"))
    built = build(order, tmp_path / "out", waive=frozenset({"memory", "pids", "disk", "cpus"}))
    assert sorted(name.rpartition("-")[2] for name in built.tasks) == ["td1", "td2"]
    for name in built.tasks:
        report = json.loads((built.out / "tasks" / "train" / name / "tests" / "gates.json").read_text())
        assert report["oracle_calls"] >= 15
        assert report["ladder"]["oracle"] == 1.0
