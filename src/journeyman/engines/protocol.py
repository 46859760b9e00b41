"""The words between engines and whoever drives them, and the protocol every engine keeps.

An engine is driven in steps by one owner thread: ``submit`` hands a turn in, ``step`` advances and returns the turns
that ended, ``update_weights`` and ``pause`` may come between any two steps. ``drive.converse`` and ``drive.generate``
stand on these and are the same for every engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch

PauseMode = Literal["keep", "wait", "abort"]
KvMode = Literal["keep", "recompute"]
CAPABILITIES = frozenset(
    {
        "inflight_update",  # update_weights while turns are under way; none is lost
        "spans",  # the weight version of every token
        "pause_wait",
        "pause_keep",
        "seed",  # equal requests give equal ids
        "top_logprobs",
        "kept_set",  # what top-p and top-k left to choose from, per token
        "routed_experts",
        "lora",  # load_adapter
        "kv_recompute",  # an update can drop keys and values of the old weights
        "cancel",
        "text_only",  # no ids and no logprobs: for evaluation, never for training
    }
)
"""Every word that ``Engine.capabilities`` may hold; a test skips by word what an engine does not claim."""


@dataclass(frozen=True)
class Sampling:
    """How one turn is sampled.

    Attributes:
        max_new_tokens: tokens at most, the stop token counted, >= 1.
        temperature: divisor of the logits, >= 0; 0 takes the most probable token.
        stop_ids: ids that end the turn; the one sampled is part of the result.
        top_p: after the temperature, keep the fewest most probable tokens whose probabilities sum to at least this;
            in (0, 1], 1 keeps all.
        top_k: after the temperature, keep the k most probable tokens; 0 keeps all. Applied before ``top_p``.
        top_logprobs: also report the logprobs of that many most probable tokens at each position.
        routed_experts: also report which experts of a mixture of experts each token was routed to.
    """

    max_new_tokens: int
    temperature: float
    stop_ids: frozenset[int]
    top_p: float = 1.0
    top_k: int = 0
    top_logprobs: int = 0
    routed_experts: bool = False

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens must be >= 1, got {self.max_new_tokens}")
        if not 0 <= self.temperature < math.inf:
            raise ValueError(f"temperature must be finite and >= 0, got {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be in (0, 1], got {self.top_p}")
        if self.top_k < 0:
            raise ValueError(f"top_k must be >= 0 (0 keeps every token), got {self.top_k}")
        if self.top_logprobs < 0:
            raise ValueError(f"top_logprobs must be >= 0, got {self.top_logprobs}")

    @property
    def is_filtered(self) -> bool:
        """Some tokens may be left out of the distribution sampled."""
        return self.top_p < 1 or self.top_k > 0


@dataclass(frozen=True)
class TurnRequest:
    """The next turn of one trial.

    Attributes:
        trial: names the conversation; its earlier tokens are with the engine already.
        append: ids that follow them: the prompt on the first turn, else the observation. Empty only to go on with a
            turn that was aborted.
        key: 64-bit key of this turn's sampling noise; noise depends on (key, position in the turn) only.
        sampling: how to sample.
        offset: position in the turn of the first token to sample: 0, or how many ids of an aborted turn are kept.
    """

    trial: str
    append: Sequence[int]
    key: int
    sampling: Sampling
    offset: int = 0


@dataclass(frozen=True)
class WeightSpan:
    """Output tokens ``[start, end)`` of a turn were sampled by the weights of one version."""

    version: int
    start: int
    end: int


@dataclass(frozen=True)
class TopLogprobs:
    """The most probable tokens at each position of a turn, most probable first.

    Attributes:
        ids: int32 [n, k].
        logprobs: float32 [n, k], of the distribution sampled; -inf for what a filter left out.
    """

    ids: npt.NDArray[np.int32]
    logprobs: npt.NDArray[np.float32]


@dataclass(frozen=True)
class KeptSets:
    """What top-k and top-p left to choose from at each position; a trainer renormalises over these ids.

    Attributes:
        ids: int32 [m], the sets one after the other, most probable first within each.
        starts: int64 [n + 1]; position t kept ``ids[starts[t]:starts[t + 1]]``. An empty set means: every token.
    """

    ids: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]


@dataclass(frozen=True)
class TurnResult:
    """One sampled turn.

    Attributes:
        trial: as requested.
        ids: exactly the sampled ids, a sampled stop id included. Empty only when aborted before the first.
        logprobs: float32 natural log of each id's probability under the distribution sampled, temperature and filters
            included (for temperature 0: under the model's own, temperature 1).
        finish: ``stop`` when the last id is a stop id, ``length`` when max_new_tokens were sampled without one,
            ``abort`` when it was cancelled or a pause aborted it; what was sampled by then is part of the trial.
        version: of the weights that sampled the last token.
        spans: the version of every token: contiguous from 0 to ``len(ids)``, versions never going back. Left out, it
            is one span of ``version``.
        top_logprobs, kept: when asked for and there is something to tell.
        routed_experts: rows of experts (``engines.experts``), one for each token of the context that no earlier turn
            of the trial reported, in order, the last token sampled left out: it was not fed yet. So the rows of a
            trial's turns, one after the other, are those of its context without its last token. None when not asked.
    """

    trial: str
    ids: list[int]
    logprobs: npt.NDArray[np.float32]
    finish: Literal["stop", "length", "abort"]
    version: int
    spans: tuple[WeightSpan, ...] = ()
    top_logprobs: TopLogprobs | None = None
    kept: KeptSets | None = None
    routed_experts: bytes | None = None

    def __post_init__(self) -> None:
        if not self.spans and self.ids:
            object.__setattr__(self, "spans", (WeightSpan(self.version, 0, len(self.ids)),))
        at, last = 0, None
        for span in self.spans:
            if span.start != at or span.end <= at or (last is not None and span.version < last):
                raise ValueError(f"spans of trial {self.trial!r} do not cover its turn in order: {self.spans}")
            at, last = span.end, span.version
        if at != len(self.ids):
            raise ValueError(f"spans of trial {self.trial!r} cover {at} of {len(self.ids)} tokens")


@dataclass(frozen=True)
class KvUsage:
    """Keys and values an engine holds, and what they cost since it was made.

    Attributes:
        tokens: held now.
        capacity: that can be held.
        reused: tokens of context that a turn found in the cache.
        prefilled: tokens of context computed before sampling: new ones, and those computed again after a preemption or
            an update.
        preemptions: how often a trial's keys and values were given up for another's.
    """

    tokens: int
    capacity: int
    reused: int
    prefilled: int
    preemptions: int


Respond = Callable[[TurnResult], TurnRequest | None]
"""Answers a turn with the same trial's next request, or None when the trial is over."""

WeightSource = Mapping[str, "torch.Tensor"] | Path
"""A whole Hugging Face state, or a directory of safetensors that holds one."""


class Engine(Protocol):
    """A policy that continues conversations token by token.

    Every method raises EngineError for what it cannot do. One thread owns an engine; whoever else wants something asks
    that thread.
    """

    @property
    def capabilities(self) -> frozenset[str]:
        """Which of CAPABILITIES this engine has."""
        ...

    @property
    def version(self) -> int:
        """Version of the weights now serving."""
        ...

    @property
    def max_len(self) -> int:
        """Tokens of context one trial may hold, sampled ones included."""
        ...

    @property
    def paused(self) -> bool:
        """Nothing is sampled until ``resume``."""
        ...

    def submit(self, request: TurnRequest) -> None:
        """Hand a turn in. It waits for its place and during a pause; a trial has one turn under way at most.

        Raises:
            ContextOverflow: it does not fit the context. EngineError: it makes no sense.
            InputError: it asks to be told what is not among the capabilities. Nothing was changed.
        """
        ...

    def step(self, deadline_s: float = 60.0) -> list[TurnResult]:
        """Advance and return the turns that ended, in a deterministic order where the engine is in this process.

        Nothing to do is no error: [] comes back at once. A remote engine waits for something to end, but not longer
        than ``deadline_s`` seconds; then [] comes back as well.
        """
        ...

    def cancel(self, trial: str) -> TurnResult | None:
        """End the trial's turn now; its partial result (``abort``), or None when it has no turn under way.

        The trial stays, with what was sampled as part of its context, until ``release``.
        """
        ...

    def pause(self, mode: PauseMode, *, deadline_s: float = 60.0) -> list[TurnResult]:
        """Stop sampling. Idempotent; requests submitted meanwhile wait.

        ``keep`` freezes turns where they are, and ``resume`` goes on there. ``wait`` starts nothing new and finishes
        what runs. ``abort`` ends what runs now.

        Returns:
            Turns that ended through this call: finished ones of ``wait``, partial ones of ``abort``.
        """
        ...

    def resume(self) -> None:
        """Sample again. Idempotent."""
        ...

    def update_weights(
        self, source: WeightSource, version: int, *, kv: KvMode | None = None, deadline_s: float = 60.0
    ) -> None:
        """Serve new weights from the next sampled token on, whatever is under way.

        Args:
            source: all of the weights.
            version: their number; not lower than the present one while a turn has sampled tokens.
            kv: ``keep`` lets running trials go on over the keys and values of the old weights, ``recompute`` computes
                them again; None is the engine's own choice.
            deadline_s: seconds the push may take.

        Raises:
            EngineError: the push failed; the old weights keep serving under the old version.
        """
        ...

    def usage(self) -> KvUsage:
        """Keys and values held, and prefill counted since the engine was made."""
        ...

    def converse(self, requests: Sequence[TurnRequest], respond: Respond) -> None:
        """Drive many trials to their ends; ``respond`` is called once per finished turn. A failed call releases all."""
        ...

    def generate(self, requests: Sequence[TurnRequest]) -> list[TurnResult]:
        """One turn for each request, results in the order of the requests; state is kept until ``release``."""
        ...

    def release(self, trial: str) -> None:
        """Forget a trial, its turn under way included. Unknown trials are ignored."""
        ...

    def close(self) -> None:
        """Give all memory back. Idempotent."""
        ...
