"""Many trials alive at once, each with a live sandbox, in bounded memory; and the group rule over what they leave."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trial_places import arguments_of, requests_of, scripts_of

from journeyman.engines.protocol import TurnRequest, TurnResult
from journeyman.engines.scripted import ScriptedEngine
from journeyman.ladder.workshop import Workshop
from journeyman.sandbox import proctree
from journeyman.sandbox.reaper import traces
from journeyman.tasks.errors import VerifierCrashed
from journeyman.tasks.verdict import scored, verifier_error
from journeyman.trials.executors.process import ProcessExecutor
from journeyman.trials.executors.protocol import WorkplaceRecipe
from journeyman.trials.executors.supervised import SupervisedLauncher
from journeyman.trials.groups import drop_report, kept
from journeyman.trials.limits import Limits
from journeyman.trials.outcome import RemoteFault, outcome_of
from journeyman.trials.record import Trial
from journeyman.trials.store import TrialRow
from journeyman.trials.store.columns import empty
from journeyman.trials.store.rows import row_of

GIB = 1 << 30


class Gate(ScriptedEngine):
    """Answers nobody until ``count`` trials have asked for their first turn; then looks at the machine once."""

    def __init__(self, scripts: Any, count: int) -> None:
        super().__init__(scripts)
        self.count, self.asked, self.executor = count, set[str](), None
        self.pss_bytes, self.processes, self.answers = 0, 0, 0
        self.until = time.monotonic() + 600

    executor: ProcessExecutor | None

    def submit(self, request: TurnRequest) -> None:
        self.asked.add(request.trial)
        super().submit(request)

    def step(self, deadline_s: float = 60.0) -> list[TurnResult]:
        if len(self.asked) < self.count:
            assert time.monotonic() < self.until, f"only {len(self.asked)} of {self.count} trials came"
            time.sleep(0.002)
            return []
        if not self.processes:
            self._look()
        return super().step(deadline_s)

    def _look(self) -> None:
        assert self.executor is not None
        launcher = self.executor.launcher
        assert isinstance(launcher, SupervisedLauncher)
        self.answers = sum(len(running) for running in launcher.answers(60.0))
        pids = [pid for supervisor in launcher.pids for pid in (supervisor, *proctree.descendants(supervisor))]
        self.processes = len(pids)
        self.pss_bytes = sum(pss(pid) for pid in pids)


def pss(pid: int) -> int:
    """Proportional set size in bytes: shared pages are divided among those who share them."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def hold(prepared: Workshop, count: int, limit_bytes: int) -> None:
    """``count`` trials alive at once; every sandbox and every supervisor answers; all of them end solved."""
    tasks = prepared.tasks("train")
    requests = requests_of(tasks, -(-count // len(tasks)))[:count]
    engine = Gate(scripts_of(prepared, requests), count)
    place = WorkplaceRecipe("trial_faults:AnsweringPlace", arguments_of(prepared))
    limits = Limits(start_s=600, setup_s=600, agent_s=3600, quiesce_s=600, collect_s=600, stop_s=600)
    started = time.monotonic()
    with (
        prepared.verifier() as verifier,
        ProcessExecutor(
            engine, place, seed=1, concurrency=count, supervisors=2, limits=limits, max_attempts=1
        ) as executor,
    ):
        engine.executor = executor
        trials = executor.run([replace(r, task=replace(r.task, agent_timeout_s=None)) for r in requests], verifier)
    print(
        f"{count} trials: {engine.processes} processes, PSS {engine.pss_bytes / GIB:.2f} GiB "
        f"({engine.pss_bytes / count / 2**20:.1f} MiB each), {time.monotonic() - started:.0f} s"
    )
    assert engine.answers == count
    assert engine.processes >= 3 * count  # a trial, bubblewrap's monitor and the sandbox's supervisor
    assert engine.pss_bytes <= limit_bytes
    assert [trial.reward for trial in trials] == [1.0] * count
    assert not [trace for trace in traces(prepared.label).values() if trace.identity.is_sandbox]


@pytest.mark.thorough
def test_forty_trials_alive_take_a_few_megabytes_each_and_every_supervisor_answers(prepared: Workshop) -> None:
    hold(prepared, 40, 40 * 16 * 2**20)


@pytest.mark.slow
def test_a_thousand_trials_alive_with_a_sandbox_each_fit_into_sixteen_gib(prepared: Workshop) -> None:
    hold(prepared, 1000, 16 * GIB)


def trial_with(prepared: Workshop, cause: str | None) -> Trial:
    """A trial that was solved, or broke in one row of the table."""
    (request,) = requests_of(prepared.tasks("train")[:1])
    trial = Trial(request, [], empty(), "answered" if cause is None else "error", None)
    trial.verdict = scored(1.0, True) if cause in (None, "unclassified") else None
    if cause == "verifier_failed":
        trial.verdict, cause, trial.stop_reason = verifier_error(VerifierCrashed("x")), None, "answered"
    trial.outcome = outcome_of(trial.verdict, trial.stop_reason, RemoteFault("E", "x", cause) if cause else None)
    return trial


def test_a_broken_trial_is_masked_alone_unless_the_whole_group_is_to_go(prepared: Workshop) -> None:
    group = [trial_with(prepared, cause) for cause in (None, "sandbox_failed", "unclassified", "verifier_failed", None)]
    assert kept(group) == [True, False, False, False, True]
    assert kept(group, "group") == [False] * 5
    assert kept(group[:1], "group") == [True]


def row(task: str, sample: int, attempt: int, cause: str, reward: float | None) -> TrialRow:
    record = {"trial_id": f"{task}/{sample}", "attempt": attempt, "task_id": task, "cause": cause, "reward": reward}
    return row_of(record, "hot", "x")


def test_the_drop_rate_is_told_per_task_from_last_attempts_with_causes() -> None:
    rows = [
        row("a", 0, 1, "sandbox_failed", None),
        row("a", 0, 2, "none", 1.0),
        row("a", 1, 1, "none", 0.0),
        row("b", 0, 1, "deadline_passed", None),
        row("b", 0, 2, "trial_lost", None),
        row("b", 1, 1, "unclassified", None),
        row("b", 2, 1, "none", 1.0),
    ]
    report = drop_report(rows)
    assert [(t.task_id, t.trials, t.valid, t.attempts) for t in report.tasks] == [("b", 3, 1, 4), ("a", 2, 2, 3)]
    assert report.tasks[0].causes == {"trial_lost": 1, "unclassified": 1}
    assert (report.rate, report.unclassified, report.alarms) == (pytest.approx(0.4), 0.2, True)
    assert report.lines()[-1] == "b: 2 of 3 dropped (67%); trial_lost 1, unclassified 1"
    assert drop_report([]).rate == 0.0
