"""What a supervisor holds: the wall clock, whole trees, and that what an agent left is dead before grading."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from trial_faults import fault_of
from trial_places import arguments_of, place_of, requests_of, scripts_of

from journeyman.engines.scripted import ScriptedEngine
from journeyman.ladder.workshop import Workshop
from journeyman.sandbox import proctree
from journeyman.sandbox.protocol import SandboxSpec
from journeyman.sandbox.reaper import traces
from journeyman.trials.executors.process import ProcessExecutor
from journeyman.trials.executors.protocol import Ticket, WorkplaceRecipe
from journeyman.trials.executors.supervised import SupervisedLauncher, SupervisorFailed
from journeyman.trials.limits import Limits
from journeyman.trials.quiesce import quiesce
from journeyman.trials.record import Trial

SHORT = Limits(start_s=5, setup_s=2, agent_s=4, quiesce_s=0.5, collect_s=0.5, stop_s=0.5, slack_s=0.5)


def run_with(prepared: Workshop, kind: str, *, max_attempts: int = 1, limits: Limits | None = None) -> list[Trial]:
    """One trial whose first attempt breaks in one way."""
    requests = requests_of([replace(prepared.tasks("train")[0], agent_timeout_s=None)])
    seed = next(s for s in range(1000) if fault_of(s, requests[0].trial_id, 1, 0.5, [kind]) == kind)
    seed = next(s for s in range(seed, 9000) if _once(s, requests[0].trial_id, kind))
    place = WorkplaceRecipe(
        "trial_faults:FaultyPlace", {**arguments_of(prepared), "fault_seed": seed, "rate": 0.5, "kinds": [kind]}
    )
    engine = ScriptedEngine(scripts_of(prepared, requests))
    with (
        prepared.verifier() as verifier,
        ProcessExecutor(engine, place, seed=1, max_attempts=max_attempts, limits=limits) as executor,
    ):
        return executor.run(requests, verifier)


def _once(seed: int, trial_id: str, kind: str) -> bool:
    return fault_of(seed, trial_id, 1, 0.5, [kind]) == kind and fault_of(seed, trial_id, 2, 0.5, [kind]) is None


@pytest.mark.thorough
def test_the_wall_clock_kills_the_whole_tree_and_is_a_system_error(prepared: Workshop) -> None:
    started = time.monotonic()
    (trial,) = run_with(prepared, "hang", limits=SHORT)
    assert time.monotonic() - started < SHORT.whole(None) + 30
    assert trial.outcome is not None
    assert (trial.outcome.outcome_class, trial.outcome.cause) == ("system_error", "deadline_passed")
    assert trial.reward is None
    assert not traces(prepared.label)


@pytest.mark.parametrize(
    ("kind", "cause"),
    [("start", "sandbox_failed"), ("lost", "sandbox_failed"), ("exit", "trial_lost"), ("crash", "unclassified")],
)
def test_a_broken_attempt_is_kept_and_another_one_in_a_fresh_sandbox_counts(
    prepared: Workshop, kind: str, cause: str
) -> None:
    first, second = run_with(prepared, kind, max_attempts=2)
    assert first.outcome is not None
    assert (first.attempt, first.outcome.cause, first.reward) == (1, cause, None)
    assert (second.attempt, second.reward) == (2, 1.0)
    assert not traces(prepared.label)


def test_processes_that_an_agent_left_are_dead_before_its_work_is_graded(prepared: Workshop) -> None:
    (trial,) = run_with(prepared, "daemon")
    assert trial.reward == 1.0
    assert not traces(prepared.label)


def test_quiesce_kills_daemons_in_other_sessions_and_says_so(prepared: Workshop) -> None:
    spec = SandboxSpec(label=prepared.label, waive=prepared.tier.waive)
    sandbox = prepared.provider.create(spec)
    try:
        assert quiesce(sandbox, 10, provider=prepared.provider) is False
        sandbox.exec("for i in 1 2 3; do setsid sh -c 'while :; do echo 1 2; sleep 0.01; done' & done", deadline_s=5)
        assert quiesce(sandbox, 10, provider=prepared.provider) is True
        assert quiesce(sandbox, 10, provider=prepared.provider) is False
        (info,) = [i for i in prepared.provider.list(prepared.label) if i.id == sandbox.id]
        assert info.num_processes <= 2
    finally:
        sandbox.destroy()


def test_a_supervisor_answers_and_its_death_takes_its_attempts_with_it(prepared: Workshop) -> None:
    launcher = SupervisedLauncher(place_of(prepared))
    try:
        request = requests_of(prepared.tasks("train")[:1])[0]
        for number in (1, 2):
            launcher.start(number, Ticket(request, 1, Limits()))
        assert launcher.answers() == [[1, 2]]
        (pid,) = launcher.pids
        attempts = proctree.children(pid)
        assert len(attempts) == 2
        os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + 10
        ended = []
        while len(ended) < 2 and time.monotonic() < until:
            ended += launcher.exits()
            time.sleep(0.02)
        assert {(e.number, e.why) for e in ended} == {(1, "lost"), (2, "lost")}
        while any(not proctree.is_zombie(p) for p in attempts) and time.monotonic() < until:
            time.sleep(0.02)
        assert all(not Path(f"/proc/{p}").exists() or proctree.is_zombie(p) for p in attempts)
        launcher.start(3, Ticket(request, 1, Limits()))
        assert launcher.answers() == [[3]]
    finally:
        for _, connection in launcher.arrivals():
            connection.close()
        launcher.close()
    prepared.provider.reap(prepared.label)
    assert not traces(prepared.label)


def test_a_workplace_that_cannot_be_made_is_named(prepared: Workshop) -> None:
    with pytest.raises(SupervisorFailed, match="no_such_module"):
        SupervisedLauncher(WorkplaceRecipe("no_such_module:thing"))
