"""The words between engines and whoever drives them, and the protocol every engine keeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Sampling:
    """How one turn is sampled.

    Attributes:
        max_new_tokens: tokens at most, the stop token counted, >= 1.
        temperature: divisor of the logits, >= 0; 0 takes the most probable token.
        stop_ids: ids that end the turn; the one sampled is part of the result.
    """

    max_new_tokens: int
    temperature: float
    stop_ids: frozenset[int]

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens must be >= 1, got {self.max_new_tokens}")
        if not 0 <= self.temperature < math.inf:
            raise ValueError(f"temperature must be finite and >= 0, got {self.temperature}")


@dataclass(frozen=True)
class TurnRequest:
    """The next turn of one trial.

    Attributes:
        trial: names the conversation; its earlier tokens are with the engine already.
        append: ids that follow them, not empty: the prompt on the first turn, else the observation.
        key: 64-bit key of this turn's sampling noise; noise depends on (key, position in the turn) only.
        sampling: how to sample.
    """

    trial: str
    append: Sequence[int]
    key: int
    sampling: Sampling


@dataclass(frozen=True)
class TurnResult:
    """One sampled turn.

    Attributes:
        trial: as requested.
        ids: exactly the sampled ids, a sampled stop id included.
        logprobs: float32 natural log of each id's probability under the distribution sampled (for temperature 0: under
            the model's own, temperature 1).
        finish: ``stop`` when the last id is a stop id, ``length`` when max_new_tokens were sampled without one.
        version: of the weights that sampled it.
    """

    trial: str
    ids: list[int]
    logprobs: npt.NDArray[np.float32]
    finish: Literal["stop", "length"]
    version: int


Respond = Callable[[TurnResult], TurnRequest | None]
"""Answers a turn with the same trial's next request, or None when the trial is over."""


class Engine(Protocol):
    """A policy that continues conversations token by token.

    Every method raises EngineError for what it cannot do; a failed call releases the trials it was given.
    """

    @property
    def version(self) -> int:
        """Version of the weights now serving."""
        ...

    @property
    def max_len(self) -> int:
        """Tokens of context one trial may hold, sampled ones included."""
        ...

    def converse(self, requests: Sequence[TurnRequest], respond: Respond) -> None:
        """Drive many trials to their ends; ``respond`` is called once per finished turn, in a deterministic order."""
        ...

    def generate(self, requests: Sequence[TurnRequest]) -> list[TurnResult]:
        """One turn for each request, results in the order of the requests; state is kept until ``release``."""
        ...

    def release(self, trial: str) -> None:
        """Forget a trial. Unknown trials are ignored."""
        ...

    def update_weights(self, state: Mapping[str, torch.Tensor], version: int) -> None:
        """Serve new weights from the next turn on. On failure the old ones keep serving under the old version."""
        ...

    def close(self) -> None:
        """Give all memory back. Idempotent."""
        ...
