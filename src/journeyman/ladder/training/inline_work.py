"""Trials in this process, streaming: they begin, answer and end one by one while others run, decoded together.

For trusted tasks whose tools are pure and quick. A tool may be declared slow: then its result comes late, and the
engine decodes the others meanwhile, as it would for a tool that runs elsewhere.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from journeyman.deadline import Deadline
from journeyman.engines.protocol import Engine, Sampling, TurnRequest, TurnResult
from journeyman.harness.protocol import Loop
from journeyman.seeds import key64
from journeyman.tasks.grading import Grader
from journeyman.tokens.segments import as_json
from journeyman.trials.answer import DELIVERABLE, answer_file
from journeyman.trials.executors.closing import Closer, Closing
from journeyman.trials.executors.protocol import Ticket, Workplace
from journeyman.trials.executors.turns import Failed, Turns
from journeyman.trials.limits import Limits
from journeyman.trials.outcome import SupervisorDeadline, classify, outcome_of
from journeyman.trials.record import Trial, TrialRequest

Delay = Callable[[TrialRequest, int], float]
"""Seconds that the tools of a trial's k-th turn take."""

CHECK_EVERY_S = 0.5
"""Between two looks at the trials' wall clocks."""


@dataclass
class _Running:
    request: TrialRequest
    attempt: int
    loop: Loop
    deadline: Deadline
    calls: int = 0
    cancelled: bool = False


