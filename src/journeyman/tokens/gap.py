"""How far the engine's logprobs are from the trainer's on the same ids: the check that both hold the same model."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Gap:
    """Absolute logprob differences over the tokens a mask selects, in nats.

    Attributes:
        mean, max, q99: over all ``n`` tokens (q99 by linear interpolation); NaN when a value is not a number.
        n: tokens compared.
        by_version: the same per weight version, so that a stale span cannot hide in the mean.
    """

    mean: float
    max: float
    q99: float
    n: int
    by_version: dict[int, Gap] = field(default_factory=dict)

    def within(self, mean: float, *, q99: float = math.inf, max: float = math.inf) -> bool:
        """True when no figure, here or in any version, passes its limit. NaN never passes."""
        here = self.mean <= mean and self.q99 <= q99 and self.max <= max
        return here and all(gap.within(mean, q99=q99, max=max) for gap in self.by_version.values())


def logprob_gap(
    engine_lp: npt.ArrayLike,
    trainer_lp: npt.ArrayLike,
    mask: npt.ArrayLike,
    versions: npt.ArrayLike | None = None,
) -> Gap:
    """Compare two sets of logprobs of the same tokens.

    Args:
        engine_lp, trainer_lp: natural logs, any equal shape.
        mask: non-zero where a token was sampled.
        versions: weight version of each token; None for one version.

    Raises:
        ValueError: shapes differ or the mask selects nothing (a gap over no token proves nothing).
    """
    engine, trainer = np.asarray(engine_lp, dtype=np.float64), np.asarray(trainer_lp, dtype=np.float64)
    chosen = np.asarray(mask) != 0
    if not engine.shape == trainer.shape == chosen.shape:
        raise ValueError(f"shapes differ: engine {engine.shape}, trainer {trainer.shape}, mask {chosen.shape}")
    if not chosen.any():
        raise ValueError("the mask selects no token: there is nothing to compare")
    engine, trainer = engine[chosen], trainer[chosen]
    sound = np.isfinite(engine) & np.isfinite(trainer)
    difference = np.abs(np.where(sound, engine, np.nan) - np.where(sound, trainer, np.nan))
    if versions is None:
        return _summary(difference, {})
    version = np.asarray(versions)[chosen]
    parts = {int(v): _summary(difference[version == v], {}) for v in np.unique(version)}
    return _summary(difference, parts)


def _summary(difference: npt.NDArray[np.float64], parts: dict[int, Gap]) -> Gap:
    return Gap(
        mean=float(difference.mean()),
        max=float(difference.max()),
        q99=float(np.quantile(difference, 0.99)),
        n=int(difference.size),
        by_version=parts,
    )
