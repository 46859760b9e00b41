"""The optimizers of the recipe: Muon on matrices with AdamW on the rest, or AdamW alone; both with rate groups.

The groups belong to the initialisation of ``model.py``: with embedding and final norm rescaled by s = sqrt(hidden),
AdamW without weight decay learns the same function when their rates are scaled by s and 1/s. A pretrained model has no
such scale: s is 1. Weight decay is 0 throughout.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.errors import InputError, SystemFault
from journeyman.train.model import rate_scale

if TYPE_CHECKING:
    from torch import Tensor

    from journeyman.train.model import CausalLM

BETAS = (0.9, 0.95)
"""AdamW's decay rates of both moments, in every stage."""
EPSILON = 1e-8
"""Added to AdamW's root, in units of gradient."""
MOMENTUM = 0.95
"""Muon's decay of the gradient average; Nesterov."""
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Coefficients of the quintic that drives singular values toward 1 (Jordan's Muon)."""
NEWTON_SCHULZ_STEPS = 5
CLIP = 1.0
"""Largest norm of the whole gradient."""


@dataclass(frozen=True)
class OptimizerSpec:
    """Which optimizer and how fast.

    Attributes:
        lr: AdamW's base rate, before the groups.
        muon_lr: rate of Muon on the matrices inside the layers; None leaves them to AdamW.
        new_rows: the last rows of the embedding that were added to a pretrained model. Their rate is sqrt(hidden) times
            ``lr``: they start at the mean of all rows, some 17 nats below what they must outvote, and at ``lr`` itself
            they were still 8 nats short after the 24 steps in which everything else had been learned.
    """

    lr: float
    muon_lr: float | None = None
    new_rows: int = 0

    def __post_init__(self) -> None:
        for name, value in (("lr", self.lr), ("muon_lr", self.muon_lr)):
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"optimizer.{name}", f"got {value}", allowed="a positive number")


class GradientNotFinite(SystemFault):
    """A gradient holds NaN or infinity. No step was taken; weights and moments are those of the step before.

    Args:
        norm: the gradient's norm.
    """

    def __init__(self, norm: float) -> None:
        self.norm = norm
        super().__init__(f"the norm of the gradient is {norm}; no step was taken, the weights are those before it")


