"""What proves that a push was applied: the logprobs of a fixed prompt's continuation, against the trainer's own.

A checksum guards the transfer and nothing more: an engine may have packed a tensor elsewhere and kept the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from journeyman.engines.protocol import Sampling, WeightSource
from journeyman.engines.vllm.replica import Replica

PROBE = tuple(range(3, 35))
"""The fixed prompt: ids that every vocabulary has; what they mean does not matter."""
PROBE_TOKENS = 24
PROBE_KEY = 20_261_129
PROBE_S = 60.0
TOLERANCE = {"float32": 1e-4, "bfloat16": 0.03, "float16": 0.03}
"""Mean absolute logprob difference allowed, by the engine's dtype."""

Prove = Callable[[WeightSource, Sequence[int], Sequence[int]], Sequence[float]]
"""The trainer's logprobs of ``sampled`` after ``prompt`` under the weights of a source."""


@dataclass(frozen=True)
class Sampled:
    """What a server makes of the fixed prompt: ids and their logprobs."""

    ids: tuple[int, ...]
    logprobs: npt.NDArray[np.float32]


@dataclass(frozen=True)
class Proof:
    """How far a push is known to be in force.

    Attributes:
        by: ``trainer``: the engine's logprobs are the trainer's; ``change``: they are other than before, which a stale
            head would pass too; ``none``: not asked, or equal to what they were.
        gap_mean, gap_max: absolute differences in nats, to the trainer's logprobs or to those before the push.
    """

    by: Literal["trainer", "change", "none"]
    gap_mean: float
    gap_max: float


async def sample_probe(replica: Replica, salt: str, unlabelled: int) -> Sampled:
    """Continue the fixed prompt at temperature 1 with a fixed seed and a salt that no earlier prompt had."""
    sampling = Sampling(PROBE_TOKENS, 1.0, frozenset())
    answer = await replica.turn(PROBE, sampling, PROBE_KEY, salt, f"probe-{salt}", PROBE_S, unlabelled)
    return Sampled(tuple(answer.ids), answer.logprobs)


def gap(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[float, float]:
    """Mean and maximum absolute difference."""
    difference = np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64))
    return float(difference.mean()), float(difference.max())


def judge(now: Sampled, before: Sampled | None, expected: Sequence[float] | None) -> Proof:
    """Weigh a probe; the caller compares ``gap_mean`` with the tolerance when it is the trainer's."""
    if expected is not None:
        return Proof("trainer", *gap(now.logprobs, expected))
    if before is None:
        return Proof("none", 0.0, 0.0)
    if now.ids != before.ids:
        return Proof("change", float("inf"), float("inf"))
    mean, largest = gap(now.logprobs, before.logprobs)
    return Proof("change" if largest > 0 else "none", mean, largest)


def same(now: Sampled, before: Sampled, tolerance: float) -> bool:
    """Whether a server still is what it was."""
    return now.ids == before.ids and gap(now.logprobs, before.logprobs)[0] <= tolerance
