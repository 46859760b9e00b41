"""Workplaces with one planted defect each, and what tests of dry runs share."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from journeyman.harness.protocol import Loop
from journeyman.ladder.dryrun.audit import audit_run
from journeyman.ladder.dryrun.plan import keep_plan, make_plan
from journeyman.ladder.dryrun.run import run_plan
from journeyman.sandbox.errors import SandboxStartFailed
from journeyman.sandbox.protocol import Sandbox, SandboxSpec
from journeyman.tasks.task import Task, load_task
from journeyman.tools import ToolSet
from journeyman.tools.protocol import Observation
from journeyman.trials.dryrun.place import DryPlace
from journeyman.trials.executors.protocol import Desk, Ticket
from journeyman.trials.record import TrialRequest

WAIVE = frozenset({"memory", "pids", "disk", "cpus"})
PURE = "framing:toolbelt"


class Garbage:
    """A tool set of which one tool answers with what its author forgot to return."""

    def __init__(self, tools: ToolSet, broken: str) -> None:
        self._tools, self._broken = tools, broken
        self.schemas, self.descriptions = tools.schemas, tools.descriptions

    def call(self, name: str, arguments: Mapping[str, Any], *, deadline_s: float = 60.0) -> Observation:
        if name == self._broken:
            return Observation("None")
        return self._tools.call(name, arguments, deadline_s=deadline_s)

    def close(self) -> None:
        self._tools.close()


class GarbagePlace(DryPlace):
    """``calc`` answers None."""

    def toolset(self, request: TrialRequest, sandbox: Sandbox) -> ToolSet | None:
        tools = super().toolset(request, sandbox)
        return Garbage(tools, "calc") if tools is not None else None


class LostPrograms(DryPlace):
    """A version of the harness whose sandboxes do not find the agent's programs."""

    def _spec(self, task: Task) -> SandboxSpec:
        spec = super()._spec(task)
        return replace(spec, env={**spec.env, "PATH": "/usr/bin:/bin"})


class NoSandbox(DryPlace):
    """The sandbox of every trial whose task's name ends with an odd number does not start."""

    def open(self, ticket: Ticket) -> Desk:
        if int(ticket.request.task.id.split("-")[2]) % 2:
            raise SandboxStartFailed(self.label, "no room")
        return super().open(ticket)


class BrokenLoop(DryPlace):
    """The loop has a bug of its own."""

    def _loop(self, ticket: Ticket, sandbox: Sandbox, tools: ToolSet | None) -> Loop:
        raise ZeroDivisionError("division by zero")


def audit_of(
    tasks: Sequence[Task], out: Path, *, place: str = "", gate: float = 0.01, abort_at: float = 0.2, **given: Any
) -> dict[str, Any]:
    """Plan, run and judge a dry run; ``place`` names a class of this module."""
    if place:
        given["place"] = f"dryrun_places:{place}"
    plan = keep_plan(make_plan(tasks, **{"policy": "oracle", "harness": PURE, **given}), out)
    run_plan(plan, out, concurrency=4, abort_at=abort_at, waive=WAIVE, say=lambda text: None)
    return audit_run(out, gate=gate, abort_at=abort_at)


def copied(task: Task, directory: Path) -> Path:
    """A copy of a task directory that a test may damage."""
    return Path(shutil.copytree(task.path, directory / task.id))


def damaged(task: Task, directory: Path, file: str, old: str, new: str) -> Task:
    """The task with one word of one file changed; the word must be there."""
    place = copied(task, directory)
    text = (place / file).read_text()
    assert old in text
    (place / file).write_text(text.replace(old, new, 1))
    return load_task(place)
