"""A trial that broke is attempted again after a wait that grows, comes from the seed, has an end, and is recorded."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from trial_places import place_of, requests_of, scripts_of

from journeyman.engines.backoff import LONGEST_WAIT_S
from journeyman.engines.errors import EngineError
from journeyman.engines.protocol import TurnRequest
from journeyman.engines.scripted import ScriptedEngine
from journeyman.ladder.workshop import Workshop
from journeyman.trials.executors import EXECUTORS
from journeyman.trials.inline import InlineExecutor
from journeyman.trials.limits import Limits
from journeyman.trials.outcome import RemoteFault, outcome_of
from journeyman.trials.record import Trial, TrialRequest
from journeyman.trials.retrying import next_retry, wait_before
from journeyman.trials.store import Owner, open_run
from journeyman.trials.store.columns import empty


class Failing(ScriptedEngine):
    """Breaks on the first turn of the first ``count`` attempts of every trial; notes when each attempt asked."""

    def __init__(self, scripts: dict[str, list[list[int]]], count: int) -> None:
        super().__init__(scripts)
        self.count, self.asked = count, dict[str, list[float]]()

    def submit(self, request: TurnRequest) -> None:
        if request.trial not in self._length:
            self.asked.setdefault(request.trial, []).append(time.monotonic())
            if len(self.asked[request.trial]) <= self.count:
                raise EngineError("injected")
        super().submit(request)


def ended(request: TrialRequest, attempt: int, cause: str) -> Trial:
    trial = Trial(request, [], empty(), "error", None, attempt)
    trial.outcome = outcome_of(None, "error", RemoteFault("E", "x", cause))
    return trial


def test_waits_double_within_their_jitter_have_a_longest_and_come_from_the_seed(prepared: Workshop) -> None:
    (request,) = requests_of(prepared.tasks("train")[:1])
    waits = [wait_before(request, failed, 7) for failed in range(1, 12)]
    for failed, wait in enumerate(waits):
        whole = min(LONGEST_WAIT_S, 0.5 * 2**failed)
        assert whole / 2 <= wait <= whole
    assert waits == [wait_before(request, failed, 7) for failed in range(1, 12)]
    other = replace(request, stream=("test", "other", 0))
    assert wait_before(request, 1, 7) not in (wait_before(request, 1, 8), wait_before(other, 1, 7))


def test_what_the_table_does_not_retry_and_what_would_start_too_late_is_not_tried_again(prepared: Workshop) -> None:
    (request,) = requests_of(prepared.tasks("train")[:1])
    assert next_retry(ended(request, 1, "harness_failed"), 7, 0.0, 100.0) is None
    found = next_retry(ended(request, 2, "sandbox_failed"), 7, 10.0, 100.0)
    assert found is not None
    assert (found.cause, found.wait_s, found.since_s) == (
        "sandbox_failed",
        wait_before(request, 2, 7),
        10 + found.wait_s,
    )
    assert next_retry(ended(request, 2, "sandbox_failed"), 7, 100.0 - found.wait_s + 0.01, 100.0) is None


@pytest.mark.parametrize("executor", ["inline", "process"])
def test_an_executor_waits_before_it_retries_and_the_attempt_says_so(
    executor: str, prepared: Workshop, tmp_path: Path
) -> None:
    requests = requests_of(prepared.tasks("train")[:2])
    engine = Failing(scripts_of(prepared, requests), 1)
    with (
        prepared.verifier() as verifier,
        Owner(tmp_path / "run") as owner,
        EXECUTORS[executor]()(engine, place_of(prepared), seed=7, owner=owner) as running,
    ):
        trials = running.run(requests, verifier)
    assert [(trial.attempt, trial.reward) for trial in trials] == [(1, None), (2, 1.0)] * 2
    with open_run(tmp_path / "run") as run:
        for request in requests:
            wait_s = wait_before(request, 1, 7)
            first, second = engine.asked[request.trial_id]
            assert second - first >= wait_s
            assert "retry" not in run.record(request.trial_id, attempt=1)
            told = {"cause": "engine_failed", "wait_s": round(wait_s, 3), "since_s": round(wait_s, 3)}
            assert run.record(request.trial_id, attempt=2)["retry"] == told
            assert run.events(request.trial_id, attempt=2)[0]["retry"] == told


def test_no_attempt_begins_after_the_time_for_retries(prepared: Workshop) -> None:
    requests = requests_of(prepared.tasks("train")[:1])
    engine = Failing(scripts_of(prepared, requests), 9)
    limits = Limits(retry_s=wait_before(requests[0], 1, 7) + 0.05)
    with (
        prepared.verifier() as verifier,
        EXECUTORS["inline"]()(engine, place_of(prepared), seed=7, max_attempts=9, limits=limits) as running,
    ):
        trials = running.run(requests, verifier)
    assert [trial.attempt for trial in trials] == [1, 2]
    assert all(trial.outcome is not None and trial.outcome.cause == "engine_failed" for trial in trials)


def test_the_batch_of_the_quickstart_waits_too_and_only_when_something_broke(prepared: Workshop) -> None:
    requests = requests_of(prepared.tasks("train")[:3])
    scripts = scripts_of(prepared, requests)
    broken: list[str] = []

    def tools(task):  # type: ignore[no-untyped-def]
        if task.id == requests[0].task.id and len(broken) < 2:
            broken.append(task.id)
            return None  # the first call of the trial breaks on it
        return prepared.tools_of_task(task)

    waits: list[float] = []
    inline = InlineExecutor(
        ScriptedEngine(scripts), prepared.tokenizer, tools, max_context=640, seed=7, max_attempts=3, pause=waits.append
    )
    with prepared.verifier() as verifier:
        trials = inline.run(requests, verifier)
        assert [(trial.attempt, trial.reward) for trial in trials] == [
            (1, None),
            (2, None),
            (3, 1.0),
            (1, 1.0),
            (1, 1.0),
        ]
        assert waits == [wait_before(requests[0], 1, 7), wait_before(requests[0], 2, 7)]
        assert [trial.retry is None for trial in trials] == [True, False, False, True, True]
        inline.run(requests[1:], verifier)
    assert len(waits) == 2
