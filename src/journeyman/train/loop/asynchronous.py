"""The asynchronous loop: one thread owns all state, the source samples elsewhere, the trainer works beside it.

Each round takes in what ended, applies the bound, submits what there is room for and starts a step when a batch is
there; nothing in it waits longer than ``TICK_S`` but a poll of the source. What was submitted, finished, filtered or
dropped is in the journal before it counts; a step counts once its checkpoint is written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.errors import DeadlinePassed, SystemFault
from journeyman.train.loop.books import LOG, Books, LoopResult, Status
from journeyman.train.loop.checkpoints import hold_candidate, keep, keep_best, newest, settle_candidate
from journeyman.train.loop.concurrency import Concurrency, EnginePoll
from journeyman.train.loop.gate import Gate
from journeyman.train.loop.journal import Journal
from journeyman.train.loop.order import TaskOrder
from journeyman.train.loop.protocol import Arrivals, Evaluator, FinishedTrial, GroupOrder, SourceGauges, TrialSource
from journeyman.train.loop.recovery import order_facts, orders_in_flight, recover
from journeyman.train.loop.settling import SettledGroup, settle
from journeyman.train.loop.spec import LoopSpec
from journeyman.train.loop.stepping import OneJob, Probes, StepJob, StepOutcome
from journeyman.train.metrics.live import Clocks, SinceStep, record_of, short_share
from journeyman.train.metrics.sinks import Sinks
from journeyman.train.protocol import Trainer, WeightReceiver

TICK_S = 0.02
"""Longest poll of the source: how late the trainer may learn that a batch is complete."""
GAUGES_EVERY_S = 1.0
"""Between two looks of the concurrency controller."""


class Quarantined(SystemFault):
    """Too many batches in a row were not finite. The last ones lie under ``quarantine/``."""


class AsyncLoop:
    """One run, or the rest of one.

    Args:
        root: of the run; a run that was killed goes on.
        spec: what to do.
        source: samples. trainer: learns; on a resume its state is replaced by the newest checkpoint's.
        sinks: where records go.
        evaluator: measures frozen weights beside training, or None.
        is_stopping: asked every round; once true, the step under way is finished, checkpointed, and the run ends.
    """

    def __init__(
        self,
        root: Path,
        spec: LoopSpec,
        source: TrialSource,
        trainer: Trainer,
        sinks: Sinks,
        evaluator: Evaluator | None = None,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self.root, self.spec = root, spec
        self._source, self._trainer, self._evaluator = source, trainer, evaluator
        self._is_stopping = is_stopping
        self.books = Books(root, spec, sinks)
        self.gate = Gate(spec.gate, self._dropped)
        self._order = TaskOrder(spec.tasks, spec.seed, spec.name)
        start, lowest, highest = spec.trials_at_once
        self._concurrency = Concurrency(start, lowest=lowest, highest=highest)
        self._trials: dict[int, dict[int, FinishedTrial]] = {}
        self._position = 0
        self._worker: OneJob[Any] = OneJob("trainer")
        self._step: tuple[SettledGroup, ...] | None = None
        self._saved: tuple[int, set[int]] | None = None
        self._gauges, self._looked_at = SourceGauges(), 0.0
        self._progress_at = time.monotonic()
        self._seen_tokens: list[int] = []
        self._since, self._probes = SinceStep(), Probes()
        self._status: Status | None = None
        self._checkpoint: Path | None = None
        self._saved_version = 0
        self._measuring = -1
        self._preemptions = 0
        self._clock = (time.monotonic(), 0.0, 0.0)

    def run(self) -> LoopResult:
        """Train until the last step, a stop, or nothing left to learn.

        Raises:
            DeadlinePassed: nothing ended for ``deadlines.stall_s``, or a step took longer than ``deadlines.step_s``.
            Quarantined: too many batches in a row were not finite.
            SystemFault, StorageError: source, trainer or storage broke beyond help. The run can be resumed.
        """
        try:
            self._begin()
            while self._status is None or self._worker.is_busy:
                self._round()
                if self._status is not None and not self._worker.is_busy and self._saved_version < self.gate.version:
                    self._save()
            return self._end()
        finally:
            self._worker.close(wait=False)
            self.journal.close()
            self.books.close()

    def _begin(self) -> None:
        found = newest(self.root)
        state = self._trainer.load_state(found) if found is not None else None
        recovered = recover(self.root / "journal", state, self.gate, self._order, self.spec.rule)
        self.journal = Journal(self.root / "journal", recovered.segment)
        self._trials = {p: t for p, t in recovered.trials.items() if p in self.gate.running}
        self._position, self._checkpoint = recovered.next_position, found
        self._saved_version = self.gate.version
        if state is not None:
            self.books.load(state["books"])
            self._concurrency.load(state["concurrency"])
            LOG.info("resumed at step %d with %d groups in flight", self.gate.version, self.gate.ledger.in_flight)
        self._trainer.push_weights(self._source, self.gate.version)
        if self._evaluator is not None and self.spec.evaluate_every and self.gate.version == 0:
            self._trainer.push_weights(self._evaluator, 0)
        again = recovered.missing()
        if again:
            self._source.submit(again)
        now = time.monotonic()
        self._clock, self._progress_at = (now, 0.0, 0.0), now

    def _round(self) -> None:
        self._take_in(self._source.poll(TICK_S))
        self._bound()
        if self._status is None:
            self._admit()
            self._start_step()
        self._collect_job()
        self._collect_evaluations()
        self.journal.sync()
        if self._is_stopping() and self._status is None:
            self._status = "interrupted"
        is_stalled = time.monotonic() - self._progress_at > self.spec.deadlines.stall_s
        if is_stalled and not self._worker.is_busy:  # a step has a deadline of its own
            raise DeadlinePassed(f"waiting for {self._waits_for()}", self.spec.deadlines.stall_s)

    def _take_in(self, arrivals: Arrivals) -> None:
        self._gauges = arrivals.gauges
        self._probes.add(arrivals.probes)
        now = time.monotonic()
        for trial in arrivals.trials:
            order = self.gate.running.get(trial.position)
            done = self._trials.setdefault(trial.position, {}) if order is not None else {}
            if order is None or trial.sample in done:
                continue  # of a Group that was given up, or told twice
            self._progress_at = now
            self.journal.trial(trial)
            done[trial.sample] = trial
            running = self._gauges.trials_running
            self._concurrency.completed(tokens=trial.num_sampled, in_flight=running, at_s=now)
            if len(done) == order.trials:
                self._settle(order, self._trials.pop(trial.position))
        if arrivals.lost:
            self._order_again(arrivals.lost)
        if now - self._looked_at >= GAUGES_EVERY_S:
            self._look(now)

    def _settle(self, order: GroupOrder, trials: dict[int, FinishedTrial]) -> None:
        group = settle(order, list(trials.values()), self.spec.rule)
        self.gate.finish(group)
        self._seen_tokens.append(group.tokens)
        self._since.add(group)
        if group.reason:
            self.journal.note("filter", {"position": order.position, "reason": group.reason})
            self.books.settled(group, group.reason)

    def _order_again(self, positions: Sequence[int]) -> None:
        """The source lost Groups with its process: what they lack is sampled again, what had ended stays."""
        again = []
        for position in positions:
            order = self.gate.running.get(position)
            if order is not None:
                done = self._trials.get(position, {})
                lacking = tuple(s for s in range(order.trials) if s not in done)
                again.append(GroupOrder(position, order.task, order.trials, order.version, lacking))
        if again:
            LOG.warning("the source lost %d groups; their missing trials are sampled again", len(again))
            self._source.submit(again)

    def _look(self, now: float) -> None:
        gauges = self._gauges
        before = self._looked_at
        self._looked_at = now
        if not gauges.kv_capacity or before == 0.0:
            return
        share = gauges.kv_tokens / gauges.kv_capacity
        preempted, self._preemptions = gauges.preemptions - self._preemptions, gauges.preemptions
        running = max(0, gauges.trials_running - gauges.turns_waiting)
        poll = EnginePoll(now, gauges.trials_running, share, gauges.turns_waiting, running, max(0, preempted))
        self._source.limit(self._concurrency.observe(poll))
        for order in sorted(self.gate.running.values(), key=lambda o: -o.position):
            if self._concurrency.excess < order.trials:
                break
            self._concurrency.excess -= order.trials
            self.gate.drop(order.position, "preempted")
            self._source.cancel(order.position)

    def _bound(self) -> None:
        for order in self.gate.sweep().cancelled:
            self._source.cancel(order.position)

    def _dropped(self, order: GroupOrder, group: SettledGroup | None, reason: str) -> None:
        if reason in ("requeued", "preempted"):
            self._order.again(order.task)
        self.journal.note("drop", {"position": order.position, "reason": reason, "order": self._order.state()})
        trials = self._trials.pop(order.position, {})
        if group is not None:
            self.books.settled(group, reason)
        else:
            self.books.abandoned(order, sum(trial.num_sampled for trial in trials.values()), reason)

    def _admit(self) -> None:
        n_trials = self.spec.trials_per_group
        fitting = -(-self._concurrency.cap // n_trials)  # the source holds the rest of the last one back
        orders = []
        for _ in range(self.gate.room(fitting)):
            order = GroupOrder(self._position, self._order.next(), n_trials, self.gate.version)
            self._position += 1
            self.gate.submit(order)
            self.journal.note("submit", {**order_facts(order), "order": self._order.state()})
            orders.append(order)
        if orders:
            self.journal.sync()
            self._source.submit(orders)

    def _start_step(self) -> None:
        if self._worker.is_busy:
            return
        take = self.gate.take()
        if take.waits_for in ("end", "nothing"):
            self._status = "done" if take.waits_for == "end" else "nothing_to_learn"
        if not take.groups:
            return
        if take.is_partial:
            LOG.warning(
                "step %d is taken with %d groups: the filter left no more", self.gate.version + 1, len(take.groups)
            )
        self._step = take.groups
        job = StepJob(self._trainer, self._receivers(), self.spec, self.root / "quarantine", self._probes)
        work = partial(job.run, take.groups, self.gate.version)
        self._worker.start(work, f"step {self.gate.version + 1}", self.spec.deadlines.step_s)

    def _receivers(self) -> list[WeightReceiver]:
        receivers: list[WeightReceiver] = [self._source]
        every = self.spec.evaluate_every
        is_due = bool(every) and (self.gate.version + 1) % every == 0
        if self._evaluator is not None and is_due and not self._evaluator.is_busy:
            receivers.append(self._evaluator)
            self._measuring = self.gate.version + 1
        return receivers

    def _collect_job(self) -> None:
        future = self._worker.poll()
        if future is None:
            return
        self._progress_at = time.monotonic()
        if self._step is not None:
            groups, self._step = self._step, None
            self._step_done(groups, future.result())
        elif self._saved is not None:
            self._saved_done(future.result())

    def _step_done(self, groups: tuple[SettledGroup, ...], outcome: StepOutcome) -> None:
        if outcome.metrics is None:
            LOG.warning("step %d is quarantined: %s", self.gate.version + 1, outcome.reason)
            self.gate.quarantine()
            self.books.totals.quarantined_in_a_row += 1
            if self.books.totals.quarantined_in_a_row > self.spec.guards.max_quarantined:
                raise Quarantined(f"{self.books.totals.quarantined_in_a_row} batches in a row: {outcome.reason}")
            return
        version = self.gate.version
        self.gate.step_done()
        for group in groups:
            self.books.settled(group, "trained")
        record = record_of(
            groups,
            outcome.metrics,
            version,
            clocks=self._clocks(),
            gauges=self._gauges,
            counts=self.gate.ledger.counts(),
            gap=outcome.gap,
            in_flight=self.gate.staleness_in_flight(),
            in_queue=self.gate.staleness_in_queue(),
        )
        record["rollout/cap"] = self._concurrency.cap
        record |= self._since.figures()
        record["buffer/short_share"] = short_share(groups, self._seen_tokens)
        record["bound/waived"] = self.gate.waived
        alarms = self.books.step(self.gate.version, record, groups)
        if any(self.books.guards.stops(alarm) for alarm in alarms):
            self._status = "stopped"
        is_last = self.gate.version >= self.spec.steps or self._status is not None
        is_due = self.gate.version % self.spec.checkpoint_every == 0 or self._measuring == self.gate.version
        if is_last or is_due or self._is_stopping():
            self._save()

    def _save(self) -> None:
        segment = self.journal.rotate()
        state = {
            "gate": self.gate.state(),
            "order": self._order.state(),
            "orders": orders_in_flight(self.gate),
            "segment": segment,
            "books": self.books.state(),
            "concurrency": self._concurrency.state(),
        }
        self._saved = segment, set(self.gate.ledger.phase)
        work = partial(self._trainer.save_state, self.root / "checkpoints", state)
        self._worker.start(work, f"the checkpoint of step {self.gate.version}", self.spec.deadlines.step_s)

    def _saved_done(self, checkpoint: Path) -> None:
        assert self._saved is not None
        (segment, live), self._saved = self._saved, None
        self._checkpoint, self._saved_version = checkpoint, self.gate.version
        keep(self.root, checkpoint, self.gate.version, self.spec.retention)
        if self.spec.retention.best and self._measuring == self.gate.version:
            hold_candidate(self.root, checkpoint)
        if self._evaluator is None and self.books.records and self.spec.retention.best:
            reward = float(self.books.records[-1]["reward/finished"])
            if reward > self.books.totals.best:
                self.books.totals.best = reward
                keep_best(self.root, checkpoint)
        self.journal.forget(segment, live)

    def _finish_evaluations(self, evaluator: Evaluator) -> None:
        """Wait for what is at work; the last weights are measured even if an evaluation was under way at their step."""
        limit_s = self.spec.deadlines.evaluation_s
        for found in evaluator.finish(limit_s):
            self._measured(found)
        if self._status == "done" and self.spec.evaluate_every and self._measuring < self.gate.version:
            self._measuring = self.gate.version
            if self._checkpoint is not None and self.spec.retention.best:
                hold_candidate(self.root, self._checkpoint)
            self._trainer.push_weights(evaluator, self.gate.version)
            for found in evaluator.finish(limit_s):
                self._measured(found)

    def _collect_evaluations(self) -> None:
        if self._evaluator is not None:
            for found in self._evaluator.poll():
                self._measured(found)

    def _measured(self, found: Any) -> None:
        is_best = self.books.measured(found)
        if found.version == self._measuring:
            settle_candidate(self.root, is_best=is_best)

    def _clocks(self) -> Clocks:
        now, (at, trained, rolled) = time.monotonic(), self._clock
        clocks = Clocks(now - at, self._worker.busy_s - trained, self._gauges.busy_s - rolled)
        self._clock = now, self._worker.busy_s, self._gauges.busy_s
        return clocks

    def _waits_for(self) -> str:
        ages = sorted(self.gate.running)
        oldest = f", the oldest is group {ages[0]}" if ages else ""
        return f"{len(ages)} running groups{oldest}; {len(self.gate.buffer)} are queued"

    def _end(self) -> LoopResult:
        assert self._status is not None
        if self._evaluator is not None:
            self._finish_evaluations(self._evaluator)
        return LoopResult(
            status=self._status,
            steps=self.gate.version,
            records=self.books.records,
            alarms=self.books.alarms,
            counts=self.gate.ledger.counts(),
            waived=self.gate.waived,
            lost=self.books.lost,
            checkpoint=self._checkpoint,
            evaluations=self.books.evaluations,
        )


def idle_share(records: Sequence[dict[str, Any]], key: str = "trainer/idle_share", skip: int = 1) -> float:
    """Mean idle share of a run, weighted by time; the first ``skip`` records fill the pipe and do not count."""
    counted = records[skip:] or records
    walls = np.array([record["time/wall_s"] for record in counted])
    shares = np.array([record[key] for record in counted])
    return float((walls * shares).sum() / walls.sum()) if walls.sum() else 0.0
