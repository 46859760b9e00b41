"""New weights for an engine that cannot take them in the middle of a turn: abort, update, issue again from the partial.

The trial sees one turn: ids, logprobs and versions of all its parts, put together. What goes on is the ids, never text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from journeyman.engines.protocol import Engine, KvMode, TurnRequest, TurnResult, WeightSource, WeightSpan


@dataclass
class _Turn:
    request: TurnRequest
    parts: list[TurnResult] = field(default_factory=list)

    @property
    def kept(self) -> int:
        return sum(len(part.ids) for part in self.parts)


class Reissuing:
    """An engine whose turns survive an update, whatever the engine itself can do; all other verbs are the engine's.

    Args:
        engine: must know ``pause("abort")``, and go on with an aborted turn (``TurnRequest.offset``).
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._turns: dict[str, _Turn] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    @property
    def capabilities(self) -> frozenset[str]:
        """The engine's, and updates in flight."""
        return self._engine.capabilities | {"inflight_update"}

    def submit(self, request: TurnRequest) -> None:
        """See ``Engine.submit``."""
        self._engine.submit(request)
        self._turns[request.trial] = _Turn(request)

    def step(self, deadline_s: float = 60.0) -> list[TurnResult]:
        """See ``Engine.step``."""
        return [self._whole(result) for result in self._engine.step(deadline_s)]

    def cancel(self, trial: str) -> TurnResult | None:
        """See ``Engine.cancel``."""
        result = self._engine.cancel(trial)
        return self._whole(result) if result is not None else None

    def release(self, trial: str) -> None:
        """See ``Engine.release``."""
        self._turns.pop(trial, None)
        self._engine.release(trial)

    def update_weights(
        self, source: WeightSource, version: int, *, kv: KvMode | None = None, deadline_s: float = 60.0
    ) -> None:
        """See ``Engine.update_weights``. A failed push leaves the turns going on under the old weights."""
        cut = self._engine.pause("abort", deadline_s=deadline_s)
        try:
            self._engine.update_weights(source, version, kv=kv, deadline_s=deadline_s)
        finally:
            self._engine.resume()
            for part in cut:
                self._go_on(part)

    def _go_on(self, part: TurnResult) -> None:
        turn = self._turns[part.trial]
        if part.ids:
            turn.parts.append(part)
        first, kept = turn.request, turn.kept
        sampling = replace(first.sampling, max_new_tokens=first.sampling.max_new_tokens - kept)
        self._engine.submit(TurnRequest(part.trial, [], first.key, sampling, first.offset + kept))

    def _whole(self, last: TurnResult) -> TurnResult:
        turn = self._turns.pop(last.trial, None)
        if turn is None or not turn.parts:
            return last
        parts = [*turn.parts, *([last] if last.ids else [])]
        return replace(
            last,
            ids=[token for part in parts for token in part.ids],
            logprobs=np.concatenate([part.logprobs for part in parts]),
            version=parts[-1].version,
            spans=tuple(_spans(parts)),
            top_logprobs=None,
            kept=None,
            routed_experts=None,
        )


def _spans(parts: Iterable[TurnResult]) -> Iterable[WeightSpan]:
    at = 0
    for part in parts:
        for span in part.spans:
            yield WeightSpan(span.version, at + span.start, at + span.end)
        at += len(part.ids)