@dataclass
class InlineWork:
    """Streams trials over one engine; one thread owns it.

    Args:
        engine: decodes all running trials together.
        workplace: makes loops.
        grader: gives verdicts, in a thread beside the decoding.
        seed: root of the sampling noise.
        limits: of every trial. attempts: per trial when the error table says retry.
        at_once: trials that run at once.
        delay: of slow tools; None: tools take what they take.
    """

    engine: Engine
    workplace: Workplace
    grader: Grader
    seed: int
    limits: Limits = field(default_factory=Limits)
    attempts: int = 2
    at_once: int = 256
    delay: Delay | None = None

    def __post_init__(self) -> None:
        self._turns = Turns(self.engine, self.limits.model_s)
        self._closer = Closer(self.grader, None, None)
        self._waiting: deque[tuple[TrialRequest, int]] = deque()
        self._running: dict[str, _Running] = {}
        self._late: list[tuple[float, int, str, list[int]]] = []
        self._numbers = itertools.count()
        self._checked_at = 0.0

    @property
    def running(self) -> int:
        """Trials begun and not ended."""
        return len(self._running)

    @property
    def is_decoding(self) -> bool:
        """Some turn is under way."""
        return self._turns.any

    @property
    def is_idle(self) -> bool:
        """Nothing waits, runs or is being graded."""
        return not self._waiting and not self._running and self._closer.is_idle

    def add(self, requests: Sequence[TrialRequest]) -> None:
        """Take trials."""
        self._waiting.extend((request, 1) for request in requests)

    def limit(self, at_once: int) -> None:
        """Run at most that many at once from now on."""
        self.at_once = at_once

    def cancel(self, trial_ids: set[str]) -> None:
        """End trials now; they are not reported."""
        self._waiting = deque(item for item in self._waiting if item[0].trial_id not in trial_ids)
        for trial_id in trial_ids & self._running.keys():
            self._turns.release(trial_id)
            del self._running[trial_id]

    def step(self) -> list[Trial]:
        """One token for everything that runs; trials that have their outcome, retries excluded."""
        while self._waiting and len(self._running) < self.at_once:
            self._begin(*self._waiting.popleft())
        self._hand_in_late()
        if self._turns.any:
            for ended in self._turns.step():
                self._answered(ended)
        self._check_deadlines()
        return [trial for trial in self._closer.take() if not self._again(trial)]

    def wait_s(self) -> float:
        """How long nothing will happen: 0 while something decodes."""
        if self._turns.any or (self._waiting and len(self._running) < self.at_once):
            return 0.0
        until_late = self._late[0][0] - time.monotonic() if self._late else 0.02
        return max(0.0, min(0.002 if not self._closer.is_idle else 0.02, until_late))

    def close(self) -> None:
        """Wait for the portion being graded."""
        for trial_id in tuple(self._running):
            self._turns.release(trial_id)
        self._closer.close()

    def _begin(self, request: TrialRequest, attempt: int) -> None:
        ticket = Ticket(request, attempt, self.limits)
        deadline = Deadline.after(ticket.whole_s, f"attempt {attempt} of {request.trial_id}")
        try:
            loop = self.workplace.open(ticket).loop
            ids = loop.open(request.task.instruction, request.task.inputs)
        except Exception as error:  # the boundary of one trial
            self._closer.add(Closing(_broken(request, attempt, error), error, None, {}))
            return
        running = _Running(request, attempt, loop, deadline)
        self._running[request.trial_id] = running
        self._ask(running, ids)

    def _ask(self, running: _Running, ids: list[int]) -> None:
        request, sampling = running.request, running.loop.sampling
        key = key64(self.seed, *request.stream, running.attempt, running.calls)
        running.calls += 1
        turn = TurnRequest(
            request.trial_id, ids, key, Sampling(sampling.max_new_tokens, request.temperature, sampling.stop_ids)
        )
        failed = self._turns.submit(turn)
        if failed is not None:
            self._answered(failed)

    def _answered(self, ended: TurnResult | Failed) -> None:
        running = self._running.get(ended.trial)
        if running is None:
            return
        if isinstance(ended, Failed):
            self._end(running, ended.error)
            return
        epoch = running.loop.epoch
        try:
            ids = running.loop.respond(ended)
        except Exception as error:
            self._end(running, error)
            return
        if ids is None:
            self._end(running, None)
            return
        if running.loop.epoch != epoch:
            self._turns.release(ended.trial)  # its context was edited: the ids are all of it
        delay_s = self.delay(running.request, running.calls) if self.delay is not None else 0.0
        if delay_s > 0:
            heapq.heappush(self._late, (time.monotonic() + delay_s, next(self._numbers), ended.trial, ids))
        else:
            self._ask(running, ids)

    def _hand_in_late(self) -> None:
        while self._late and self._late[0][0] <= time.monotonic():
            _, _, trial_id, ids = heapq.heappop(self._late)
            if trial_id in self._running:
                self._ask(self._running[trial_id], ids)

    def _check_deadlines(self) -> None:
        now = time.monotonic()
        if now - self._checked_at < CHECK_EVERY_S:
            return
        self._checked_at = now
        for running in tuple(self._running.values()):
            if running.deadline.has_passed:
                self._end(running, SupervisorDeadline(running.deadline.what, running.deadline.limit_s))

    def _end(self, running: _Running, error: Exception | None) -> None:
        loop, request = running.loop, running.request
        del self._running[request.trial_id]
        self._turns.release(request.trial_id)
        artifacts = None if loop.answer is None else {DELIVERABLE: answer_file(loop.answer)}
        trial = Trial(
            request,
            list(loop.turns),  # type: ignore[arg-type]
            loop.context.arrays(),
            "error" if error is not None else loop.stop_reason or "error",
            artifacts if error is None else None,
            running.attempt,
            (type(error).__name__, str(error)) if error is not None else None,
            segments=as_json(loop.context.segments),
        )
        self._closer.add(Closing(trial, error, None, {}))

    def _again(self, trial: Trial) -> bool:
        """Whether a trial is attempted once more."""
        if trial.outcome is None or not trial.outcome.retry or trial.attempt >= self.attempts:
            return False
        self._waiting.append((trial.request, trial.attempt + 1))
        return True


def _broken(request: TrialRequest, attempt: int, error: Exception) -> Trial:
    from journeyman.tokens.context import Context

    named = (type(error).__name__, str(error))
    trial = Trial(request, [], Context().arrays(), "error", None, attempt, named)
    trial.outcome = outcome_of(None, "error", error) if not classify(error).grade else None
    return trial
