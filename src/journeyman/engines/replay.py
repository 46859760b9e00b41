"""An engine that plays recorded trials again: the same ids, logprobs and versions, as long as it is asked the same.

What a turn appends is compared with what was recorded there. A harness or tool that behaves differently today is found
at the first token that differs, instead of being answered with a turn that belongs to another context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from journeyman.engines.errors import EngineError
from journeyman.engines.protocol import KvMode, TurnRequest, TurnResult, WeightSource, WeightSpan
from journeyman.engines.scripted import ScriptedEngine


@dataclass(frozen=True)
class RecordedTurn:
    """One model call of a recorded trial.

    Attributes:
        append: ids that were added before it; None compares nothing.
        ids: ids that it sampled, the stop id included.
        logprobs: float32, as the engine reported them.
        versions: int64, the weight version of each id.
    """

    append: Sequence[int] | None
    ids: Sequence[int]
    logprobs: npt.NDArray[np.float32]
    versions: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        if not self.ids or not len(self.ids) == len(self.logprobs) == len(self.versions):
            raise ValueError(f"{len(self.ids)} ids, {len(self.logprobs)} logprobs and {len(self.versions)} versions")


def recorded_turns(
    ids: npt.NDArray[np.int64],
    sampled: npt.NDArray[np.bool_],
    logprobs: npt.NDArray[np.float32],
    versions: npt.NDArray[np.int64],
) -> list[RecordedTurn]:
    """The turns of one trial from its columns: each run of sampled tokens is a turn, what lies before it was appended.

    Two model calls with nothing between them are one turn. Tokens after the last sampled one are dropped.
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], sampled.astype(np.int8), [0]])))
    turns, at = [], 0
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        part = slice(start, end)
        turns.append(RecordedTurn(ids[at:start].tolist(), ids[part].tolist(), logprobs[part], versions[part]))
        at = end
    return turns


class ReplayEngine(ScriptedEngine):
    """Plays recorded trials turn by turn; takes no new weights.

    Args:
        records: the turns of each trial.
        max_len: context limit in tokens, as of any engine.
    """

    capabilities = ScriptedEngine.capabilities - {"inflight_update"}

    def __init__(self, records: Mapping[str, Sequence[RecordedTurn]], *, max_len: int = 4096) -> None:
        last = max((int(t.versions.max()) for turns in records.values() for t in turns), default=0)
        scripts = {trial: [turn.ids for turn in turns] for trial, turns in records.items()}
        super().__init__(scripts, version=last, max_len=max_len)
        self._records = {trial: list(turns) for trial, turns in records.items()}

    def submit(self, request: TurnRequest) -> None:
        turn = self._played.get(request.trial, 0)
        turns = self._records.get(request.trial, [])
        if turn < len(turns) and request.trial not in self._aborted:
            _check_same(request, turns[turn].append, turn)
        super().submit(request)

    def update_weights(
        self, source: WeightSource, version: int, *, kv: KvMode | None = None, deadline_s: float = 60.0
    ) -> None:
        """Raises EngineError: a record keeps the versions that it has."""
        raise EngineError(f"version {version} cannot be served by a record")

    def _play(self, request: TurnRequest) -> TurnResult:
        record = self._records[request.trial][self._played.get(request.trial, 0)]
        played = super()._play(request)
        count = len(played.ids)
        spans = _spans(record.versions[:count])
        logprobs = record.logprobs[:count].astype(np.float32)
        return TurnResult(played.trial, played.ids, logprobs, played.finish, spans[-1].version, spans)


def _check_same(request: TurnRequest, recorded: Sequence[int] | None, turn: int) -> None:
    """Raise EngineError at the first id in which a request differs from the record."""
    asked = list(request.append)
    if recorded is None or asked == list(recorded):
        return
    pairs = zip(asked, recorded, strict=False)
    at = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(asked), len(recorded)))
    raise EngineError(
        f"turn {turn + 1} of trial {request.trial!r} does not follow the record: of {len(asked)} ids appended "
        f"({len(recorded)} are recorded) number {at + 1} is the first that differs"
    )


def _spans(versions: npt.NDArray[np.int64]) -> tuple[WeightSpan, ...]:
    edges = [0, *(np.flatnonzero(np.diff(versions)) + 1).tolist(), len(versions)]
    return tuple(WeightSpan(int(versions[start]), start, end) for start, end in pairwise(edges))
