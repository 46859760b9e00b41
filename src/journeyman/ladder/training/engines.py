"""The engine of a sampling process: embedded in it, or vLLM servers that run already or are started and ended by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from journeyman.engines.errors import EngineError
from journeyman.engines.protocol import WeightSource
from journeyman.engines.spec import locate, parse_model
from journeyman.engines.vllm import ServerSpec, VllmEngine, VllmServer, launch
from journeyman.engines.vllm.export import state_of

ROUTED = "--enable-return-routed-experts"
"""What makes a server tell the experts of its tokens."""
LOGPROBS = 20
"""Likeliest tokens a server reports without being told otherwise."""

Alive = Callable[[], None]


def open_embedded(plan: Any, stack: ExitStack) -> Any:
    """The engine of this process. Raises InputError for a model it cannot open."""
    from journeyman.engines.embedded import EmbeddedEngine

    engine: Any = EmbeddedEngine.from_directory(
        locate(parse_model(plan.model)), rows=plan.rows, max_len=plan.max_context, kv_on_update=plan.kv_on_update
    )
    stack.callback(engine.close)
    return engine


def open_vllm(plan: Any, stack: ExitStack) -> tuple[VllmEngine, Alive]:
    """An engine over vLLM servers, and what raises EngineError once none of them lives.

    Args:
        plan: a ``SitePlan`` with ``vllm``, fields of ``train.rollouts.VllmSection`` and ``out``, a folder for logs.

    Raises:
        EnvironmentMissing: no server answers, or there is no vLLM to start. InputError: the model cannot be served.
        EngineError: a server that was started did not come up; its last words are in the message.
    """
    told = plan.vllm
    model = locate(parse_model(plan.model))
    server = None if told["urls"] else stack.enter_context(_launched(plan, model))
    engine = VllmEngine(
        [server.url] if server is not None else told["urls"],
        push_dir=Path(told["push_dir"]) if told["push_dir"] else None,
        prefix=told["prefix"],
        dtype=told["dtype"],
        prove=ProbeModel(model, told["dtype"]) if told["prove"] else None,
        turn_s=float(plan.limits.get("model_s", 600.0)),
        max_len=plan.max_context,
    )
    stack.callback(engine.close)

    def alive() -> None:
        if server is not None and server.has_ended:
            raise EngineError(f"the vLLM server ended; {server.log} ends with:\n{server.last_words()}")

    return engine, alive


def _launched(plan: Any, model: Path) -> VllmServer:
    told = plan.vllm
    words = [ROUTED] if plan.experts else []
    if plan.topk > LOGPROBS:
        words += ["--max-logprobs", str(plan.topk)]
    spec = ServerSpec(
        model,
        Path(told["python"]),
        Path(told["out"]),
        dtype=told["dtype"],
        max_len=plan.max_context,
        rows=plan.rows,
        kv_gib=told["kv_gib"],
        arguments=[*words, *told["arguments"]],
    )
    return launch(spec, deadline_s=told["start_s"])


class ProbeModel:
    """Logprobs of given ids under weights that were pushed, by the forward of transformers: the proof of a push.

    It holds a copy of the model on the CPU. Weights are rounded as the servers round them; the forward is float32.

    Args:
        model: directory with the configuration.
        dtype: of the servers' weights, a torch name.
    """

    def __init__(self, model: Path, dtype: str) -> None:
        self._directory, self._dtype = model, dtype
        self._model: Any = None

    def __call__(self, source: WeightSource, prompt: Sequence[int], sampled: Sequence[int]) -> list[float]:
        """float [sampled]: natural logs, at temperature 1."""
        import torch

        model = self._opened()
        rounded = getattr(torch, self._dtype)
        state = {name: tensor.to(rounded).float() for name, tensor in state_of(source).items()}
        missing = model.load_state_dict(state, strict=False, assign=True).missing_keys
        model.tie_weights()
        if unknown := [name for name in missing if name not in model.all_tied_weights_keys]:
            raise EngineError(f"the weights pushed lack {', '.join(sorted(unknown)[:3])}")
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *sampled]]), use_cache=False).logits[0].float()
        table = torch.log_softmax(logits[len(prompt) - 1 : -1], -1)
        found: list[float] = table.gather(1, torch.tensor(list(sampled))[:, None])[:, 0].tolist()
        return found

    def _opened(self) -> Any:
        if self._model is None:
            from transformers import AutoConfig, AutoModelForCausalLM

            config = AutoConfig.from_pretrained(self._directory)
            self._model = AutoModelForCausalLM.from_config(config).float().eval()
        return self._model
