"""Continuous batching over the decoder, step by step: rows join, answer and leave at any token.

Each step first prefills whatever arrived (new trials and next turns, identical opening prompts once), then decodes one
token for every running row. What runs together depends on the requests and the order of the calls only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from journeyman.deadline import Deadline
from journeyman.engines import drive
from journeyman.engines.checks import check_open, check_request
from journeyman.engines.embedded.adapter import read_adapter
from journeyman.engines.embedded.batch import Batch
from journeyman.engines.embedded.cache import KVCache
from journeyman.engines.embedded.checkpoint import read_directory, read_state
from journeyman.engines.embedded.decoder import Decoder
from journeyman.engines.embedded.probe import forward_logprobs
from journeyman.engines.embedded.roster import Roster
from journeyman.engines.embedded.shape import read_shape
from journeyman.engines.embedded.trial import Trial
from journeyman.engines.embedded.weights import Weights, computes
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
from journeyman.errors import InputError


class EmbeddedEngine:
    """Decodes many trials at once in this process.

    The same calls give the same bits, in any process with the same number of torch threads. Another batch composition
    or thread count rounds differently (about 1e-6 in a logprob), as matrix products do.

    Args:
        config: the model's ``config.json`` as a mapping.
        state: its Hugging Face state dict.
        rows: trials that hold a cache row at one time; further ones wait, and trials between two turns give theirs up.
        max_len: tokens of context per trial. The cache takes at most
            ``layers * 2 * rows * kv_heads * max_len * head_dim`` elements.
        version: of the first weights.
        dtype, device: of weights and cache. Norms, rotations, softmax and sampling are float32 or better throughout.
            bfloat16 on a processor without its arithmetic: the weights are rounded to it, everything else is float32,
            which is several times as fast there and rounds less.
        prefill_tokens: new tokens per prefill pass (at least one row's); small passes stay in the processor's cache.
        kv_bytes: bound of the cache's memory; ``rows`` is lowered until the rows fit.
        kv_tokens: bound of the tokens that all rows together hold, >= max_len; beyond it trials are preempted and their
            contexts computed again.
        kv_on_update: what new weights do to keys and values of the old ones, see ``Engine.update_weights``.

    Raises:
        InputError: a configuration that is not decoded here, or a bound that holds no trial.
        EngineError: weights that do not fit the configuration.
    """

    capabilities = frozenset(
        {
            "inflight_update",
            "spans",
            "pause_wait",
            "pause_keep",
            "seed",
            "top_logprobs",
            "kept_set",
            "lora",
            "kv_recompute",
            "cancel",
        }
    )

    def __init__(
        self,
        config: Mapping[str, Any],
        state: Mapping[str, Tensor],
        *,
        rows: int = 256,
        max_len: int = 640,
        version: int = 0,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
        prefill_tokens: int = 512,
        kv_bytes: int | None = None,
        kv_tokens: int | None = None,
        kv_on_update: KvMode = "keep",
    ) -> None:
        self._device = torch.device(device)
        self.shape = read_shape(config)
        rounded, dtype = (None, dtype) if computes(dtype, self._device) else (dtype, torch.float32)
        if kv_bytes is not None:
            row_bytes = self.shape.kv_elements_per_token * max_len * dtype.itemsize
            rows = min(rows, kv_bytes // row_bytes)
            _require_one(rows, "kv_bytes", kv_bytes, row_bytes)
        if kv_tokens is not None:
            _require_one(kv_tokens // max_len, "kv_tokens", kv_tokens, max_len)
        self._weights = Weights(self.shape, dtype, self._device, rounded=rounded)
        self._weights.load(state)
        cache = KVCache(self.shape, rows, max_len, dtype, self._device)
        self._decoder = Decoder(self._weights, cache, max_len)
        self._batch = Batch(self._decoder, prefill_tokens)
        self._capacity = min(kv_tokens or rows * max_len, rows * max_len)
        self._trials: dict[str, Trial] = {}
        self._roster = Roster(self._batch, self._trials, self._capacity)
        self._max_len, self._version, self._kv_on_update = max_len, version, kv_on_update
        self._paused = self._closed = self._driven = False
        self._steps = 0

    @classmethod
    def from_directory(
        cls, path: Path, *, expected: Mapping[str, object] | None = None, **options: Any
    ) -> EmbeddedEngine:
        """Serve a Hugging Face model directory (``config.json`` and safetensors). Options as for the class.

        Args:
            path: the directory.
            expected: fields of ``config.json`` and the values that they must have.

        Raises:
            InputError: the directory is incomplete, broken, of another architecture or not of the expected shape.
        """
        config, state = read_directory(path, expected=expected)
        return cls(config, state, **options)

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
        trial = self._trials.get(request.trial) or Trial(request.trial)
        check_request(
            request,
            context=len(trial.context),
            max_len=self._max_len,
            under_way=trial.turn is not None,
            resumable=trial.was_aborted and bool(trial.context),
            capabilities=self.capabilities,
            vocab=self.shape.vocab,
        )
        self._trials[request.trial] = trial
        trial.begin(request, self._version)
        self._roster.put(trial, at_once=not self._paused)

    def step(self, deadline_s: float = 60.0) -> list[TurnResult]:
        """One pass: a prefill of what arrived, and one token for every running row unless the prefill ended a turn."""
        check_open(self._closed, "step")
        if self._paused:
            return []
        self._roster.admit()
        return self._advance()

    def _advance(self) -> list[TurnResult]:
        if not self._batch.slots.active:
            return []
        self._steps += 1
        arrived = self._roster.take_arrived()
        ended = self._batch.prefill(arrived) if arrived else []
        if not ended:
            self._roster.make_room()
            ended = self._batch.step()
        results = []
        for trial in [self._trials[name] for name in ended]:
            stopped = self._batch.stopped(trial)
            self._batch.keep_aside(trial)
            results.append(trial.end("stop" if stopped else "length", self._steps))
            self._roster.linger(trial)
        return results

    def cancel(self, trial: str) -> TurnResult | None:
        check_open(self._closed, "cancel")
        known = self._trials.get(trial)
        if known is None or known.turn is None:
            return None
        self._roster.leave(known)
        return known.end("abort", self._steps)

    def pause(self, mode: PauseMode, *, deadline_s: float = 60.0) -> list[TurnResult]:
        """As the protocol says. A ``wait`` that passes its deadline freezes what still runs, as ``keep`` does."""
        check_open(self._closed, "pause")
        ended: list[TurnResult] = []
        if self._paused:
            return ended
        self._roster.withdraw()
        if mode == "abort":
            under_way = [*self._roster.running(), *self._roster.waiting]
            ended = [result for trial in under_way if (result := self.cancel(trial.name))]
        elif mode == "wait":
            deadline = Deadline.after(deadline_s, "a pause that waits")
            self._roster.admit(started_only=True)
            while self._batch.slots.active and not deadline.has_passed:
                ended += self._advance()
                self._roster.admit(started_only=True)
        self._paused = True
        return ended

    def resume(self) -> None:
        self._paused = False

    def update_weights(
        self, source: WeightSource, version: int, *, kv: KvMode | None = None, deadline_s: float = 60.0
    ) -> None:
        """As the protocol says; the present adapter is dropped. Every tensor is checked before the first is copied."""
        check_open(self._closed, "update_weights")
        self._check_version(version)
        deadline = Deadline.after(deadline_s, f"the push of version {version}")
        try:
            state = read_state(source) if isinstance(source, Path) else source
        except InputError as error:
            raise EngineError(f"version {version} was not pushed, {self._version} keeps serving: {error}") from error
        deadline.check()
        self._weights.load(state)
        self._adopt(version, kv)

    def load_adapter(self, path: Path | None, version: int, *, kv: KvMode | None = None) -> None:
        """Serve a LoRA adapter (a directory that peft saved) on the present base weights in the place of the present
        adapter; None takes it away. Merged, so decoding costs the same.

        Raises:
            EngineError: it does not fit; the old weights keep serving under the old version.
        """
        check_open(self._closed, "load_adapter")
        self._check_version(version)
        try:
            adapter = None if path is None else read_adapter(path)
        except InputError as error:
            raise EngineError(f"version {version} was not loaded, {self._version} keeps serving: {error}") from error
        self._weights.adapt(adapter)
        self._adopt(version, kv)

    def _adopt(self, version: int, kv: KvMode | None) -> None:
        """New weights are in place: stamp turns under way, and drop keys and values if they are not to be kept."""
        self._version = version
        for trial in self._trials.values():
            if trial.turn is not None:
                trial.turn.mark(version, self._sampled(trial))
        if (kv or self._kv_on_update) == "recompute":
            self._roster.drop_cache()

    def usage(self) -> KvUsage:
        check_open(self._closed, "usage")
        batch, slots = self._batch, self._batch.slots
        held = int(slots.length[: slots.used].sum())
        return KvUsage(held, self._capacity, batch.reused, batch.prefilled, self._roster.preemptions)

    def converse(self, requests: Sequence[TurnRequest], respond: Respond) -> None:
        with self._driver("converse"):
            drive.converse(self, requests, respond)

    def generate(self, requests: Sequence[TurnRequest]) -> list[TurnResult]:
        with self._driver("generate"):
            return drive.generate(self, requests)

    def release(self, trial: str) -> None:
        check_open(self._closed, "release")
        known = self._trials.pop(trial, None)
        if known is not None:
            if known.turn is not None:
                self._roster.leave(known)
            self._roster.forget(trial)

    def forward_logprobs(
        self, sequences: Sequence[Sequence[int]], *, temperature: float = 1.0
    ) -> list[npt.NDArray[np.float32]]:
        """Logprob of every token given those before it, 0 for the first: what a trainer's forward would say.

        Needs no cache row, so it serves as the fixed probe before and after an update.
        """
        check_open(self._closed, "forward_logprobs")
        return forward_logprobs(self._decoder, sequences, temperature)

    def close(self) -> None:
        """Give the cache and the weights back. Idempotent; the engine answers nothing afterwards."""
        self._closed = True
        for name in ("_roster", "_batch", "_decoder", "_weights", "_trials"):
            self.__dict__.pop(name, None)

    @contextmanager
    def _driver(self, what: str) -> Iterator[None]:
        check_open(self._closed, what)
        if self._driven:
            raise EngineError(f"{what} inside a running call")
        self._driven = True
        try:
            yield
        finally:
            self._driven = False

    def _sampled(self, trial: Trial) -> int:
        """Tokens that the trial's turn under way has sampled."""
        if trial.turn is None:
            return 0
        return self._batch.position(trial) if self._roster.is_running(trial) else len(trial.turn.ids)

    def _check_version(self, version: int) -> None:
        if version < self._version and any(self._sampled(trial) for trial in self._trials.values()):
            raise EngineError(f"version {version} under turns that version {self._version} has begun to sample")


def _require_one(count: int, name: str, given: int, needed: int) -> None:
    if count < 1:
        raise InputError(name, f"{given} holds no trial of max_len", allowed=f">= {needed}", hint="lower max_len")
