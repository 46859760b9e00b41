"""Continuous batching over the decoder: rows join, answer, are answered and leave while the others go on.

Each pass of the loop first prefills whatever arrived (new trials and next turns, identical opening prompts once), then
decodes one token for every active row. What runs together depends on the requests and the answers only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from journeyman.engines.drive import check_distinct, check_same_trial
from journeyman.engines.embedded.batch import Batch
from journeyman.engines.embedded.cache import KVCache
from journeyman.engines.embedded.checkpoint import read_directory
from journeyman.engines.embedded.decoder import Decoder
from journeyman.engines.embedded.ragged import ragged
from journeyman.engines.embedded.shape import read_shape
from journeyman.engines.embedded.weights import Weights
from journeyman.engines.errors import ContextOverflow, EngineError
from journeyman.engines.protocol import Respond, TurnRequest, TurnResult


class EmbeddedEngine:
    """Decodes many trials at once in this process.

    The same requests and answers give the same bits, in any process with the same number of torch threads. Another
    batch composition or thread count rounds differently (about 1e-6 in a logprob), as matrix products do.

    Args:
        config: the model's ``config.json`` as a mapping.
        state: its Hugging Face state dict.
        rows: trials that hold a cache row at one time; further ones wait.
        max_len: tokens of context per trial. The cache takes at most
            ``layers * 2 * rows * kv_heads * max_len * head_dim`` elements.
        version: of the first weights.
        dtype, device: of weights and cache. Norms, rotations, softmax and sampling are float32 or better throughout.
        prefill_tokens: new tokens per prefill pass (at least one row's); small passes stay in the processor's cache.

    Raises:
        InputError: a configuration that is not decoded here.
        EngineError: weights that do not fit the configuration.
    """

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
    ) -> None:
        self._device = torch.device(device)
        self.shape = read_shape(config)
        self._weights = Weights(self.shape, dtype, self._device)
        self._weights.load(state)
        cache = KVCache(self.shape, rows, max_len, dtype, self._device)
        self._decoder = Decoder(self._weights, cache, max_len)
        self._batch = Batch(self._decoder, prefill_tokens)
        self._rows, self._max_len, self._version = rows, max_len, version
        self._busy = False

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

    def converse(self, requests: Sequence[TurnRequest], respond: Respond) -> None:
        self._refuse_inside_a_call("converse")
        self._run(requests, respond, self._batch.slots.release)

    def generate(self, requests: Sequence[TurnRequest]) -> list[TurnResult]:
        self._refuse_inside_a_call("generate")
        new = sum(request.trial not in self._batch.slots.row_of for request in requests)
        free = self._rows - self._batch.slots.used
        if new > free:
            raise EngineError(f"{new} new trials need {new} cache rows and {free} of {self._rows} are free")
        results: dict[str, TurnResult] = {}
        self._run(requests, lambda result: results.__setitem__(result.trial, result), self._batch.slots.park)
        return [results[request.trial] for request in requests]

    def release(self, trial: str) -> None:
        self._refuse_inside_a_call("release")
        self._batch.slots.release(trial)

    def update_weights(self, state: Mapping[str, Tensor], version: int) -> None:
        """Serve new weights from the next turn on.

        Raises:
            EngineError: the state does not fit, or trials hold keys and values of the old weights (release them).
        """
        self._refuse_inside_a_call("update_weights")
        if self._batch.slots.used:
            raise EngineError(
                f"{self._batch.slots.used} trials hold a cache of version {self._version}; release them first"
            )
        self._weights.load(state)
        self._version = version

    @torch.inference_mode()
    def forward_logprobs(
        self, sequences: Sequence[Sequence[int]], *, temperature: float = 1.0
    ) -> list[npt.NDArray[np.float32]]:
        """Logprob of every token given those before it, 0 for the first: what a trainer's forward would say.

        Needs no cache row, so it serves as the fixed probe before and after an update.
        """
        self._refuse_inside_a_call("forward_logprobs")
        results: list[npt.NDArray[np.float32]] = []
        for ids in sequences:
            hidden = self._decoder.prefill(ragged([list(ids)], [0], None, self._device), every_position=True)
            values = np.zeros(len(ids), dtype=np.float32)
            for at in range(0, len(ids) - 1, 256):
                logits = self._decoder.logits(hidden[at : min(at + 256, len(ids) - 1)]) / temperature
                chosen = torch.tensor(ids[at + 1 : at + 257], device=self._device)[:, None]
                values[at + 1 : at + 257] = torch.log_softmax(logits, -1).gather(1, chosen)[:, 0].cpu().numpy()
            results.append(values)
        return results

    def close(self) -> None:
        """Give the cache and the weights back. Idempotent; the engine answers nothing afterwards."""
        self._busy = True
        for name in ("_batch", "_decoder", "_weights"):
            self.__dict__.pop(name, None)

    def _refuse_inside_a_call(self, what: str) -> None:
        if self._busy:
            raise EngineError(f"{what} inside a running call or after close")

    def _run(self, requests: Sequence[TurnRequest], respond: Respond, leave: Callable[[str], None]) -> None:
        check_distinct(requests)
        for request in requests:
            self._check(request)
        self._busy = True
        mine = {request.trial for request in requests}
        try:
            self._loop(deque(requests), respond, leave)
        except BaseException:
            for trial in mine:
                self._batch.slots.release(trial)
            raise
        finally:
            self._busy = False

    def _loop(self, waiting: deque[TurnRequest], respond: Respond, leave: Callable[[str], None]) -> None:
        batch, slots, arrived = self._batch, self._batch.slots, list[TurnRequest]()
        while True:
            while waiting and (slots.has_free or waiting[0].trial in slots.row_of):
                arrived.append(waiting.popleft())
                batch.begin(arrived[-1])
            if not slots.active:
                if waiting:
                    raise EngineError(f"all {self._rows} cache rows are held by trials of earlier calls; release some")
                return
            ended = batch.prefill(arrived) if arrived else []
            arrived = []
            ended = ended or batch.step()
            for trial in ended:
                result = batch.result(trial, self._version)
                following = respond(result)
                if following is None:
                    leave(trial)
                    continue
                check_same_trial(result, following)
                self._check(following)
                batch.begin(following)
                arrived.append(following)

    def _check(self, request: TurnRequest) -> None:
        if not request.append:
            raise EngineError(f"trial {request.trial!r} appends no token")
        if min(request.append) < 0 or max(request.append) >= self.shape.vocab:
            raise EngineError(f"trial {request.trial!r} appends an id outside the vocabulary of {self.shape.vocab}")
        needed = self._batch.slots.context_of(request.trial) + len(request.append) + request.sampling.max_new_tokens
        if needed > self._max_len:
            raise ContextOverflow(request.trial, needed, self._max_len)
