"""Engines: token ids in; sampled ids, their logprobs and a weight version out.

Promise: the ids returned are the ids sampled, the stop token included; each logprob is that of the distribution really
sampled; the same requests give the same results bit for bit, because work is composed by data and never by timing; no
template, no text and no tool in here.
"""

from collections.abc import Callable

from journeyman.engines.errors import ContextOverflow, EngineError
from journeyman.engines.protocol import (
    CAPABILITIES,
    Engine,
    KeptSets,
    KvMode,
    KvUsage,
    PauseMode,
    Respond,
    Sampling,
    TopLogprobs,
    TurnRequest,
    TurnResult,
    WeightSource,
    WeightSpan,
)


def _embedded() -> type:
    from journeyman.engines.embedded import EmbeddedEngine

    return EmbeddedEngine


def _scripted() -> type:
    from journeyman.engines.scripted import ScriptedEngine

    return ScriptedEngine


def _replay() -> type:
    from journeyman.engines.replay import ReplayEngine

    return ReplayEngine


def _vllm() -> type:
    from journeyman.engines.vllm import VllmEngine

    return VllmEngine


def _openai() -> type:
    from journeyman.engines.openai import OpenaiEngine

    return OpenaiEngine


ENGINES: dict[str, Callable[[], type]] = {
    "embedded": _embedded,
    "openai": _openai,
    "replay": _replay,
    "scripted": _scripted,
    "vllm": _vllm,
}
"""Every engine by name: a function that imports its class, so that naming one in a recipe costs no heavy import."""

__all__ = [
    "CAPABILITIES",
    "ENGINES",
    "ContextOverflow",
    "Engine",
    "EngineError",
    "KeptSets",
    "KvMode",
    "KvUsage",
    "PauseMode",
    "Respond",
    "Sampling",
    "TopLogprobs",
    "TurnRequest",
    "TurnResult",
    "WeightSource",
    "WeightSpan",
]
