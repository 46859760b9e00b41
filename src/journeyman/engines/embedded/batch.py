"""The trials that run together: what arrived is prefilled, active rows take a step, finished turns are found."""

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
from journeyman.engines.embedded.sampler import Drawn, draw, draw_filtered
from journeyman.engines.embedded.slots import Slots
from journeyman.engines.embedded.trial import Trial, Turn
from journeyman.engines.errors import EngineError
from journeyman.engines.noise import uniforms

CHUNK = 2048
"""New tokens of one row in one pass at most: attention's scores grow with new tokens x context."""


class Batch:
    """Rows of one cache, decoded together.

    Args:
        decoder: does the arithmetic.
        prefill_tokens: new tokens per prefill pass (at least one row's).

    Attributes:
        reused, prefilled: tokens of context found in the cache, and computed, since the batch was made.
    """

    def __init__(self, decoder: Decoder, prefill_tokens: int) -> None:
        self._decoder, self._prefill_tokens = decoder, min(prefill_tokens, CHUNK)
        self._cache: KVCache = decoder.cache
        self._device = self._cache.data.device
        self.slots = Slots(self._cache)
        self.reused = self.prefilled = 0
        self._turns: dict[str, Turn] = {}
        self._stop_rows: dict[frozenset[int], int] = {}
        self._stop_table = np.zeros((0, decoder.shape.vocab), dtype=bool)

    def begin(self, trial: Trial) -> None:
        """Make a trial active for its turn; ``prefill`` must follow before ``step``."""
        assert trial.turn is not None
        self._turns[trial.name] = trial.turn
        self.slots.begin(trial.name, trial.turn, self._stop_row(trial.turn.request.sampling.stop_ids))

    def _stop_row(self, stop_ids: frozenset[int]) -> int:
        if stop_ids not in self._stop_rows:
            row = np.isin(np.arange(self._decoder.shape.vocab), list(stop_ids))
            self._stop_table = np.concatenate([self._stop_table, row[None]])
            self._stop_rows[stop_ids] = len(self._stop_rows)
        return self._stop_rows[stop_ids]

    @torch.inference_mode()
    def prefill(self, arrived: Sequence[Trial]) -> list[str]:
        """Feed what the cache lacks of each context and sample one token. Returns trials whose turn is over already."""
        slots = self.slots
        rows = np.array([slots.row_of[trial.name] for trial in arrived])
        news = [trial.known()[slots.length[row] :] for row, trial in zip(rows, arrived, strict=True)]
        first: dict[tuple[int, ...], int] = {}
        source = list(range(len(rows)))
        for index, (row, new) in enumerate(zip(rows, news, strict=True)):
            if slots.length[row] == 0:
                source[index] = first.setdefault(tuple(new), index)
        self.reused += int(slots.length[rows].sum())
        hidden = self._feed(rows, news, sorted(set(source)))
        for index, origin in enumerate(source):
            if origin != index:
                self._cache.move(int(rows[origin]), int(rows[index]), len(news[index]))
                self.reused += len(news[index])
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
            self.prefilled += total
            starts = [int(slots.length[rows[index]]) for index in part]
            tokens = [news[index] for index in part]
            while len(tokens[0]) > CHUNK:  # alone in its pass: prefill_tokens let nothing else in
                new = ragged([tokens[0][:CHUNK]], starts, [int(rows[part[0]])], self._device)
                self._decoder.prefill(new)
                tokens, starts = [tokens[0][CHUNK:]], [starts[0] + CHUNK]
            new = ragged(tokens, starts, [int(rows[index]) for index in part], self._device)
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
        uniform = torch.from_numpy(uniforms(slots.key[rows], position + slots.offset[rows]))[:, None].to(self._device)
        drawn = draw(self._decoder.logits(hidden), temperature, uniform)
        ids, logprobs = drawn.tokens.cpu().numpy(), drawn.logprobs.cpu().numpy()
        if not np.isfinite(logprobs).all():
            raise EngineError("the model's logits are not finite: its weights have diverged")
        for index in np.flatnonzero(slots.tells_more[rows]):
            turn = self._turns[cast(str, slots.names[rows[index]])]
            ids[index], logprobs[index] = _tell(turn, drawn, int(index), uniform[index])
        slots.out_ids[rows, position] = ids
        slots.out_logprobs[rows, position] = logprobs
        slots.last[rows] = ids
        slots.position[rows] = position + 1
        over = self._stop_table[slots.stops[rows], ids] | (position + 1 >= slots.limit[rows])
        return [cast(str, slots.names[row]) for row in rows[over]]

    def stopped(self, trial: Trial) -> bool:
        """The last token sampled is one of the turn's stop ids."""
        row = self.slots.row_of[trial.name]
        return bool(self._stop_table[self.slots.stops[row], self.slots.last[row]])

    def position(self, trial: Trial) -> int:
        """Tokens the trial's turn has sampled, in its row."""
        return int(self.slots.position[self.slots.row_of[trial.name]])

    def keep_aside(self, trial: Trial) -> None:
        """Copy what the turn has sampled from its row to the turn."""
        slots, row, turn = self.slots, self.slots.row_of[trial.name], self._turns.pop(trial.name)
        count = int(slots.position[row])
        turn.ids, turn.logprobs = slots.out_ids[row, :count].copy(), slots.out_logprobs[row, :count].copy()


def _tell(turn: Turn, drawn: Drawn, index: int, uniform: Tensor) -> tuple[int, float]:
    """Apply a turn's filters to its row and note kept set and alternatives. Returns the token and its logprob."""
    sampling, scores = turn.request.sampling, drawn.scores[index]
    token, logprob = int(drawn.tokens[index]), float(drawn.logprobs[index])
    kept_ids: Tensor | None = None
    if sampling.is_filtered and sampling.temperature > 0:
        token, logprob, kept_ids, kept = draw_filtered(scores, sampling.top_k, sampling.top_p, uniform)
        turn.kept.append(kept_ids.to(torch.int32).cpu().numpy())
    if sampling.top_logprobs:
        ordered, ids = torch.topk(scores, min(sampling.top_logprobs, len(scores)))
        logprobs = (ordered.double() - drawn.log_totals[index]).float()
        if kept_ids is not None:
            known = min(len(ids), len(kept_ids))
            ids = torch.cat([kept_ids[:known], ids[~torch.isin(ids, kept_ids[:known])]])[: len(ids)]
            logprobs = torch.full_like(logprobs, float("-inf"))
            logprobs[:known] = kept[:known]
        turn.top_ids.append(ids.to(torch.int32).cpu().numpy())
        turn.top_logprobs.append(logprobs.cpu().numpy())
    return token, logprob
