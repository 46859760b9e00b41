"""A model in one word: a directory, a name on the Hugging Face hub, or a service that speaks the OpenAI protocol.

models/warm-start            a directory that save_pretrained wrote
hf:Qwen/Qwen3-4B@1cfa9a7     a repository and a revision; without a network the local cache is all there is
openai:https://host/v1#name  a chat model behind a service, for evaluation only
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from journeyman.errors import EnvironmentMissing, InputError

if TYPE_CHECKING:
    from journeyman.engines.protocol import Engine

FORMS = "DIR, hf:ORG/NAME@REV, openai:URL#NAME"
_HUB = re.compile(r"^(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?$")
_SERVICE = re.compile(r"^(?P<url>https?://[^\s#]+)#(?P<name>\S+)$")
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")
DEFAULT_LEN = 4096
"""Tokens of context per trial where nothing else is said and the model's window allows it."""


@dataclass(frozen=True)
class ModelSpec:
    """Where a model is.

    Attributes:
        text: as given.
        kind: ``directory``, ``hub`` or ``service``.
        place: path, repository or URL.
        name: revision (``hub``) or model name (``service``); "" for a directory.
    """

    text: str
    kind: Literal["directory", "hub", "service"]
    place: str
    name: str = ""


@dataclass(frozen=True)
class ModelCard:
    """What a model directory says of itself.

    Attributes:
        path: the directory.
        model_type: the architecture's name in ``config.json``.
        window: positions it was made for, or None.
        chat_template: its chat template, or None.
    """

    path: Path
    model_type: str
    window: int | None
    chat_template: str | None


def parse_model(text: str) -> ModelSpec:
    """Read a model's word.

    Raises:
        InputError: it has none of the three forms.
    """
    scheme, _, rest = text.partition(":")
    if scheme == "hf":
        match = _HUB.match(rest)
        if not match:
            raise InputError(text, "is no repository of the hub", allowed="hf:ORG/NAME or hf:ORG/NAME@REV")
        return ModelSpec(text, "hub", match["repo"], match["revision"] or "main")
    if scheme == "openai":
        match = _SERVICE.match(rest)
        if not match:
            raise InputError(text, "names no service and model", allowed="openai:URL#NAME, e.g. openai:https://h/v1#m")
        return ModelSpec(text, "service", match["url"], match["name"])
    if not text or (re.match(r"^[a-z]{2,}$", scheme) and rest):
        raise InputError(text or "model", "is no model", allowed=FORMS)
    return ModelSpec(text, "directory", text)


def locate(spec: ModelSpec) -> Path:
    """The directory of a model: as given, or in the local cache of the hub, downloaded when there is a network.

    Raises:
        InputError: no such directory, or the hub has no such repository or revision.
        EnvironmentMissing: not in the cache, and the hub cannot be reached.
    """
    if spec.kind == "directory":
        path = Path(spec.place)
        if not path.is_dir():
            raise InputError(spec.text, "is no directory", allowed=FORMS)
        return path
    try:
        import huggingface_hub
        from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError
    except ImportError as error:
        raise EnvironmentMissing("hf: models need huggingface_hub: install journeyman[train]") from error
    get: Callable[..., str] = huggingface_hub.snapshot_download
    wanted = {"repo_id": spec.place, "revision": spec.name, "allow_patterns": ["*.json", "*.safetensors", "*.jinja"]}
    try:
        return Path(get(**wanted, local_files_only=True))
    except LocalEntryNotFoundError:
        pass
    hint = (
        f"download it where there is a network (hf download {spec.place} --revision {spec.name}), copy the cache or "
        "the folder here, and give the folder"
    )
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        raise EnvironmentMissing(f"{spec.text} is not in the local cache and HF_HUB_OFFLINE is set; {hint}")
    try:
        return Path(get(**wanted))
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise InputError(spec.text, "the hub has no such repository or revision, or needs a login") from error
    except Exception as error:  # whatever the network stack raises: there are too many to name
        raise EnvironmentMissing(
            f"{spec.text} is not in the local cache and the hub cannot be reached ({type(error).__name__}); {hint}"
        ) from error


def read_card(path: Path) -> ModelCard:
    """What the directory holds.

    Raises:
        InputError: no ``config.json`` that can be read, no architecture in it, or no tokenizer beside it.
    """
    config_path = path / "config.json"
    try:
        config: dict[str, Any] = json.loads(config_path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(str(config_path), f"cannot be read: {error}", hint="give a model directory") from error
    if not isinstance(config, dict) or "model_type" not in config:
        raise InputError(f"{config_path}:model_type", "is missing", hint="give a model directory")
    if not any((path / name).is_file() for name in _TOKENIZERS):
        problem = "holds no tokenizer, so no prompt can be written for this model"
        hint = "save the tokenizer beside the weights: tokenizer.save_pretrained(DIR)"
        raise InputError(str(path), problem, allowed=", ".join(_TOKENIZERS), hint=hint)
    window = config.get("max_position_embeddings")
    return ModelCard(path, str(config["model_type"]), None if window is None else int(window), _template(path))


def _template(path: Path) -> str | None:
    if (path / "chat_template.jinja").is_file():
        return (path / "chat_template.jinja").read_text(encoding="utf-8")
    try:
        found = json.loads((path / "tokenizer_config.json").read_text(encoding="utf-8")).get("chat_template")
    except (OSError, ValueError):
        return None
    return found if isinstance(found, str) else None


def open_engine(text: str, *, training: bool = False, **options: Any) -> Engine:
    """The engine of a model's word: ``embedded`` for a directory or the hub, ``openai`` for a service.

    Args:
        text: see the module.
        training: its turns will be trained on.
        options: of the engine's class.

    Raises:
        InputError: as ``parse_model``, ``locate`` and ``read_card``; an unknown architecture; a context longer than the
            model's window; a service for training.
        EnvironmentMissing: see ``locate``.
    """
    from journeyman.engines import ENGINES

    spec = parse_model(text)
    if spec.kind == "service":
        if training:
            problem = "returns text only: no token ids and no logprobs, so nothing that could be trained on"
            raise InputError(text, problem, hint="serve the weights with vLLM, or give a directory")
        service: Engine = ENGINES["openai"]()(spec.place, spec.name, **options)
        return service
    card = read_card(locate(spec))
    wanted = options.setdefault("max_len", min(DEFAULT_LEN, card.window or DEFAULT_LEN))
    if card.window is not None and wanted > card.window:
        problem = f"a context of {wanted} tokens is longer than the model's window"
        raise InputError(f"{text}:max_len", problem, allowed=f"<= {card.window}")
    engine: Engine = ENGINES["embedded"]().from_directory(card.path, **options)  # type: ignore[attr-defined]
    return engine
