"""AdamW on the shards that one rank holds: elementwise, so equal to ``PolicyOptimizer`` on the whole.

Who holds which part, and the gradient's norm over all ranks, is the back-end's business.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from journeyman.train.optimizer import BETAS, CLIP, EPSILON, GradientNotFinite, OptimizerSpec

MOMENTS = ("exp_avg", "exp_avg_sq")
EMBEDDING, FINAL_NORM = "model.embed_tokens.weight", "model.norm.weight"


class ShardAdam:
    """Moments and steps of one rank's tensors.

    Args:
        shards: Hugging Face name or the model's own -> local tensor, changed in place.
        moments: per moment and name, a tensor of the shard's shape, on the shard's device or in CPU memory.
        rates: rate of each name.
        new_rows: name -> (row at which the boosted rows of this shard begin, factor); see ``OptimizerSpec.new_rows``.

    Attributes:
        step_count: steps taken.
    """

    def __init__(
        self,
        shards: Mapping[str, Tensor],
        moments: Mapping[str, Mapping[str, Tensor]],
        rates: Mapping[str, float],
        new_rows: Mapping[str, tuple[int, float]],
    ) -> None:
        self._shards, self._moments, self._rates, self._new_rows = shards, moments, rates, new_rows
        self.step_count = 0

    def step(self, gradients: Mapping[str, Tensor], norm: float) -> None:
        """Clip by ``norm``, the norm over all ranks, and step.

        Raises:
            GradientNotFinite: before anything was changed.
        """
        if not math.isfinite(norm):
            raise GradientNotFinite(norm)
        self.step_count += 1
        with torch.no_grad():
            for name, gradient in gradients.items():
                self._update(name, gradient * min(1.0, CLIP / (norm + 1e-6)))

    def _update(self, name: str, gradient: Tensor) -> None:
        mean, square = (self._moments[moment][name] for moment in MOMENTS)
        near = gradient.to(mean.device, mean.dtype)
        mean.lerp_(near, 1 - BETAS[0])
        square.mul_(BETAS[1]).addcmul_(near, near, value=1 - BETAS[1])
        first, second = (1 - beta**self.step_count for beta in BETAS)
        change = (mean / first) / ((square / second).sqrt() + EPSILON)
        if name in self._new_rows:
            start, factor = self._new_rows[name]
            change[start:] *= factor
        shard = self._shards[name]
        shard.add_(change.to(shard.device, shard.dtype), alpha=-self._rates[name])


def rates_of(names: Mapping[str, object], spec: OptimizerSpec, scale: float) -> dict[str, float]:
    """The rate of each tensor: those of our own initialisation have rates of their own (``model.rate_scale``)."""
    factors = {EMBEDDING: scale, FINAL_NORM: 1 / scale}
    return {name: spec.lr * factors.get(name, 1.0) for name in names}


def clipped_norm(square: Tensor, reduce: Callable[[Tensor], object]) -> float:
    """The norm from this rank's sum of squares; ``reduce`` sums over ranks in place."""
    reduce(square)
    return float(square.sqrt())
