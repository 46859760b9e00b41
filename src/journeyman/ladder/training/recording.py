"""An engine that also notes what its turns tell beside tokens: likeliest tokens, experts, and a probe of each push.

Whoever runs trials sees plain turns. The probe is a short turn that one version of the weights samples whole: with it
engine and trainer can be compared at every step, however old the trials of that step are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from journeyman.engines.errors import EngineError
from journeyman.engines.experts import unpacked
from journeyman.engines.protocol import Engine, KvMode, PauseMode, Sampling, TurnRequest, TurnResult, WeightSource
from journeyman.seeds import key64
from journeyman.tokens.context import Segment
from journeyman.tokens.segments import of_json
from journeyman.train.loop.protocol import FinishedTrial
from journeyman.trials.record import Trial

PROBE = "probe of v"
"""Name of a probe's trial, before its version; no trial id begins so."""
PROBE_STEP_S = 0.02
"""Of waiting for a probe on a remote engine at a time."""
PROBE_TOKENS = 24
"""Sampled by a probe."""
PROBE_PROMPT = 64
"""Ids of the probe's prompt at most: the beginning of the newest trial's."""


@dataclass(frozen=True)
class Wanted:
    """What is noted.

    Attributes:
        topk: likeliest tokens at each sampled one; 0 for none.
        experts: which experts of a mixture each token went to.
        probe_seed: root of the probes' noise; None samples none.
        temperature: of the probes.
    """

    topk: int = 0
    experts: bool = False
    probe_seed: int | None = None
    temperature: float = 1.0


@dataclass
class _Notes:
    """Of one trial, its attempts one after the other."""

    ids: list[int] = field(default_factory=list)
    topk_ids: list[NDArray[np.int32]] = field(default_factory=list)
    topk_logprobs: list[NDArray[np.float32]] = field(default_factory=list)
    experts: list[list[NDArray[Any]]] = field(default_factory=list)
    is_told: bool = False


