"""Routing replay: a mixture's tokens go to the experts the engine sent them to, with the trainer's own gate weights.

Engine and trainer round differently, so near ties fall to different experts and the logprobs of such tokens differ far
more than rounding does. Recorded choices take that away; the gate keeps its gradient through the weights of the chosen
experts (rollout routing replay, "R3").
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from journeyman.errors import InputError

ROUTER = "TopKRouter"
"""End of the class name of the routers that answer (logits, weights, indices) in transformers."""


class RoutingReplay:
    """The routers of one model, in the order of its layers, answering with recorded experts while some are set.

    Args:
        model: a mixture of experts of transformers; its routers are changed in place.

    Raises:
        InputError: the model has no router of a kind known here.
    """

    def __init__(self, model: Any) -> None:
        self._routers = [module for module in model.modules() if type(module).__name__.endswith(ROUTER)]
        unknown = [type(r).__name__ for r in self._routers if not hasattr(r, "norm_topk_prob")]
        if not self._routers or unknown:
            problem = f"{type(model).__name__} has {unknown[0] if unknown else 'no router'}"
            hint = "train without replay_routing; the logprob gap says what that costs"
            raise InputError("backend.replay_routing", problem, allowed="routers with softmax and top-k", hint=hint)
        self._experts: Tensor | None = None
        for index, router in enumerate(self._routers):
            router.forward = types.MethodType(self._routed(index, router.forward), router)

    @property
    def layers(self) -> int:
        """Routers that take recorded experts."""
        return len(self._routers)

    def use(self, experts: Tensor | None) -> None:
        """What the next forward and its backward use: int64 [layers, tokens, experts per token]; None: as computed."""
        if experts is not None and experts.shape[0] != self.layers:
            problem = f"experts of {experts.shape[0]} layers"
            raise InputError("rows.routed_experts", problem, allowed=f"{self.layers}, the model's mixture layers")
        self._experts = experts

    def _routed(self, index: int, original: Callable[[Tensor], Any]) -> Callable[[Any, Tensor], Any]:
        def forward(router: Any, hidden_states: Tensor) -> Any:
            if self._experts is None:
                return original(hidden_states)
            logits = torch.nn.functional.linear(hidden_states.reshape(-1, router.hidden_dim), router.weight)
            chosen = self._experts[index]
            wide = logits if logits.dtype == torch.float64 else logits.float()
            weights = wide.softmax(-1).gather(1, chosen)
            if router.norm_topk_prob:
                weights = weights / weights.sum(-1, keepdim=True)
            return logits, weights.to(logits.dtype), chosen

        return forward
