"""Where trials are made: an engine, the work on it, and the Groups they belong to. A ``TrialSource`` in process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from journeyman.engines.errors import EngineError
from journeyman.engines.protocol import Engine, KvMode, KvUsage
from journeyman.harness.protocol import Harness
from journeyman.ladder.training.recording import Recorder
from journeyman.tasks.task import Task
from journeyman.train.loop.protocol import Arrivals, FinishedTrial, GroupOrder, SourceGauges
from journeyman.trials.record import Trial, TrialRequest


class Work(Protocol):
    """Streams trials over one engine: ``InlineWork``, ``ProcessWork``."""

    @property
    def running(self) -> int: ...

    @property
    def is_decoding(self) -> bool: ...

    @property
    def is_idle(self) -> bool: ...

    def add(self, requests: Sequence[TrialRequest]) -> None: ...

    def limit(self, at_once: int) -> None: ...

    def cancel(self, trial_ids: set[str]) -> None: ...

    def step(self) -> list[Trial]: ...

    def wait_s(self) -> float: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Naming:
    """How trials of a run are called: the key of their noise.

    Attributes:
        name: of the run.
        harness: the loop the policy acts in.
        temperature: of sampling.
    """

    name: str
    harness: Harness
    temperature: float = 1.0

    def request(self, order: GroupOrder, task: Task, sample: int) -> TrialRequest:
        """One trial of a Group."""
        stream = (self.name, order.position, task.id, sample)
        return TrialRequest(task, self.harness, stream, sample, self.temperature)


@dataclass(frozen=True)
class PushPlan:
    """How weights are given to the engine.

    Attributes:
        kv: what they do to keys and values of the old ones; None is the engine's own choice.
        limit_s: seconds one push may take.
    """

    kv: KvMode | None = None
    limit_s: float = 300.0


class Site:
    """One engine with its trials; one thread owns it.

    Args:
        engine: decodes.
        work: streams trials over it.
        tasks: of the run, by index.
        naming: of trials.
        rows: trials the engine decodes together.
        recorder: the engine's, where it notes more than tokens.
        shadow: the second verifier's reward of a trial that was graded, once.
        push: how weights are given to the engine.
        alive: raises when the engine is gone for good; asked as often as the engine is about its usage.
        usage_every_s: between two questions to an engine that is another program.
        on_close: further things to end.
    """

    def __init__(
        self,
        engine: Engine,
        work: Work,
        tasks: Sequence[Task],
        naming: Naming,
        *,
        rows: int,
        recorder: Recorder | None = None,
        shadow: Callable[[str], float | None] = lambda trial_id: None,
        push: PushPlan = PushPlan(),
        alive: Callable[[], None] = lambda: None,
        usage_every_s: float = 0.0,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self.engine, self._work, self._tasks, self._naming = engine, work, tasks, naming
        self._rows, self._on_close = rows, on_close
        self._recorder, self._shadow, self._push = recorder, shadow, push
        self._alive, self._usage_every_s = alive, usage_every_s
        self._usage, self._asked_at = KvUsage(0, 0, 0, 0, 0), -math.inf
        self._of_trial: dict[str, tuple[int, int, float]] = {}
        self._began, self._busy_s, self._sampled = time.monotonic(), 0.0, 0
        self._is_closed = False

    def submit(self, orders: Sequence[GroupOrder]) -> None:
        """See ``TrialSource.submit``."""
        now = time.monotonic()
        requests = []
        for order in orders:
            for sample in order.wanted:
                request = self._naming.request(order, self._tasks[order.task], sample)
                self._of_trial[request.trial_id] = (order.position, sample, now)
                requests.append(request)
        self._work.add(requests)

    def poll(self, wait_s: float) -> Arrivals:
        """See ``TrialSource.poll``: samples until something ended or the time is over."""
        until = time.monotonic() + wait_s
        found: list[FinishedTrial] = []
        while True:
            began, was_decoding = time.monotonic(), self._work.is_decoding
            found += [f for trial in self._work.step() if (f := self._finished(trial)) is not None]
            is_probing = self._recorder is not None and not self._work.is_decoding and self._recorder.probe_on()
            now = time.monotonic()
            if was_decoding or self._work.is_decoding:
                self._busy_s += now - began
            probes = self._recorder.take_probes() if self._recorder is not None else ()
            if found or probes or now >= until:
                return Arrivals(found, (), self.gauges(), probes)
            pause_s = 0.0 if is_probing else min(self._work.wait_s(), until - now)
            if pause_s > 0:
                time.sleep(pause_s)

    def gauges(self) -> SourceGauges:
        """How it stands."""
        usage = self._usage_now()
        running = self._work.running
        return SourceGauges(
            trials_running=running,
            turns_waiting=max(0, running - self._rows),
            kv_tokens=usage.tokens,
            kv_capacity=usage.capacity,
            preemptions=usage.preemptions,
            busy_s=self._busy_s,
            lived_s=time.monotonic() - self._began,
            sampled_tokens=self._sampled,
            version=self.engine.version,
            prefilled_tokens=usage.prefilled,
        )

    def cancel(self, position: int) -> None:
        """See ``TrialSource.cancel``."""
        gone = {trial_id for trial_id, (of, _, _) in self._of_trial.items() if of == position}
        for trial_id in gone:
            del self._of_trial[trial_id]
        self._work.cancel(gone)
        if self._recorder is not None:
            self._recorder.forget(list(gone))

    def limit(self, trials: int) -> None:
        """See ``TrialSource.limit``."""
        self._work.limit(trials)

    def update_weights(self, state: Any, version: int) -> None:
        """See ``TrialSource.update_weights``; a path names a directory of safetensors."""
        source = Path(state) if isinstance(state, str) else state
        self.engine.update_weights(source, version, kv=self._push.kv, deadline_s=self._push.limit_s)

    def close(self) -> None:
        """See ``TrialSource.close``."""
        if not self._is_closed:
            self._is_closed = True
            self._work.close()
            self.engine.close()
            self._on_close()

    def _usage_now(self) -> KvUsage:
        now = time.monotonic()
        if now - self._asked_at >= self._usage_every_s:
            self._alive()
            self._usage, self._asked_at = self.engine.usage(), now
        return self._usage

    def _finished(self, trial: Trial) -> FinishedTrial | None:
        known = self._of_trial.pop(trial.request.trial_id, None)
        if known is None:
            return None
        position, sample, began = known
        seconds = time.monotonic() - began
        try:
            told = self._recorder.take(trial) if self._recorder is not None else {}
            found = finished_of(trial, position, sample, seconds, told)
        except EngineError as error:
            found = finished_of(trial, position, sample, seconds)
            facts = {**found.facts, "error": [type(error).__name__, str(error)]}
            found = replace(found, reward=None, passed=None, cause=error.cause, facts=facts)
        shadow = self._shadow(trial.request.trial_id)
        if shadow is not None:
            found = replace(found, facts={**found.facts, "shadow_reward": shadow})
        self._sampled += found.num_sampled
        return found


def finished_of(
    trial: Trial, position: int, sample: int, seconds: float, told: Mapping[str, Any] | None = None
) -> FinishedTrial:
    """A trial as the training loop sees it; ``told`` are the fields that the engine's recorder has."""
    records = [turn.record() for turn in trial.turns]
    calls = [call for record in records for call in _list(record.get("calls"))]
    verdict, columns = trial.verdict, trial.tokens
    facts: dict[str, Any] = {
        "stop_reason": trial.stop_reason,
        "attempt": trial.attempt,
        "turns": len(records),
        "calls": len(calls),
        "errors": sum(isinstance(call, dict) and call.get("status") not in (None, "ok") for call in calls),
        "malformed": sum(len(_list(record.get("malformed"))) for record in records),
        "seconds": seconds,
        "task_id": trial.request.task.id,
        "world_id": trial.request.task.world_id,
        "family": trial.request.task.family,
        "outcome": trial.outcome.outcome_class if trial.outcome is not None else "system_error",
    }
    if trial.segments:
        facts["segments"] = [dict(segment) for segment in trial.segments]
    if verdict is not None:
        facts["explain"] = verdict.explain
        facts["failed"] = [[check.id, check.explain] for check in verdict.checks if check.score < 1]
    if trial.error is not None:
        facts["error"] = list(trial.error)
    return FinishedTrial(
        position=position,
        sample=sample,
        ids=columns.ids,
        mask=columns.mask,
        logprobs=columns.logprob,
        versions=columns.version,
        reward=trial.reward,
        passed=trial.passed,
        cause=trial.outcome.cause if trial.outcome is not None else "unclassified",
        facts=facts,
        **(told or {}),
    )


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
