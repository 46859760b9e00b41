"""The trivial scripted task of ``benchmarks/trials.py``: K shell commands in a sandbox, then a written answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from journeyman.engines.protocol import TurnResult
from journeyman.harness.protocol import LoopSampling, StopReason, TurnRecord
from journeyman.sandbox.protocol import Sandbox
from journeyman.tasks.task import Task, TaskDraft, load_task, write_task
from journeyman.tokens.context import Context
from journeyman.trials.executors.protocol import Desk, Ticket
from journeyman.trials.executors.workplaces import LOGS, TaskPlace

CHECK = """
import json


def grade(artifacts, truth):
    good = json.loads(artifacts["answer.json"])["answer"] == truth["answer"]
    return {"reward": float(good), "passed": good, "checks": []}
"""
TEST_SH = """#!/bin/sh
grep -q '"answer": "412"' "${LOGS_DIR:-/logs}/artifacts/answer.json" && r=1 || r=0
echo "{\\"reward\\": $r}" > "${LOGS_DIR:-/logs}/verifier/reward.json"
"""
COMMAND = "read line < /ws/sales.csv; echo $line"
WRITE = f'mkdir -p {LOGS}/artifacts && echo \'{{"answer": "412"}}\' > {LOGS}/artifacts/answer.json'
STOP = 2


def write_trivial(directory: Path, *, batch: bool) -> Task:
    """The task; ``batch`` adds a check that our verifier runs without a sandbox of its own per trial."""
    own = {
        "family": "look",
        "world_id": "bench-0001",
        "split": "train",
        "world_digest": "0" * 64,
        "deliverables": ["answer.json"],
    }
    files = {
        "environment/Dockerfile": b"FROM debian:12\n",
        "environment/world/sales.csv": b"client,Q1,412\n",
        "solution/solve.sh": b"true\n",
        "tests/test.sh": TEST_SH.encode(),
        "tests/truth.json": json.dumps({"answer": "412"}).encode(),
    }
    if batch:
        files["tests/check.py"] = CHECK.encode()
    config: Mapping[str, Any] = {"metadata": {"journeyman": own}, "verifier": {"timeout_sec": 60.0}}
    return load_task(write_task(TaskDraft("report Acme Q1 from sales.csv\n", config, files), directory))


class ShellLoop:
    """Every sampled turn is one command in the sandbox, the last one writes the answer. Each asks the engine."""

    def __init__(self, sandbox: Sandbox, calls: int) -> None:
        self.context, self.epoch, self.answer = Context(), 0, None
        self.stop_reason: StopReason | None = None
        self.turns: list[TurnRecord] = []
        self.sampling = LoopSampling(8, frozenset({STOP}))
        self._sandbox, self._left = sandbox, calls

    answer: str | None

    def open(self, instruction: str, files: Sequence[str]) -> list[int]:
        ids = [1, 3, 4, 5]
        self.context.append_prompt(ids)
        return ids

    def respond(self, result: TurnResult) -> list[int] | None:
        self.context.append_sampled(result.ids, result.logprobs, result.version)
        if self._left == 0:
            self._sandbox.exec(WRITE, deadline_s=60)
            self.stop_reason = "answered"
            return None
        self._left -= 1
        self._sandbox.exec(COMMAND, deadline_s=60)
        self.context.append_observation([6, 7])
        return [6, 7]


class ShellPlace(TaskPlace):
    """``TaskPlace`` with that loop."""

    def __init__(self, *, calls: int, **arguments: Any) -> None:
        self._calls = calls
        super().__init__(**arguments)

    def open(self, ticket: Ticket) -> Desk:
        sandbox = self.provider.create(self._spec(ticket.request.task), deadline_s=ticket.limits.start_s)
        return Desk(ShellLoop(sandbox, self._calls), sandbox, provider=self.provider, logs=LOGS)
