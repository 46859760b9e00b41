"""The trials that run together: what arrived is prefilled, active rows take a step, finished turns are handed out."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from journeyman.engines.embedded.cache import KVCache
from journeyman.engines.embedded.decoder import Decoder
from journeyman.engines.embedded.ragged import ragged
from journeyman.engines.embedded.sampler import draw
from journeyman.engines.embedded.slots import Slots
from journeyman.engines.errors import EngineError
from journeyman.engines.noise import uniforms
from journeyman.engines.protocol import TurnRequest, TurnResult


class Batch:
    """Rows of one cache, decoded together.

    Args:
        decoder: does the arithmetic.
        prefill_tokens: new tokens per prefill pass (at least one row's).
    """

    def __init__(self, decoder: Decoder, prefill_tokens: int) -> None:
        self._decoder, self._prefill_tokens = decoder, prefill_tokens
        self._cache: KVCache = decoder.cache
        self._device = self._cache.data.device
        self.slots = Slots(self._cache)
        self._stop_rows: dict[frozenset[int], int] = {}
        self._stop_table = np.zeros((0, decoder.shape.vocab), dtype=bool)

    def begin(self, request: TurnRequest) -> None:
        """Make the request's trial active for a new turn; ``prefill`` must follow before ``step``."""
        self.slots.begin(request.trial, request.key, request.sampling, self._stop_row(request.sampling.stop_ids))

    def _stop_row(self, stop_ids: frozenset[int]) -> int:
        if stop_ids not in self._stop_rows:
            row = np.isin(np.arange(self._decoder.shape.vocab), list(stop_ids))
            self._stop_table = np.concatenate([self._stop_table, row[None]])
            self._stop_rows[stop_ids] = len(self._stop_rows)
        return self._stop_rows[stop_ids]

    @torch.inference_mode()
    def prefill(self, arrived: Sequence[TurnRequest]) -> list[str]:
        """Feed what arrived and sample each row's first token. Returns trials whose turn is over already."""
        slots = self.slots
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
        slots, width = self.slots, self._decoder.shape.hidden
        hidden = torch.empty(len(rows), width, dtype=self._cache.data.dtype, device=self._device)
        order = deque(sorted(chosen, key=lambda index: (int(slots.length[rows[index]]) > 0, len(news[index]), index)))
        while order:
            part = [order.popleft()]
            total = len(news[part[0]])
            while order and total + len(news[order[0]]) <= self._prefill_tokens:
                total += len(news[order[0]])
                part.append(order.popleft())
            starts = [int(slots.length[rows[index]]) for index in part]
            new = ragged([news[index] for index in part], starts, [int(rows[index]) for index in part], self._device)
            hidden[torch.tensor(part, device=self._device)] = self._decoder.prefill(new)
        return hidden

    @torch.inference_mode()
    def step(self) -> list[str]:
        """Decode one token for every active row. Returns the trials whose turn ended, in row order."""
        slots, count = self.slots, self.slots.active
        tokens = torch.from_numpy(slots.last[:count]).to(self._device)
        positions = torch.from_numpy(slots.length[:count]).to(self._device)
        hidden = self._decoder.step(tokens, positions, int(slots.length[:count].max()) + 1)
        slots.length[:count] += 1
        return self._sample(hidden, np.arange(count))

    def _sample(self, hidden: Tensor, rows: npt.NDArray[np.int64]) -> list[str]:
        slots = self.slots
        position, warmth = slots.position[rows], slots.temperature[rows]
        temperature = None if (warmth == 1).all() else torch.from_numpy(warmth)[:, None].to(self._device)
        uniform = torch.from_numpy(uniforms(slots.key[rows], position))[:, None].to(self._device)
        token, logprob = draw(self._decoder.logits(hidden), temperature, uniform)
        ids, logprobs = token.cpu().numpy(), logprob.cpu().numpy()
        if not np.isfinite(logprobs).all():
            raise EngineError("the model's logits are not finite: its weights have diverged")
        slots.out_ids[rows, position] = ids
        slots.out_logprobs[rows, position] = logprobs
        slots.last[rows] = ids
        slots.position[rows] = position + 1
        over = self._stop_table[slots.stops[rows], ids] | (position + 1 >= slots.limit[rows])
        return [cast(str, slots.names[row]) for row in rows[over]]

    def result(self, trial: str, version: int) -> TurnResult:
        """The finished turn of a trial."""
        slots, row = self.slots, self.slots.row_of[trial]
        count = int(slots.position[row])
        ids = slots.out_ids[row, :count].tolist()
        stopped = bool(self._stop_table[slots.stops[row], ids[-1]])
        logprobs = slots.out_logprobs[row, :count].copy()
        return TurnResult(trial, ids, logprobs, "stop" if stopped else "length", version)
