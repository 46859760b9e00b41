"""An engine that plays written turns: oracles, replays and floors of a comparison. Every token has probability 1."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from journeyman.engines.errors import ContextOverflow, EngineError
from journeyman.engines.protocol import Respond, TurnRequest, TurnResult

if TYPE_CHECKING:
    import torch


class ScriptedEngine:
    """Plays, for each trial, its list of turns in order.

    Args:
        scripts: per trial the ids of each turn, stop ids written out.
        version: reported with every turn.
        max_len: context limit in tokens, as of any engine.
    """

    def __init__(
        self, scripts: Mapping[str, Sequence[Sequence[int]]], *, version: int = 0, max_len: int = 4096
    ) -> None:
        self._scripts = {trial: [list(turn) for turn in turns] for trial, turns in scripts.items()}
        self._version, self._max_len = version, max_len
        self._played: dict[str, int] = {}
        self._length: dict[str, int] = {}

    @property
    def version(self) -> int:
        return self._version

    @property
    def max_len(self) -> int:
        return self._max_len

    def converse(self, requests: Sequence[TurnRequest], respond: Respond) -> None:
        """Play trials turn by turn, round robin in the order of the requests."""
        check_distinct(requests)
        waiting = deque(requests)
        try:
            while waiting:
                result = self._play(waiting.popleft())
                following = respond(result)
                if following is None:
                    self.release(result.trial)
                else:
                    check_same_trial(result, following)
                    waiting.append(following)
        except BaseException:
            self._release_all(requests)
            raise

    def generate(self, requests: Sequence[TurnRequest]) -> list[TurnResult]:
        check_distinct(requests)
        try:
            return [self._play(request) for request in requests]
        except BaseException:
            self._release_all(requests)
            raise

    def _release_all(self, requests: Sequence[TurnRequest]) -> None:
        for request in requests:
            self.release(request.trial)

    def release(self, trial: str) -> None:
        self._played.pop(trial, None)
        self._length.pop(trial, None)

    def update_weights(self, state: Mapping[str, torch.Tensor], version: int) -> None:
        """A script has no weights: only the version it reports changes."""
        self._version = version

    def close(self) -> None:
        self._played.clear()
        self._length.clear()

    def _play(self, request: TurnRequest) -> TurnResult:
        trial, sampling = request.trial, request.sampling
        if not request.append:
            raise EngineError(f"trial {trial!r} appends no token")
        needed = self._length.get(trial, 0) + len(request.append) + sampling.max_new_tokens
        if needed > self._max_len:
            raise ContextOverflow(trial, needed, self._max_len)
        turn, script = self._played.get(trial, 0), self._scripts.get(trial)
        if script is None or turn >= len(script) or not script[turn]:
            raise EngineError(f"no script for turn {turn + 1} of trial {trial!r}")
        ids = _until_stop(script[turn][: sampling.max_new_tokens], sampling.stop_ids)
        self._played[trial] = turn + 1
        self._length[trial] = self._length.get(trial, 0) + len(request.append) + len(ids)
        stopped = ids[-1] in sampling.stop_ids
        if not stopped and len(ids) < sampling.max_new_tokens:
            raise EngineError(f"turn {turn + 1} of trial {trial!r} is scripted without a stop id")
        zeros = np.zeros(len(ids), dtype=np.float32)
        return TurnResult(trial, ids, zeros, "stop" if stopped else "length", self._version)


def _until_stop(ids: list[int], stop_ids: frozenset[int]) -> list[int]:
    for at, token in enumerate(ids):
        if token in stop_ids:
            return ids[: at + 1]
    return ids


def check_distinct(requests: Sequence[TurnRequest]) -> None:
    """Raise EngineError when two requests of one call name the same trial."""
    seen: set[str] = set()
    for request in requests:
        if request.trial in seen:
            raise EngineError(f"trial {request.trial!r} occurs twice in one call")
        seen.add(request.trial)


def check_same_trial(result: TurnResult, following: TurnRequest) -> None:
    """Raise EngineError when a turn is answered with a request of another trial."""
    if following.trial != result.trial:
        raise EngineError(f"a turn of trial {result.trial!r} was answered for trial {following.trial!r}")
