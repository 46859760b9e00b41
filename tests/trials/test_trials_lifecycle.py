"""A trial from sandbox to row: phases, budgets, deadlines, what is collected, and runs that are stopped and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from trial_places import place_of, requests_of, scripts_of

from journeyman.engines.errors import EngineError
from journeyman.engines.protocol import TurnRequest, TurnResult
from journeyman.engines.scripted import ScriptedEngine
from journeyman.errors import InputError
from journeyman.ladder.workshop import Workshop
from journeyman.sandbox.protocol import SandboxSpec
from journeyman.sandbox.reaper import traces
from journeyman.trials.collect import collect_files
from journeyman.trials.detached import FILE, attach, cancel, detach, info_of, list_runs
from journeyman.trials.executors.process import ProcessExecutor
from journeyman.trials.executors.protocol import Desk, Ticket
from journeyman.trials.executors.unsampled import Scripted
from journeyman.trials.lifecycle import Life, Model
from journeyman.trials.limits import Limits
from journeyman.trials.outcome import error_table
from journeyman.trials.record import Trial
from journeyman.trials.resume import final_rows
from journeyman.trials.store import Owner, open_run


def run_on(
    engine: ScriptedEngine, prepared: Workshop, *, limits: Limits, attempts: int = 1, **changes: object
) -> Trial:
    """One trial that is expected to have one attempt."""
    (request,) = requests_of([replace(prepared.tasks("train")[0], **changes)])  # type: ignore[arg-type]
    with (
        prepared.verifier() as verifier,
        ProcessExecutor(engine, place_of(prepared), seed=1, max_attempts=attempts, limits=limits) as executor,
    ):
        (trial,) = executor.run([request], verifier)
    return trial


class Silent(ScriptedEngine):
    """An engine that samples nothing."""

    def step(self, deadline_s: float = 60.0) -> list[TurnResult]:
        time.sleep(0.005)
        return []


class Refusing(ScriptedEngine):
    """An engine that breaks in the middle of a step."""

    def step(self, deadline_s: float = 60.0) -> list[TurnResult]:
        raise EngineError("the device is gone")


def test_working_time_that_runs_out_is_graded_once_and_trained_and_no_turn_is_under_way(
    prepared: Workshop,
) -> None:
    requests = requests_of(prepared.tasks("train")[:1])
    engine = Silent(scripts_of(prepared, requests))
    trial = run_on(engine, prepared, limits=Limits(), attempts=2, agent_timeout_s=0.5)
    assert trial.outcome is not None
    assert (trial.stop_reason, trial.outcome.cause) == ("limit.time", "agent_exhausted_budget")
    assert (trial.outcome.outcome_class, trial.reward) == ("malformed_deliverable", 0.0)
    assert trial.outcome.reward_valid
    assert engine.cancel(trial.request.trial_id) is None


class Preparing(Scripted):
    """A loop that is still to begin when its set-up is done."""

    def open(self, instruction: str, files: Sequence[str]) -> list[int]:
        self._act()
        return [1]


@pytest.mark.parametrize(("kind", "error"), [(Scripted, None), (Preparing, "SetupDeadline")])
def test_a_solution_that_works_longer_than_a_set_up_may_take_is_no_set_up(
    prepared: Workshop, kind: type[Scripted], error: str | None
) -> None:
    (request,) = requests_of(prepared.tasks("train")[:1])
    desk = Desk(kind(lambda: time.sleep(0.1)))
    place = SimpleNamespace(label="", provider=None, open=lambda ticket: desk)
    ended = Life(place, Ticket(request, 1, Limits(setup_s=0.05)), cast("Model", None)).run()
    assert (ended.error[0] if ended.error else None) == error
    assert ended.stop_reason == ("answered" if error is None else "error")


@pytest.mark.parametrize(("kind", "limit_s"), [(Silent, 0.5), (Refusing, 600.0)])
def test_an_engine_that_is_late_or_breaks_is_a_system_error_and_never_graded(
    prepared: Workshop, kind: type[ScriptedEngine], limit_s: float
) -> None:
    engine = kind(scripts_of(prepared, requests_of(prepared.tasks("train")[:1])))
    trial = run_on(engine, prepared, limits=Limits(model_s=limit_s))
    assert trial.outcome is not None
    assert (trial.outcome.outcome_class, trial.outcome.cause) == ("system_error", "engine_failed")
    assert (trial.verdict, trial.reward) == (None, None)


def test_one_refused_turn_ends_its_own_trial_alone(prepared: Workshop) -> None:
    requests = requests_of(prepared.tasks("train")[:4])
    scripts = scripts_of(prepared, requests)

    class RefusesOne(ScriptedEngine):
        def submit(self, request: TurnRequest) -> None:
            if request.trial == requests[0].trial_id:
                raise EngineError("refused")
            super().submit(request)

    with (
        prepared.verifier() as verifier,
        ProcessExecutor(RefusesOne(scripts), place_of(prepared), seed=1, max_attempts=2) as executor,
    ):
        trials = executor.run(requests, verifier)
    assert [trial.reward for trial in trials] == [None, None, 1.0, 1.0, 1.0]


def test_a_limit_that_is_not_positive_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"limits\.model_s"):
        Limits(model_s=0)
    assert Limits().whole(100.0) > 100.0 + Limits().start_s + Limits().collect_s


def test_deliverables_are_regular_files_with_safe_names_and_links_lead_nowhere(prepared: Workshop) -> None:
    sandbox = prepared.provider.create(SandboxSpec(label=prepared.label, waive=prepared.tier.waive))
    try:
        assert collect_files(sandbox, "/tmp/logs", 30, 30) == {}
        made = sandbox.exec(
            "mkdir -p /tmp/logs/artifacts/sub && cd /tmp/logs/artifacts && printf '{}' > answer.json"
            " && printf x > sub/b.bin && ln -s /etc/passwd passwd && ln answer.json twin.json && mkfifo pipe"
            " && ln -s / root && printf y > 'a b'",
            deadline_s=10,
        )
        assert made.return_code == 0, made.stderr
        found = {"a b": b"y", "answer.json": b"{}", "sub/b.bin": b"x", "twin.json": b"{}"}
        assert collect_files(sandbox, "/tmp/logs", 30, 30) == found
        sandbox.exec("mv /tmp/logs/artifacts /tmp/logs/kept && ln -s /etc /tmp/logs/artifacts", deadline_s=10)
        assert collect_files(sandbox, "/tmp/logs", 30, 30) == {}
    finally:
        sandbox.destroy()


def words_of(prepared: Workshop, tasks: Path, out: Path, *more: str) -> list[str]:
    waive = [word for limit in sorted(prepared.tier.waive) for word in ("--waive", limit)]
    return ["trials", "run", str(tasks), "--out", str(out), *waive, *more]


@pytest.mark.thorough
def test_a_detached_run_is_listed_killed_resumed_and_ends_with_one_row_per_trial(
    prepared: Workshop, tmp_path: Path
) -> None:
    tasks, out = prepared.run.path("tasks", "dev"), tmp_path / "run"
    words = words_of(prepared, tasks, out, "--policy", "oracle", "--samples", "3", "--concurrency", "2")
    pid = detach(words, out)
    wanted = 3 * len(prepared.tasks("dev"))
    while sum(info_of(out).outcomes.values()) < 2:
        assert info_of(out).state == "running"
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    (info,) = list_runs(tmp_path)
    assert (info.state, info.is_live, info.trials) == ("lost", False, wanted)
    detach(words, out)
    ended = attach(out, lambda change: None, poll_s=0.1)
    assert (ended.state, ended.outcomes) == ("ended", {"solved": wanted})
    with open_run(out) as run:
        rows = run.trials(include_open=True)
    assert all(row.is_done for row in rows)
    assert len(final_rows(rows)) == wanted
    assert sum(row.reward is not None for row in rows) == wanted
    assert not traces(json.loads((out / FILE).read_text())["label"])


def test_a_cancelled_run_says_so_leaves_nothing_and_can_go_on(prepared: Workshop, tmp_path: Path) -> None:
    tasks, out = prepared.run.path("tasks", "dev"), tmp_path / "run"
    words = words_of(prepared, tasks, out, "--policy", "oracle", "--samples", "20", "--concurrency", "3")
    pid = detach(words, out)
    while sum(info_of(out).outcomes.values()) < 1:
        time.sleep(0.05)
    info = cancel(out)
    os.waitpid(pid, 0)
    assert info.state == "cancelled"
    assert sum(info.outcomes.values()) < info.trials
    assert not traces(json.loads((out / FILE).read_text())["label"])
    with Owner(out):
        pass
    assert cancel(out).state == "cancelled"


def test_the_table_on_the_page_is_the_one_in_the_code() -> None:
    page = Path(__file__).parents[2] / "docs" / "trials.md"
    assert error_table() in page.read_text(encoding="utf-8")


def test_a_run_that_cannot_start_says_why(prepared: Workshop, tmp_path: Path) -> None:
    words = words_of(prepared, prepared.run.path("tasks", "dev"), tmp_path / "run", "--policy", "no-such-model")
    with pytest.raises(InputError, match="no-such-model: is no directory"):
        detach(words, tmp_path / "run")
    done = subprocess.run(
        [sys.executable, "-m", "journeyman.cli.main", *words, "--harness", "toolbolt"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "did you mean toolbelt?" in done.stderr
    with pytest.raises(InputError, match=FILE):
        info_of(tmp_path)
