"""What attempts share reaches a supervisor once, and a forked process has the whole ticket again."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from journeyman.harness import HARNESSES
from journeyman.sandbox import PROVIDERS
from journeyman.tasks.task import TaskDraft, load_task, write_task
from journeyman.trials.executors import kept
from journeyman.trials.executors.protocol import Ended, Ticket
from journeyman.trials.executors.rehearsal import TIMES
from journeyman.trials.executors.workplaces import TaskPlace
from journeyman.trials.lifecycle import Life
from journeyman.trials.limits import Limits
from journeyman.trials.record import TrialRequest


def ticket_of(task: object, sample: int = 0) -> Ticket:
    return Ticket(TrialRequest(task, HARNESSES["react"], ("t", sample), sample), 1, Limits())  # type: ignore[arg-type]


def test_a_task_is_sent_once_and_its_ticket_is_whole_again(tmp_path: Path) -> None:
    files = {"environment/Dockerfile": b"FROM debian:12\n", "tests/test.sh": b"true\n", "solution/solve.sh": b"true\n"}
    task = load_task(write_task(TaskDraft("Say 412.\n", {"verifier": {"timeout_sec": 60.0}}, files), tmp_path / "task"))
    sent = kept.Sent()
    first, second = ticket_of(task), ticket_of(task, 1)
    part = sent.part(first)
    assert part.descriptor is not None
    shared = kept.taken(part.descriptor)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(part.descriptor)
    again = sent.part(second)
    assert (again.key, again.descriptor, again.forget) == (part.key, None, ())
    assert kept.whole(kept.bare(second), shared).request.task.instruction == task.instruction
    assert kept.whole(kept.bare(first), shared) == first


def test_what_was_used_longest_ago_is_forgotten_and_sent_anew(tmp_path: Path) -> None:
    sent = kept.Sent()
    tickets = [ticket_of((number,), number) for number in range(kept.LARGEST)]
    forgotten: list[int] = []
    for ticket in tickets:
        part = sent.part(ticket)
        os.close(part.descriptor or -1)
        forgotten += part.forget
    assert forgotten == []
    assert sent.part(tickets[0]).descriptor is None  # used again, so the one after it goes first
    new = sent.part(ticket_of((-1,)))
    os.close(new.descriptor or -1)
    assert new.forget == (2,)
    anew = sent.part(tickets[1])
    os.close(anew.descriptor or -1)
    assert anew.key == kept.LARGEST + 2
    assert anew.forget == (3,)


@pytest.mark.parametrize("policy", ["model", "oracle"])
def test_a_rehearsal_is_a_whole_attempt_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, policy: str
) -> None:
    provider = PROVIDERS["bwrap"]()
    waive = frozenset({"memory", "pids", "disk", "cpus"}) - provider.supports
    ended: list[Ended] = []
    run = Life.run

    def lived(life: Life) -> Ended:
        ended.append(run(life))
        return ended[-1]

    monkeypatch.setattr(Life, "run", lived)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    place = TaskPlace(label="rehearsed", policy=policy, waive=sorted(waive))
    place.rehearse()
    assert [(one.error, one.stop_reason) for one in ended] == [(None, "answered")] * TIMES
    assert provider.list("rehearsed") == []
    assert list(tmp_path.iterdir()) == []


def test_what_is_prepared_for_a_task_is_what_an_attempt_would_make(tmp_path: Path) -> None:
    files = {"environment/Dockerfile": b"", "environment/world/a.csv": b"a\n", "tests/test.sh": b"true\n"}
    tasks = [load_task(write_task(TaskDraft(f"{n}\n", {}, files), tmp_path / str(n))) for n in range(kept.LARGEST + 2)]
    place, fresh = TaskPlace(label="kept"), TaskPlace(label="kept")
    for task in tasks:
        place.prepare(task)
        assert place._spec(task) is place._spec(task)
        assert place._spec(task) == fresh._spec(task)
    assert len(place._prepared) == kept.LARGEST
    assert place._spec(tasks[0]) is not place._spec(tasks[0])