class PolicyOptimizer:
    """Holds the moments of every parameter of one model. ``step`` is deterministic: same gradients, same bits."""

    def __init__(self, model: CausalLM, spec: OptimizerSpec) -> None:
        import torch

        named = model.named_parameters()  # what an adapter has frozen is left out
        self._parameters: dict[str, torch.nn.Parameter] = {name: p for name, p in named if p.requires_grad}
        self._embedding = model.get_input_embeddings().weight
        self._spec = spec
        matrices = {} if spec.muon_lr is None else {n: p for n, p in self._parameters.items() if _is_inner_matrix(n, p)}
        self._muon = _Muon(matrices)
        self._adam_names = [name for name in self._parameters if name not in matrices]
        root = rate_scale(model)
        rates = {"model.embed_tokens.weight": spec.lr * root, "model.norm.weight": spec.lr / root}
        by_rate: dict[float, list[torch.nn.Parameter]] = {}
        for name in self._adam_names:
            by_rate.setdefault(rates.get(name, spec.lr), []).append(self._parameters[name])
        self._base = list(by_rate)
        self._boost = math.sqrt(self._embedding.shape[1]) - 1  # AdamW is linear in its rate, so is what it added
        self._adam = torch.optim.AdamW(
            [{"params": ps, "lr": rate} for rate, ps in by_rate.items()],
            betas=BETAS,
            eps=EPSILON,
            weight_decay=0.0,
            fused=True,
        )

    def step(self, scale: float = 1.0) -> float:
        """Clip the gradient to norm ``CLIP``, step with every rate times ``scale``, clear the gradient.

        Returns:
            The gradient's norm before clipping.

        Raises:
            GradientNotFinite: before anything was changed; the gradient is cleared.
        """
        import torch

        norm = float(torch.nn.utils.clip_grad_norm_(self._parameters.values(), CLIP))
        if not math.isfinite(norm):
            self._clear()
            raise GradientNotFinite(norm)
        for group, rate in zip(self._adam.param_groups, self._base, strict=True):
            group["lr"] = rate * scale
        before = self._new_rows().clone()
        self._adam.step()
        after = self._new_rows()
        after.add_(after - before, alpha=self._boost)
        if self._spec.muon_lr is not None:
            self._muon.step(self._spec.muon_lr * scale)
        self._clear()
        return norm

    def _new_rows(self) -> Tensor:
        embedding: Tensor = self._embedding.data
        return embedding[len(embedding) - self._spec.new_rows :]

    def _clear(self) -> None:
        for parameter in self._parameters.values():
            parameter.grad = None

    def state(self) -> dict[str, Tensor]:
        """All moments by ``<moment>/<parameter>``; the tensors themselves, not copies."""
        state = {f"momentum/{name}": tensor for name, tensor in self._muon.momentum.items()}
        for name in self._adam_names:
            for moment, tensor in self._adam.state.get(self._parameters[name], {}).items():
                state[f"{moment}/{name}"] = tensor
        return state

    def load(self, state: Mapping[str, Tensor], where: str) -> None:
        """Take over what ``state`` returned.

        Raises:
            InputError: ``where`` names a moment of a parameter this optimizer does not have, or of another shape.
        """
        fresh: dict[str, dict[str, Tensor]] = {}
        for key, tensor in state.items():
            moment, _, name = key.partition("/")
            known = self._muon.momentum if moment == "momentum" else self._adam_names
            if name not in known or moment not in ("momentum", "step", "exp_avg", "exp_avg_sq"):
                raise InputError(f"{where}:{key}", "moment of a parameter that this optimizer does not train")
            if moment != "step" and tensor.shape != self._parameters[name].shape:
                wanted = str(tuple(self._parameters[name].shape))
                raise InputError(f"{where}:{key}", f"found shape {tuple(tensor.shape)}", allowed=wanted)
            fresh.setdefault(name, {})[moment] = tensor
        for name in self._muon.momentum:
            if name in fresh:
                self._muon.momentum[name].copy_(fresh[name]["momentum"])
        for name in self._adam_names:
            if name in fresh:
                self._adam.state[self._parameters[name]] = {m: t.clone() for m, t in fresh[name].items()}


def _is_inner_matrix(name: str, parameter: Any) -> bool:
    return parameter.ndim == 2 and ".layers." in name


class _Muon:
    """Orthogonalised momentum, all matrices of one shape at once, in float32.

    Equal to ``torch.optim.Muon`` (weight_decay 0) but for its bfloat16 iteration, which a CPU without avx512_bf16 runs
    40 times slower.
    """

    def __init__(self, matrices: Mapping[str, Any]) -> None:
        import torch

        self._matrices = dict(matrices)
        self.momentum: dict[str, Tensor] = {name: torch.zeros_like(p.data) for name, p in matrices.items()}
        self._buckets: dict[tuple[int, ...], list[str]] = {}
        for name, matrix in matrices.items():
            self._buckets.setdefault(tuple(sorted(matrix.shape)), []).append(name)

    def step(self, lr: float) -> None:
        import torch

        with torch.no_grad():
            for names in self._buckets.values():
                updates = []
                for name in names:
                    gradient, average = self._matrices[name].grad, self.momentum[name]
                    average.lerp_(gradient, 1 - MOMENTUM)
                    updates.append(gradient.lerp(average, MOMENTUM))
                wide = [u.T if u.shape[0] > u.shape[1] else u for u in updates]
                for name, direction in zip(names, orthogonalised(torch.stack(wide)), strict=True):
                    matrix = self._matrices[name]
                    rows, columns = matrix.shape
                    tall = direction.T if rows > columns else direction
                    matrix.add_(tall, alpha=-lr * math.sqrt(max(1.0, rows / columns)))


def orthogonalised(stack: Tensor) -> Tensor:
    """Each matrix with its singular values driven to about 1 by five Newton-Schulz steps.

    Args:
        stack: float [matrices, rows, columns], rows <= columns.
    """
    import torch

    a, b, c = NEWTON_SCHULZ
    x: Tensor = stack / stack.flatten(1).norm(dim=1).clamp(min=1e-7)[:, None, None]
    for _ in range(NEWTON_SCHULZ_STEPS):
        gram = torch.bmm(x, x.transpose(1, 2))
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x
