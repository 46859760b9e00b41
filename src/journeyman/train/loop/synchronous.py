"""The synchronous loop: sample a step's Groups, wait for all of them, update, push, record. For overfit runs and tests.

The step is the unit of redo, and what a step is made of depends on data alone: with a source that is deterministic (one
engine in one process, trials inline) a resumed run equals an uninterrupted one bit for bit on a CPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from journeyman.deadline import Deadline
from journeyman.train.loop.asynchronous import Quarantined
from journeyman.train.loop.books import LOG, Books, LoopResult, Status
from journeyman.train.loop.checkpoints import keep, keep_best, newest
from journeyman.train.loop.ledger import Ledger
from journeyman.train.loop.order import TaskOrder
from journeyman.train.loop.protocol import FinishedTrial, GroupOrder, SourceGauges, TrialSource
from journeyman.train.loop.settling import SettledGroup, settle
from journeyman.train.loop.spec import LoopSpec
from journeyman.train.loop.stepping import StepJob, StepOutcome
from journeyman.train.metrics.live import Clocks, record_of
from journeyman.train.metrics.sinks import Sinks
from journeyman.train.protocol import Trainer

POLL_S = 0.5


class SyncLoop:
    """One run, or the rest of one. Arguments as for ``AsyncLoop``.

    Args:
        on_step: told the record and the Groups of every step, those without variance included.
    """

    def __init__(
        self,
        root: Path,
        spec: LoopSpec,
        source: TrialSource,
        trainer: Trainer,
        sinks: Sinks,
        is_stopping: Callable[[], bool] = lambda: False,
        on_step: Callable[[dict[str, Any], list[SettledGroup]], None] = lambda record, groups: None,
    ) -> None:
        self.root, self.spec = root, spec
        self._source, self._trainer = source, trainer
        self._is_stopping, self._on_step = is_stopping, on_step
        self.books = Books(root, spec, sinks)
        self.ledger, self.version = Ledger(), 0
        self._order = TaskOrder(spec.tasks, spec.seed, spec.name)
        self._gauges = SourceGauges()
        self._checkpoint: Path | None = None

    def run(self) -> LoopResult:
        """Train until the last step, a stop, or nothing left to learn. Raises as ``AsyncLoop.run``."""
        try:
            self._begin()
            status: Status | None = None
            while status is None:
                if self.version >= self.spec.steps:
                    status = "done"
                elif self._is_stopping():
                    status = "interrupted"
                else:
                    status = self._one()
            return self._result(status)
        finally:
            self.books.close()

    def _begin(self) -> None:
        found = newest(self.root)
        if found is not None:
            state = self._trainer.load_state(found)
            self.ledger = Ledger.from_state(state["ledger"])
            self.version = int(state["version"])
            self._order.load(state["order"])
            self.books.load(state["books"])
            self._checkpoint = found
            LOG.info("resumed at step %d", self.version)
        self._trainer.push_weights(self._source, self.version)

    def _one(self) -> Status | None:
        """One step; why the run ends after it, or None."""
        began = time.monotonic()
        ready, groups = self._sample()
        if not ready:
            return "nothing_to_learn"
        sampled_s = time.monotonic() - began
        for group in ready:
            self.ledger.take(group.order.position)
        job = StepJob(self._trainer, [self._source], self.spec, self.root / "quarantine")
        outcome = job.run(ready, self.version)
        if outcome.metrics is None:
            self._quarantined(ready, outcome)
            return None
        for group in ready:
            self.ledger.train(group.order.position)
            self.books.settled(group, "trained")
        self.version += 1
        wall_s = time.monotonic() - began
        clocks = Clocks(wall_s, wall_s - sampled_s, sampled_s)
        record = record_of(
            groups,
            outcome.metrics,
            self.version - 1,
            clocks=clocks,
            gauges=self._gauges,
            counts=self.ledger.counts(),
            gap=outcome.gap,
        )
        alarms = self.books.step(self.version, record, ready)
        self._on_step({"step": self.version, **record}, groups)
        is_stopped = any(self.books.guards.stops(alarm) for alarm in alarms)
        if is_stopped or self.version >= self.spec.steps or self.version % self.spec.checkpoint_every == 0:
            self._save(float(record["reward/mean"]))
        return "stopped" if is_stopped else None

    def _sample(self) -> tuple[list[SettledGroup], list[SettledGroup]]:
        """A step's Groups: those that can be trained, and all. Refills what was filtered."""
        wanted = self.spec.gate.admission.groups_per_step
        ready: list[SettledGroup] = []
        every: list[SettledGroup] = []
        for _ in range(1 + self.spec.refill_rounds):
            fresh = self._finished(self._submit(wanted - len(ready)))
            every += fresh
            for group in fresh:
                if group.reason:
                    self.ledger.filter(group.order.position, group.reason)
                    self.books.settled(group, group.reason)
                else:
                    self.ledger.queue(group.order.position)
                    ready.append(group)
            if len(ready) == wanted:
                break
        return ready, every

    def _submit(self, count: int) -> list[GroupOrder]:
        orders = []
        for _ in range(count):
            position = self.ledger.submitted
            orders.append(GroupOrder(position, self._order.next(), self.spec.trials_per_group, self.version))
            self.ledger.submit(position)
        self._source.submit(orders)
        return orders

    def _finished(self, orders: list[GroupOrder]) -> list[SettledGroup]:
        """Wait for all trials of some Groups. Raises DeadlinePassed when none ends for ``deadlines.stall_s``."""
        wanted = {order.position: order for order in orders}
        trials: dict[int, dict[int, FinishedTrial]] = {order.position: {} for order in orders}
        deadline = self._patience(len(orders))
        while any(len(trials[p]) < order.trials for p, order in wanted.items()):
            arrivals = self._source.poll(POLL_S)
            self._gauges = arrivals.gauges
            for trial in arrivals.trials:
                if trial.position in trials:
                    trials[trial.position][trial.sample] = trial
                    deadline = self._patience(len(orders))
            again = [wanted[p] for p in arrivals.lost if p in wanted]
            if again:  # all of a step's trials begin together, or the batches differ from an uninterrupted run's
                trials = {order.position: {} for order in orders}
                self._source.submit(orders)
            deadline.check()
        return [settle(order, list(trials[order.position].values()), self.spec.rule) for order in orders]

    def _patience(self, groups: int) -> Deadline:
        return Deadline.after(self.spec.deadlines.stall_s, f"waiting for a trial of the {groups} groups of a step")

    def _quarantined(self, ready: list[SettledGroup], outcome: StepOutcome) -> None:
        LOG.warning("step %d is quarantined: %s", self.version + 1, outcome.reason)
        for group in ready:
            self.ledger.drop(group.order.position, "quarantined")
            self.books.settled(group, "quarantined")
        self.books.totals.quarantined_in_a_row += 1
        if self.books.totals.quarantined_in_a_row > self.spec.guards.max_quarantined:
            raise Quarantined(f"{self.books.totals.quarantined_in_a_row} batches in a row: {outcome.reason}")

    def _save(self, reward: float) -> None:
        state = {
            "version": self.version,
            "ledger": self.ledger.state(),
            "order": self._order.state(),
            "books": self.books.state(),
        }
        self._checkpoint = self._trainer.save_state(self.root / "checkpoints", state)
        keep(self.root, self._checkpoint, self.version, self.spec.retention)
        if self.spec.retention.best and reward > self.books.totals.best:
            self.books.totals.best = reward
            keep_best(self.root, self._checkpoint)

    def _result(self, status: Status) -> LoopResult:
        return LoopResult(
            status=status,
            steps=self.version,
            records=self.books.records,
            alarms=self.books.alarms,
            counts=self.ledger.counts(),
            waived=0,
            lost=self.books.lost,
            checkpoint=self._checkpoint,
            evaluations=[],
        )