class Recorder:
    """See the module; all other verbs are the engine's. One thread owns it.

    Args:
        engine: samples.
        wanted: what to note.

    Raises:
        EngineError: the engine cannot tell it.
    """

    def __init__(self, engine: Engine, wanted: Wanted) -> None:
        needs = {"top_logprobs": bool(wanted.topk), "routed_experts": wanted.experts}
        lacking = sorted(word for word, is_needed in needs.items() if is_needed and word not in engine.capabilities)
        if lacking:
            raise EngineError(
                f"this engine cannot tell {', '.join(lacking)}, which loss or back-end of the recipe needs"
            )
        self._engine, self._wanted = engine, wanted
        self._notes: dict[str, _Notes] = {}
        self._probes: list[FinishedTrial] = []
        self._prompt: list[int] = []
        self._unprobed: int | None = engine.version
        self._asked: dict[str, list[int]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def submit(self, request: TurnRequest) -> None:
        """See ``Engine.submit``."""
        sampling = replace(request.sampling, top_logprobs=self._wanted.topk, routed_experts=self._wanted.experts)
        self._engine.submit(replace(request, sampling=sampling))
        if request.trial not in self._notes:
            self._notes[request.trial] = _Notes()
            self._prompt = list(request.append[: max(0, min(PROBE_PROMPT, self._engine.max_len - PROBE_TOKENS))])
        self._probe()

    def step(self, deadline_s: float = 60.0) -> list[TurnResult]:
        """See ``Engine.step``."""
        return self._taken(self._engine.step(deadline_s))

    def pause(self, mode: PauseMode, *, deadline_s: float = 60.0) -> list[TurnResult]:
        """See ``Engine.pause``."""
        return self._taken(self._engine.pause(mode, deadline_s=deadline_s))

    def cancel(self, trial: str) -> TurnResult | None:
        """See ``Engine.cancel``."""
        result = self._engine.cancel(trial)
        return self._plain(result) if result is not None else None

    def release(self, trial: str) -> None:
        """See ``Engine.release``. What was noted stays until ``take`` or ``forget``."""
        self._engine.release(trial)
        if trial in self._notes:
            self._notes[trial].is_told = True  # an attempt has ended or its context was edited: all is told anew

    def update_weights(
        self, source: WeightSource, version: int, *, kv: KvMode | None = None, deadline_s: float = 60.0
    ) -> None:
        """See ``Engine.update_weights``; a probe of the new weights begins at once."""
        self._engine.update_weights(source, version, kv=kv, deadline_s=deadline_s)
        self._unprobed = version
        self._probe()

    def take(self, trial: Trial) -> dict[str, NDArray[Any]]:
        """What was noted of a trial that ended: fields of ``FinishedTrial``, those that are whole.

        Raises:
            EngineError: its tokens are not those noted.
        """
        notes = self._notes.pop(trial.request.trial_id, _Notes())
        columns = trial.tokens
        found: dict[str, NDArray[Any]] = {}
        sampled = columns.ids[columns.mask.astype(bool)]
        count = len(sampled)
        if self._wanted.topk and count:
            if notes.ids[-count:] != sampled.tolist():  # a retry's tokens come after those of the attempt before
                raise EngineError(f"the likeliest tokens noted of {trial.request.trial_id} are not those of its tokens")
            found["topk_ids"] = np.concatenate(notes.topk_ids)[-count:]
            found["topk_logprobs"] = np.concatenate(notes.topk_logprobs)[-count:]
        if notes.experts:
            found["routed_experts"] = _by_segment(notes.experts, of_json(trial.segments), len(columns.ids))
        return found

    def forget(self, trial_ids: Sequence[str]) -> None:
        """Trials that nobody will take."""
        for trial_id in trial_ids:
            self._notes.pop(trial_id, None)

    def probe_on(self) -> bool:
        """Advance a probe while nobody else steps the engine; whether one is under way."""
        if self._asked:
            self.step(PROBE_STEP_S)
        return bool(self._asked)

    def take_probes(self) -> list[FinishedTrial]:
        """Probes that ended since the last call."""
        found, self._probes = self._probes, []
        return found

    def _taken(self, results: Sequence[TurnResult]) -> list[TurnResult]:
        return [plain for result in results if (plain := self._plain(result)) is not None]

    def _plain(self, result: TurnResult) -> TurnResult | None:
        """Note what a turn tells; the turn without it, or None for a probe."""
        if result.trial in self._asked:
            self._probed(result)
            return None
        notes = self._notes.get(result.trial)
        if notes is None:
            return result
        notes.ids += result.ids
        if result.top_logprobs is not None and result.ids:
            notes.topk_ids.append(result.top_logprobs.ids)
            notes.topk_logprobs.append(result.top_logprobs.logprobs)
        if result.routed_experts is not None:
            if notes.is_told or not notes.experts:
                notes.experts.append([])
                notes.is_told = False
            notes.experts[-1].append(unpacked(result.routed_experts))
        return replace(result, top_logprobs=None)

    def _probe(self) -> None:
        """Sample a probe of the weights serving, once there is a prompt."""
        if self._wanted.probe_seed is None or self._unprobed is None or not self._prompt:
            return
        version, self._unprobed = self._unprobed, None
        name = f"{PROBE}{version}"
        for older in list(self._asked):  # overtaken: it would mix two versions
            del self._asked[older]
            self._engine.release(older)
        key = key64(self._wanted.probe_seed, PROBE, version)
        sampling = Sampling(PROBE_TOKENS, self._wanted.temperature, frozenset(), routed_experts=self._wanted.experts)
        self._engine.submit(TurnRequest(name, self._prompt, key, sampling))
        self._asked[name] = list(self._prompt)

    def _probed(self, result: TurnResult) -> None:
        prompt = self._asked.pop(result.trial)
        self._engine.release(result.trial)
        versions = {span.version for span in result.spans}
        if len(versions) != 1 or f"{PROBE}{versions.copy().pop()}" != result.trial:
            return
        given, count = len(prompt), len(result.ids)
        ids = np.array([*prompt, *result.ids], np.int32)
        mask = np.repeat(np.array([0, 1], np.uint8), [given, count])
        logprobs = np.concatenate([np.zeros(given, np.float32), result.logprobs])
        column = np.where(mask == 1, result.version, -1).astype(np.int32)
        told: dict[str, Any] = {}
        if result.routed_experts is not None:
            told["routed_experts"] = _whole(unpacked(result.routed_experts), len(ids))
        self._probes.append(FinishedTrial(-1, 0, ids, mask, logprobs, column, None, None, "none", **told))


def _by_segment(told: Sequence[list[NDArray[Any]]], segments: Sequence[Segment], tokens: int) -> NDArray[Any]:
    """Experts of every stored token: each context was told as it was shown, its shared prefix included.

    Args:
        told: rows of each context that turns were sampled in, those of earlier attempts first.
    """
    shown = list(told[-len(segments) :])
    ends = [*(segment.start for segment in segments[1:]), tokens]
    found = []
    for index, (segment, end) in enumerate(zip(segments, ends, strict=True)):
        shared = sum(b - a for a, b in segment.shared)
        rows = np.concatenate(shown[index]) if index < len(shown) else shown[-1][0][:0]
        found.append(_whole(rows, shared + end - segment.start)[shared:])
    return np.concatenate(found)


def _whole(rows: NDArray[Any], tokens: int) -> NDArray[Any]:
    """Experts of every token; those behind the last one fed predict nothing and get any experts, distinct ones."""
    filler = np.broadcast_to(np.arange(rows.shape[2], dtype=rows.dtype), (max(0, tokens - len(rows)), *rows.shape[1:]))
    return np.concatenate([rows[:tokens], filler])
