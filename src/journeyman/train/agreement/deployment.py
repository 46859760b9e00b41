"""Engine, model and way of updating as one combination, and the combinations that are refused until they have passed.

A published run found that vLLM with CPU offload, a hybrid model (gated delta net layers between attention) and weight
updates in flight together give wrong logprobs, silently. Such a deployment trains only beside a record of
``journeyman tokens agree`` that passed on this very combination.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from journeyman.config import Knobs
from journeyman.digest import sha256_json
from journeyman.durable import write_json

HYBRID_LAYERS = frozenset({"linear_attention", "mamba", "recurrent", "conv"})
"""Words of ``layer_types`` in ``config.json`` for layers that keep a state instead of keys and values."""

HYBRID_FAMILIES = ("qwen3_next", "qwen3_5", "qwen3_6", "qwen3_8")
"""Beginnings of ``model_type`` whose models are hybrid, for directories that do not list their layers."""

URLS = ("http://", "https://")


class EngineChoice(Knobs):
    """How the policy is served. A server's URL says the kind by itself."""

    model: str = Field(min_length=1, description="DIR, hf:ORG/NAME@REV, or a server's URL for kind vllm")
    kind: Literal["embedded", "vllm"] | None = Field(None, description="vllm for a URL, else embedded, unless said")
    dtype: Literal["float32", "bfloat16"] = "float32"
    update: Literal["in_flight", "between_turns"] = Field("in_flight", description="when new weights may arrive")
    cpu_offload: bool = Field(False, description="the engine keeps a part of weights or cache in CPU memory")

    @model_validator(mode="before")
    @classmethod
    def _kind_of_a_url(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("kind") is None:
            return {**given, "kind": "vllm" if str(given.get("model", "")).startswith(URLS) else "embedded"}
        return given

    @model_validator(mode="after")
    def _kind_fits(self) -> EngineChoice:
        if self.kind == "embedded" and self.model.startswith(URLS):
            raise ValueError(f"engine.kind: embedded opens no server ({self.model}); leave it out, or say vllm")
        return self


class TrainerChoice(Knobs):
    """What is trained."""

    model: Path = Field(description="Hugging Face directory")


class Deployment(Knobs):
    """A combination that is to be trained on; reading it refuses the known wrong one without a record."""

    engine: EngineChoice
    trainer: TrainerChoice
    agreement: Path | None = Field(None, description="record of `journeyman tokens agree` on this combination")

    @model_validator(mode="after")
    def _refuse_what_is_known_to_be_wrong(self) -> Deployment:
        problem = hazard(self.engine, self.trainer)
        if problem is None:
            return self
        if self.agreement is None:
            raise ValueError(f"engine.cpu_offload: {problem}; run `journeyman tokens agree` and give its record")
        lacking = shortcoming(self.agreement, self.engine, self.trainer)
        if lacking:
            raise ValueError(f"agreement: {self.agreement} {lacking}; run `journeyman tokens agree` here")
        return self


def is_hybrid(config: dict[str, Any]) -> bool:
    """Whether a ``config.json`` describes a model with layers that keep a recurrent state."""
    text = config.get("text_config")
    inner = text if isinstance(text, dict) else config
    layers = inner.get("layer_types") or ()
    family = str(inner.get("model_type", config.get("model_type", "")))
    return any(layer in HYBRID_LAYERS for layer in layers) or family.startswith(HYBRID_FAMILIES)


def hazard(engine: EngineChoice, trainer: TrainerChoice) -> str | None:
    """The known wrong combination in words, or None."""
    if not (engine.kind == "vllm" and engine.cpu_offload and engine.update == "in_flight"):
        return None
    if not is_hybrid(read_config(trainer.model)):
        return None
    return "vLLM with CPU offload, a hybrid model and updates in flight was published as giving wrong logprobs"


def read_config(directory: Path) -> dict[str, Any]:
    """``config.json`` of a model directory, {} when there is none: other checks name that."""
    try:
        config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


def fingerprint(engine: EngineChoice, trainer: TrainerChoice) -> str:
    """sha256 of everything that makes two deployments the same combination: choices and both model configurations."""
    return sha256_json(
        {
            "engine": engine.model_dump(mode="json"),
            "engine_config": read_config(Path(engine.model)),
            "trainer_config": read_config(trainer.model),
        }
    )


def write_record(path: Path, engine: EngineChoice, trainer: TrainerChoice, *, passed: bool, facts: Any) -> None:
    """Store the outcome durably."""
    record = {"combination": fingerprint(engine, trainer), "passed": passed, "engine": engine.model_dump(mode="json")}
    write_json(path, {**record, "trainer": str(trainer.model), "facts": facts})


def shortcoming(path: Path, engine: EngineChoice, trainer: TrainerChoice) -> str | None:
    """Why a record does not vouch for this combination, or None."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        of, passed = record["combination"], record["passed"]
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    except (ValueError, KeyError, TypeError):
        return "is no record of an agreement"
    if of != fingerprint(engine, trainer):
        return "is the record of another combination"
    return None if passed is True else "is the record of a measurement that failed"
