"""Continuous batching over the decoder: rows join, answer, are answered and leave while the others go on.

Each pass of the loop first prefills whatever arrived (new trials and next turns, identical opening prompts once), then
decodes one token for every active row. What runs together depends on the requests and the answers only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from journeyman.engines.embedded.cache import KVCache
from journeyman.engines.embedded.checkpoint import read_directory
from journeyman.engines.embedded.decoder import Decoder, ragged
from journeyman.engines.embedded.sampler import draw
from journeyman.engines.embedded.shape import read_shape
from journeyman.engines.embedded.slots import Slots
from journeyman.engines.embedded.weights import Weights
from journeyman.engines.errors import ContextOverflow, EngineError
from journeyman.engines.noise import uniforms
from journeyman.engines.protocol import Respond, TurnRequest, TurnResult
from journeyman.engines.scripted import check_distinct, check_same_trial


class EmbeddedEngine:
    """Decodes many trials at once in this process.

    Args:
        config: the model's ``config.json`` as a mapping.
        state: its Hugging Face state dict.
        rows: trials that hold a cache row at one time; further ones wait.
        max_len: tokens of context per trial. The cache takes at most
            ``layers * 2 * rows * kv_heads * max_len * head_dim`` elements.
        version: of the first weights.
        dtype, device: of weights and cache. Norms, rotations, softmax and sampling are float32 or better throughout.
        prefill_tokens: new tokens per prefill pass, a bound on its scratch memory.

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
        prefill_tokens: int = 2048,
    ) -> None:
        self._device, self._prefill_tokens = torch.device(device), prefill_tokens
        self.shape = read_shape(config)
        self._weights = Weights(self.shape, dtype, self._device)
        self._weights.load(state)
        self._cache = KVCache(self.shape, rows, max_len, dtype, self._device)
        self._decoder = Decoder(self._weights, self._cache, max_len)
        self._slots = Slots(self._cache)
        self._stop_rows: dict[frozenset[int], int] = {}
        self._stop_table = np.zeros((0, self.shape.vocab), dtype=bool)
        self._version, self._max_len = version, max_len
        self._busy = False

    @classmethod
    def from_directory(cls, path: Path, **options: Any) -> EmbeddedEngine:
        """Serve a Hugging Face model directory (``config.json`` and safetensors). Options as for the class.

        Raises:
            InputError: the directory is incomplete, broken or of another architecture.
        """
        config, state = read_directory(path)
        return cls(config, state, **options)

    @property
    def version(self) -> int:
        return self._version

    @property
    def max_len(self) -> int:
        return self._max_len

    def converse(self, requests: Sequence[TurnRequest], respond: Respond) -> None:
        self._run(requests, respond, self._slots.release)

    def generate(self, requests: Sequence[TurnRequest]) -> list[TurnResult]:
        new = sum(request.trial not in self._slots.row_of for request in requests)
        free = self._cache.rows - self._slots.used
        if new > free:
            raise EngineError(f"{new} new trials need {new} cache rows and {free} of {self._cache.rows} are free")
        results: dict[str, TurnResult] = {}
        self._run(requests, lambda result: results.__setitem__(result.trial, result), self._slots.park)
        return [results[request.trial] for request in requests]

    def release(self, trial: str) -> None:
        self._refuse_inside_a_call("release")
        self._slots.release(trial)

    def update_weights(self, state: Mapping[str, Tensor], version: int) -> None:
        """Serve new weights from the next turn on.

        Raises:
            EngineError: the state does not fit, or trials hold keys and values of the old weights (release them).
        """
        self._refuse_inside_a_call("update_weights")
        if self._slots.used:
            raise EngineError(f"{self._slots.used} trials hold a cache of version {self._version}; release them first")
        self._weights.load(state)
        self._version = version

    @torch.inference_mode()
    def forward_logprobs(
        self, sequences: Sequence[Sequence[int]], *, temperature: float = 1.0
    ) -> list[npt.NDArray[np.float32]]:
        """Logprob of every token given those before it, 0 for the first: what a trainer's forward would say.

        Needs no cache row, so it serves as the fixed probe before and after an update.
        """
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
        self.__dict__.pop("_decoder", None)
        self.__dict__.pop("_cache", None)
        self.__dict__.pop("_weights", None)
        self.__dict__.pop("_slots", None)

    def _refuse_inside_a_call(self, what: str) -> None:
        if self._busy:
            raise EngineError(f"{what} inside a running call or after close")

    def _run(self, requests: Sequence[TurnRequest], respond: Respond, leave: Callable[[str], None]) -> None:
        self._refuse_inside_a_call("a second call")
        check_distinct(requests)
        for request in requests:
            self._check(request)
        self._busy = True
        mine = {request.trial for request in requests}
        try:
            self._loop(deque(requests), respond, leave)
        except BaseException:
            for trial in mine:
                self._slots.release(trial)
            raise
        finally:
            self._busy = False

    def _loop(self, waiting: deque[TurnRequest], respond: Respond, leave: Callable[[str], None]) -> None:
        slots, arrived = self._slots, list[TurnRequest]()
        while True:
            while waiting and (slots.has_free or waiting[0].trial in slots.row_of):
                arrived.append(waiting.popleft())
                self._begin(arrived[-1])
            if not slots.active:
                return
            ended = self._prefill(arrived) if arrived else []
            arrived = []
            ended = ended or self._step()
            for trial in ended:
                result = self._result(trial)
                following = respond(result)
                if following is None:
                    leave(trial)
                    continue
                check_same_trial(result, following)
                self._check(following)
                self._begin(following)
                arrived.append(following)

    def _check(self, request: TurnRequest) -> None:
        if not request.append:
            raise EngineError(f"trial {request.trial!r} appends no token")
        if min(request.append) < 0 or max(request.append) >= self.shape.vocab:
            raise EngineError(f"trial {request.trial!r} appends an id outside the vocabulary of {self.shape.vocab}")
        needed = self._slots.context_of(request.trial) + len(request.append) + request.sampling.max_new_tokens
        if needed > self._max_len:
            raise ContextOverflow(request.trial, needed, self._max_len)

    def _begin(self, request: TurnRequest) -> None:
        self._slots.begin(request.trial, request.key, request.sampling, self._stop_row(request.sampling.stop_ids))

    def _stop_row(self, stop_ids: frozenset[int]) -> int:
        if stop_ids not in self._stop_rows:
            row = np.isin(np.arange(self.shape.vocab), list(stop_ids))
            self._stop_table = np.concatenate([self._stop_table, row[None]])
            self._stop_rows[stop_ids] = len(self._stop_rows)
        return self._stop_rows[stop_ids]

    @torch.inference_mode()
    def _prefill(self, arrived: Sequence[TurnRequest]) -> list[str]:
        """Feed what arrived and sample each row's first token. Returns trials whose turn is over already."""
        slots = self._slots
        rows = np.array([slots.row_of[request.trial] for request in arrived])
        news = [
            [*([int(slots.last[row])] if slots.last[row] >= 0 else []), *request.append]
            for row, request in zip(rows, arrived, strict=True)
        ]
        first: dict[tuple[int, ...], int] = {}
        source = list(range(len(rows)))
        for index, (row, new) in enumerate(zip(rows, news, strict=True)):
            if slots.length[row] == 0:
                source[index] = first.setdefault(tuple(new), index)
        hidden = self._feed(rows, news, sorted(set(source)))
        for index, origin in enumerate(source):
            if origin != index:
                self._cache.move(int(rows[origin]), int(rows[index]), len(news[index]))
        slots.length[rows] += [len(new) for new in news]
        return self._sample(hidden.index_select(0, torch.tensor(source, device=self._device)), rows)

    def _feed(self, rows: npt.NDArray[np.int64], news: list[list[int]], chosen: list[int]) -> Tensor:
        """Prefill the chosen rows, alike lengths together. Returns the last hidden state at each row's index."""
        slots, width = self._slots, self.shape.hidden
        hidden = torch.empty(len(rows), width, dtype=self._cache.data.dtype, device=self._device)
        order = deque(sorted(chosen, key=lambda index: (int(slots.length[rows[index]]) > 0, len(news[index]), index)))
        while order:
            part, total = [order.popleft()], 0
            total = len(news[part[0]])
            while order and total + len(news[order[0]]) <= self._prefill_tokens:
                total += len(news[order[0]])
                part.append(order.popleft())
            starts = [int(slots.length[rows[index]]) for index in part]
            new = ragged([news[index] for index in part], starts, [int(rows[index]) for index in part], self._device)
            hidden[torch.tensor(part, device=self._device)] = self._decoder.prefill(new)
        return hidden

    @torch.inference_mode()
    def _step(self) -> list[str]:
        """Decode one token for every active row. Returns the trials whose turn ended, in row order."""
        slots, count = self._slots, self._slots.active
        tokens = torch.from_numpy(slots.last[:count]).to(self._device)
        positions = torch.from_numpy(slots.length[:count]).to(self._device)
        hidden = self._decoder.step(tokens, positions, int(slots.length[:count].max()) + 1)
        slots.length[:count] += 1
        return self._sample(hidden, np.arange(count))

    def _sample(self, hidden: Tensor, rows: npt.NDArray[np.int64]) -> list[str]:
        slots = self._slots
        position, warmth = slots.position[rows], slots.temperature[rows]
        temperature = None if (warmth == 1).all() else torch.from_numpy(warmth)[:, None].to(self._device)
        uniform = torch.from_numpy(uniforms(slots.key[rows], position))[:, None].to(self._device)
        token, logprob = draw(self._decoder.logits(hidden), temperature, uniform)
        ids = token.cpu().numpy()
        slots.out_ids[rows, position] = ids
        slots.out_logprobs[rows, position] = logprob.cpu().numpy()
        slots.last[rows] = ids
        slots.position[rows] = position + 1
        over = self._stop_table[slots.stops[rows], ids] | (position + 1 >= slots.limit[rows])
        return [cast(str, slots.names[row]) for row in rows[over]]

    def _result(self, trial: str) -> TurnResult:
        slots, row = self._slots, self._slots.row_of[trial]
        count = int(slots.position[row])
        ids = slots.out_ids[row, :count].tolist()
        stopped = bool(self._stop_table[slots.stops[row], ids[-1]])
        logprobs = slots.out_logprobs[row, :count].copy()
        return TurnResult(trial, ids, logprobs, "stop" if stopped else "length", self._version)
