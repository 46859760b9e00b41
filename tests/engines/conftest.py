"""Small real models with random weights, and what the ``transformers`` forward says about ids under them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from journeyman.engines import ENGINES, Engine
from journeyman.engines.replay import RecordedTurn

VOCAB, STOP = 96, 2
MAX_LEN = 64
TRIALS = [f"trial-{n}" for n in range(7)]
WORDS = [[11, 12, 13, STOP], [14, STOP], [15, 16, 17, 18, 19, 20, 21, 22]]
SIZES: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 80,
    "max_position_embeddings": 512,
    "initializer_range": 0.2,
}


def build(kind: str, *, tied: bool, seed: int) -> Any:
    """A random model whose norms matter and whose logits spread over several nats."""
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    rope = {"rope_type": "default", "rope_theta": 10_000.0}
    if kind == "qwen3":
        config = Qwen3Config(**SIZES, head_dim=16, tie_word_embeddings=tied, rope_parameters=rope)
        model = Qwen3ForCausalLM(config)
    else:
        model = LlamaForCausalLM(LlamaConfig(**SIZES, tie_word_embeddings=tied, rope_parameters=rope))
    for name, parameter in model.named_parameters():
        if "norm" in name:
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
    return model.eval()


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Small matrices on several threads mostly wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session", params=["qwen3-tied", "qwen3-untied", "llama-tied", "llama-untied"])
def any_model(request: pytest.FixtureRequest) -> Any:
    kind, head = request.param.split("-")
    return build(kind, tied=head == "tied", seed=1)


@pytest.fixture(scope="session")
def model() -> Any:
    return build("qwen3", tied=True, seed=1)


@pytest.fixture(scope="session")
def reference() -> Callable[[Any, Sequence[int], float], npt.NDArray[np.float64]]:
    """Full log-softmax [len(ids), vocab] of the official forward, float64 from float32 logits."""

    def logprobs(model: Any, ids: Sequence[int], temperature: float = 1.0) -> npt.NDArray[np.float64]:
        with torch.inference_mode():
            logits = model(torch.tensor([list(ids)])).logits[0].double() / temperature
        table: npt.NDArray[np.float64] = torch.log_softmax(logits, -1).numpy()
        return table

    return logprobs


def _embedded(model: Any) -> Any:
    return ENGINES["embedded"]()(model.config.to_dict(), model.state_dict(), rows=8, max_len=MAX_LEN, version=3)


def _scripted(model: Any) -> Any:
    scripts = {trial: [WORDS[(n + turn) % 3] for turn in range(8)] for n, trial in enumerate(TRIALS)}
    return ENGINES["scripted"]()(scripts, version=3, max_len=MAX_LEN)


def _replay(model: Any) -> Any:
    def turn(ids: list[int]) -> RecordedTurn:
        logprobs = -np.arange(len(ids), dtype=np.float32) / 8
        return RecordedTurn(None, ids, logprobs, np.full(len(ids), 3))

    records = {trial: [turn(WORDS[(n + k) % 3]) for k in range(8)] for n, trial in enumerate(TRIALS)}
    return ENGINES["replay"]()(records, max_len=MAX_LEN)


CONTRACT: dict[str, Callable[[Any], Any]] = {"embedded": _embedded, "scripted": _scripted, "replay": _replay}
"""What the contract suite runs over: a function of the session's model for each engine, version 3, MAX_LEN of context.

An engine that needs a server adds a function that starts one; ``close`` must end it.
"""


@pytest.fixture(params=sorted(CONTRACT))
def engine(request: pytest.FixtureRequest, model: Any) -> Iterator[Engine]:
    with closing(CONTRACT[request.param](model)) as built:
        yield built


@pytest.fixture(scope="session")
def contract_engines() -> set[str]:
    return set(CONTRACT)
