"""Who sits in which cache row: active rows first, parked ones behind them, free ones last, kept dense by moving rows.

All per-row state lives in arrays indexed by row, so that a decoding step costs no Python per row.
"""

from __future__ import annotations

import numpy as np

from journeyman.engines.embedded.cache import KVCache
from journeyman.engines.embedded.trial import Turn


class Slots:
    """Rows ``[0, active)`` are decoding, ``[active, used)`` hold trials between calls, the rest is free.

    Attributes:
        length: tokens of each row that are in the cache.
        last: the last sampled token of each row, not yet in the cache; -1 when there is none.
        key, temperature, limit, stops: sampling of the present turn (stops: row of the engine's table of stop sets).
        position: tokens sampled so far in the present turn.
        offset: added to the position for the noise.
        tells_more: the turn reports kept sets or alternatives.
        admitted: number of the admission to the running rows; the highest came last.
        out_ids, out_logprobs: the tokens sampled in the present turn, [rows, max_len].
    """

    def __init__(self, cache: KVCache) -> None:
        rows, width = cache.rows, cache.max_len
        self._cache, self.width, self._admissions = cache, width, 0
        self.names: list[str | None] = [None] * rows
        self.row_of: dict[str, int] = {}
        self.active = self.used = 0
        self.length = np.zeros(rows, dtype=np.int64)
        self.last = np.full(rows, -1, dtype=np.int64)
        self.key = np.zeros(rows, dtype=np.uint64)
        self.temperature = np.ones(rows, dtype=np.float32)
        self.limit = np.zeros(rows, dtype=np.int64)
        self.stops = np.zeros(rows, dtype=np.int64)
        self.position = np.zeros(rows, dtype=np.int64)
        self.offset = np.zeros(rows, dtype=np.int64)
        self.tells_more = np.zeros(rows, dtype=bool)
        self.admitted = np.zeros(rows, dtype=np.int64)
        self.out_ids = np.zeros((rows, width), dtype=np.int32)
        self.out_logprobs = np.zeros((rows, width), dtype=np.float32)
        self._columns = (
            self.length,
            self.last,
            self.key,
            self.temperature,
            self.limit,
            self.stops,
            self.position,
            self.offset,
            self.tells_more,
            self.admitted,
            self.out_ids,
            self.out_logprobs,
        )

    @property
    def has_free(self) -> bool:
        return self.used < len(self.names)

    def begin(self, trial: str, turn: Turn, stops: int) -> None:
        """Make a trial active for its turn: a free row for a new one, its own row for one that is known."""
        if trial not in self.row_of:
            row = self.used
            self.used += 1
            self.names[row], self.row_of[trial] = trial, row
            self.length[row], self.last[row] = 0, -1
        row = self.row_of[trial]
        if row >= self.active:
            self._swap(row, self.active)
            row = self.active
            self.active += 1
        request, done = turn.request, len(turn.ids)
        sampling = request.sampling
        self.key[row] = request.key & 0xFFFFFFFFFFFFFFFF
        self.temperature[row], self.limit[row], self.stops[row] = sampling.temperature, sampling.max_new_tokens, stops
        self.position[row], self.offset[row], self.tells_more[row] = done, request.offset, turn.tells_more
        self._admissions += 1
        self.admitted[row] = self._admissions
        if done:
            self.out_ids[row, :done], self.out_logprobs[row, :done] = turn.ids, turn.logprobs

    def park(self, trial: str) -> None:
        """Take an active trial out of decoding; its row is kept."""
        self._swap(self.row_of[trial], self.active - 1)
        self.active -= 1

    def release(self, trial: str) -> None:
        """Free the trial's row; a trial that holds none is ignored."""
        if trial not in self.row_of:
            return
        hole = self.row_of.pop(trial)
        self.names[hole] = None
        if hole < self.active:
            self.active -= 1
            self._copy(self.active, hole)
            hole = self.active
        self.used -= 1
        self._copy(self.used, hole)

    def _copy(self, source: int, target: int) -> None:
        """Move a row over a dead one."""
        if source == target:
            return
        self._cache.move(source, target, int(self.length[source]))
        for column in self._columns:
            column[target] = column[source]
        name = self.names[source]
        self.names[target], self.names[source] = name, None
        if name is not None:
            self.row_of[name] = target

    def _swap(self, a: int, b: int) -> None:
        if a == b:
            return
        length = int(max(self.length[a], self.length[b]))
        if length:
            self._cache.swap(a, b, length)
        for column in self._columns:
            column[[a, b]] = column[[b, a]]
        self.names[a], self.names[b] = self.names[b], self.names[a]
        for row in (a, b):
            name = self.names[row]
            if name is not None:
                self.row_of[name] = row
