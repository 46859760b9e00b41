"""An engine that plays written turns: oracles, replays and floors of a comparison. Every token has probability 1."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from journeyman.engines import drive
from journeyman.engines.checks import check_open, check_request
from journeyman.engines.errors import EngineError
from journeyman.engines.protocol import (
    KvMode,
    KvUsage,
    PauseMode,
    Respond,
    TurnRequest,
    TurnResult,
    WeightSource,
)


class ScriptedEngine:
    """Plays, for each trial, its list of turns in order; one turn per step, in the order of the requests.

    Args:
        scripts: per trial the ids of each turn, stop ids written out.
        version: reported with every turn.
        max_len: context limit in tokens, as of any engine.
    """

    capabilities: frozenset[str] = frozenset({"inflight_update", "spans", "pause_wait", "pause_keep", "seed", "cancel"})

    def __init__(
        self, scripts: Mapping[str, Sequence[Sequence[int]]], *, version: int = 0, max_len: int = 4096
    ) -> None:
        self._scripts = {trial: [list(turn) for turn in turns] for trial, turns in scripts.items()}
        self._version, self._max_len = version, max_len
        self._played: dict[str, int] = {}
        self._length: dict[str, int] = {}
        self._waiting: deque[TurnRequest] = deque()
        self._aborted: set[str] = set()
        self._paused = self._closed = False

    @property
    def version(self) -> int:
        return self._version

    @property
    def max_len(self) -> int:
        return self._max_len

    @property
    def paused(self) -> bool:
        return self._paused

    def submit(self, request: TurnRequest) -> None:
        check_open(self._closed, "submit")
        trial = request.trial
        check_request(
            request,
            context=self._length.get(trial, 0),
            max_len=self._max_len,
            under_way=any(other.trial == trial for other in self._waiting),
            resumable=trial in self._aborted,
            capabilities=self.capabilities,
        )
        turn, script = self._played.get(trial, 0), self._scripts.get(trial)
        if script is None or turn >= len(script) or not script[turn]:
            raise EngineError(f"no script for turn {turn + 1} of trial {trial!r}")
        self._aborted.discard(trial)
        self._waiting.append(request)

    def step(self, deadline_s: float = 60.0) -> list[TurnResult]:
        check_open(self._closed, "step")
        if self._paused or not self._waiting:
            return []
        return [self._play(self._waiting.popleft())]

    def cancel(self, trial: str) -> TurnResult | None:
        for request in self._waiting:
            if request.trial == trial:
                self._waiting.remove(request)
                return self._abort(request)
        return None

    def pause(self, mode: PauseMode, *, deadline_s: float = 60.0) -> list[TurnResult]:
        ended: list[TurnResult] = []
        if not self._paused and mode != "keep":
            end = self._play if mode == "wait" else self._abort
            ended = [end(request) for request in self._waiting]
            self._waiting.clear()
        self._paused = True
        return ended

    def resume(self) -> None:
        self._paused = False

    def update_weights(
        self, source: WeightSource, version: int, *, kv: KvMode | None = None, deadline_s: float = 60.0
    ) -> None:
        """A script has no weights: only the version it reports changes."""
        self._version = version

    def usage(self) -> KvUsage:
        """A script computes nothing; ``tokens`` are those of its trials' contexts."""
        return KvUsage(sum(self._length.values()), self._max_len, 0, 0, 0)

    def converse(self, requests: Sequence[TurnRequest], respond: Respond) -> None:
        drive.converse(self, requests, respond)

    def generate(self, requests: Sequence[TurnRequest]) -> list[TurnResult]:
        return drive.generate(self, requests)

    def release(self, trial: str) -> None:
        self.cancel(trial)
        self._aborted.discard(trial)
        self._played.pop(trial, None)
        self._length.pop(trial, None)

    def close(self) -> None:
        self._closed = True
        self._waiting.clear()
        self._aborted.clear()
        self._played.clear()
        self._length.clear()

    def _play(self, request: TurnRequest) -> TurnResult:
        trial, sampling = request.trial, request.sampling
        turn = self._played.get(trial, 0)
        ids = _until_stop(self._scripts[trial][turn][: sampling.max_new_tokens], sampling.stop_ids)
        self._played[trial] = turn + 1
        self._length[trial] = self._length.get(trial, 0) + len(request.append) + len(ids)
        stopped = ids[-1] in sampling.stop_ids
        if not stopped and len(ids) < sampling.max_new_tokens:
            raise EngineError(f"turn {turn + 1} of trial {trial!r} is scripted without a stop id")
        zeros = np.zeros(len(ids), dtype=np.float32)
        return TurnResult(trial, ids, zeros, "stop" if stopped else "length", self._version)

    def _abort(self, request: TurnRequest) -> TurnResult:
        """A turn is played at once, so an aborted one has no token; its script is still to come."""
        self._aborted.add(request.trial)
        self._length[request.trial] = self._length.get(request.trial, 0) + len(request.append)
        return TurnResult(request.trial, [], np.zeros(0, dtype=np.float32), "abort", self._version)


def _until_stop(ids: list[int], stop_ids: frozenset[int]) -> list[int]:
    for at, token in enumerate(ids):
        if token in stop_ids:
            return ids[: at + 1]
    return ids
