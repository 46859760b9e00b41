"""Whose turn it is: trials that wait, trials that have just got a row, and who gives one up when memory is short.

Rows are given in the order of arrival. The memory bound counts tokens: when it would be passed, resting trials lose
their keys and values first (the one that rests longest before the others), then the running trial admitted last does;
it goes back to the head of the queue and its context is computed again. One trial alone always fits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np

from journeyman.engines.embedded.batch import Batch
from journeyman.engines.embedded.trial import Trial


class Roster:
    """Moves trials between waiting, running and resting.

    Args:
        batch: the rows.
        trials: every trial the engine knows, by name.
        kv_tokens: tokens of context that all rows together may hold.

    Attributes:
        waiting: trials with a turn and no place in the batch yet, or none any more.
        arrived: trials that have a row and whose new tokens are to be prefilled.
        preemptions: how often keys and values were given up.
    """

    def __init__(self, batch: Batch, trials: Mapping[str, Trial], kv_tokens: int) -> None:
        self._batch, self._slots, self._trials, self._kv_tokens = batch, batch.slots, trials, kv_tokens
        self._bounded = kv_tokens < len(batch.slots.names) * batch.slots.width
        self.waiting: deque[Trial] = deque()
        self.arrived: list[Trial] = []
        self._lingering: dict[str, Trial] = {}
        self.preemptions = 0

    def put(self, trial: Trial, *, at_once: bool) -> None:
        """Take a trial with a new turn. One whose last turn ended in the step before may go on in its row at once."""
        if at_once and not self._bounded and trial.name in self._lingering:
            del self._lingering[trial.name]
            self._batch.begin(trial)
            self.arrived.append(trial)
        else:
            self.waiting.append(trial)

    def linger(self, trial: Trial) -> None:
        """Leave a trial whose turn has ended among the running rows until the next step; mostly it goes on there."""
        self._lingering[trial.name] = trial

    def settle(self) -> None:
        """Take trials that were not answered out of the running rows."""
        for name in self._lingering:
            self._slots.park(name)
        self._lingering.clear()

    def admit(self, *, started_only: bool = False) -> None:
        """Give rows to waiting trials, first come first served, as long as there is room."""
        self.settle()
        while self.waiting:
            trial = self.waiting[0]
            assert trial.turn is not None
            if (started_only and not len(trial.turn.ids)) or not self._has_room(trial):
                return
            self.waiting.popleft()
            self._batch.begin(trial)
            self.arrived.append(trial)

    def take_arrived(self) -> list[Trial]:
        arrived, self.arrived = self.arrived, []
        return arrived

    def make_room(self) -> None:
        """Before every running row gets one more token: give up keys and values until that fits."""
        if not self._bounded:
            return
        slots = self._slots
        while self._held() + slots.active > self._kv_tokens and slots.active > 1:
            if not self._evict():
                self.preempt(self._youngest())
                self.preemptions += 1

    def preempt(self, trial: Trial) -> None:
        """Take a running trial's row away; it goes on from the head of the queue, its context computed again."""
        self._batch.keep_aside(trial)
        self._slots.release(trial.name)
        self.waiting.appendleft(trial)

    def withdraw(self) -> None:
        """Put trials that were admitted but not prefilled back, so that only turns that have begun are running."""
        self.settle()
        for trial in reversed(self.take_arrived()):
            self.rest(trial)
            self.waiting.appendleft(trial)

    def rest(self, trial: Trial) -> None:
        """Take a trial out of the running rows; its row stays if it holds anything."""
        if self._slots.length[self._slots.row_of[trial.name]]:
            self._slots.park(trial.name)
        else:
            self._slots.release(trial.name)

    def leave(self, trial: Trial) -> None:
        """Take a trial's turn from wherever it is; what it had sampled is in the turn afterwards."""
        if trial in self.waiting:
            self.waiting.remove(trial)
        elif trial in self.arrived:
            self.arrived.remove(trial)
            self.rest(trial)
        else:
            self.settle()
            self._batch.keep_aside(trial)
            self._slots.park(trial.name)

    def forget(self, name: str) -> None:
        """Free a trial's row."""
        self._lingering.pop(name, None)
        self._slots.release(name)

    def drop_cache(self) -> None:
        """Give up all keys and values; running trials go on after their contexts were computed again."""
        self.withdraw()
        slots = self._slots
        for name in reversed([str(name) for name in slots.names[: slots.active]]):
            self.preempt(self._trials[name])
        for name in [str(name) for name in slots.names[: slots.used]]:
            slots.release(name)

    def is_running(self, trial: Trial) -> bool:
        """The trial has a turn under way and a running row."""
        row = self._slots.row_of.get(trial.name)
        return trial.turn is not None and row is not None and row < self._slots.active

    def running(self) -> list[Trial]:
        """Trials in running rows, in row order, between two steps."""
        names = [str(name) for name in self._slots.names[: self._slots.active]]
        return [self._trials[name] for name in names if name not in self._lingering]

    def _held(self) -> int:
        return int(self._slots.length[: self._slots.used].sum())

    def _has_room(self, trial: Trial) -> bool:
        slots = self._slots
        while True:
            row = slots.row_of.get(trial.name)
            needs_row = row is None and not slots.has_free
            if not needs_row and not self._bounded:
                return True
            in_cache = 0 if row is None else int(slots.length[row])
            coming = sum(len(other.known()) - int(slots.length[slots.row_of[other.name]]) for other in self.arrived)
            needed = self._held() + coming + len(trial.known()) - in_cache + slots.active + 1
            if not needs_row and (needed <= self._kv_tokens or not slots.active):
                return True
            if not self._evict(but=trial.name):
                return not needs_row and not slots.active

    def _evict(self, but: str = "") -> bool:
        """Free the row of the trial that rests longest."""
        slots = self._slots
        resting = [str(name) for name in slots.names[slots.active : slots.used] if name != but]
        if not resting:
            return False
        slots.release(min(resting, key=lambda name: self._trials[name].used_at))
        self.preemptions += 1
        return True

    def _youngest(self) -> Trial:
        slots = self._slots
        return self._trials[str(slots.names[int(np.argmax(slots.admitted[: slots.active]))])]
