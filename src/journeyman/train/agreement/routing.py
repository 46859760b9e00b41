"""What replaying a mixture's routing is worth: the gap of rollout and trainer with recorded experts and without.

The same rows and weights go through two trainers that differ in ``replay_routing`` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from journeyman.train.agreement.measure import Figures, figures
from journeyman.train.backends.spec import BackendSpec
from journeyman.train.backends.table import make_trainer
from journeyman.train.optimizer import OptimizerSpec
from journeyman.train.protocol import TrainRow


@dataclass(frozen=True)
class RoutingGap:
    """The gap over the trained tokens, in nats.

    Attributes:
        recomputed: each token goes where the trainer's own gate sends it.
        replayed: each token goes where the engine sent it.
    """

    recomputed: Figures
    replayed: Figures

    def __str__(self) -> str:
        return f"recomputed: {self.recomputed}\nreplayed:   {self.replayed}"


def routing_gap(spec: BackendSpec, model: Path, rows: Sequence[TrainRow]) -> RoutingGap:
    """Measure both on rows with ``logprobs`` and ``routed_experts`` of the rollout. Raises as ``make_trainer``."""
    found = {}
    for replay in (False, True):
        chosen = spec.model_copy(update={"replay_routing": replay})
        with closing(make_trainer(chosen, model, OptimizerSpec(lr=1e-6))) as trainer:
            logprobs = trainer.forward_logprobs(rows)
        masks = [row.mask.astype(bool) for row in rows]
        rollout = np.concatenate([row.logprobs[mask] for row, mask in zip(rows, masks, strict=True)])
        ours = np.concatenate([values[mask] for values, mask in zip(logprobs, masks, strict=True)])
        found[replay] = figures(rollout, ours)
    return RoutingGap(recomputed=found[False], replayed=found[True])
