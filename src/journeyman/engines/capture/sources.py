"""The engine behind an endpoint, from one word, and the renderer that goes with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from journeyman.engines.protocol import Engine
from journeyman.errors import InputError
from journeyman.tokens.renderers import Demonstration, Renderer, ToolUse
from journeyman.tokens.renderers.detection import family_named, family_of
from journeyman.tokens.tokenizer import Tokenizer

FORMS = "DIR, hf:ORG/NAME@REV, vllm:URL[,URL], scripted:FILE"
NEEDS_TOKENIZER = ("vllm", "scripted")


def renderer_of(word: str, tokenizer: Path | None, family: str | None, *, thinking: bool) -> Renderer:
    """The renderer of a model's family over its vocabulary.

    Raises:
        InputError: no tokenizer is given for an engine that has none of its own, or the family is unknown.
    """
    from journeyman.engines.spec import locate, parse_model

    scheme = word.partition(":")[0]
    if scheme == "openai":
        raise InputError("--engine", f"{word} returns text only: there are no tokens to record", allowed=FORMS)
    if tokenizer is None:
        if scheme in NEEDS_TOKENIZER:
            raise InputError(
                "--tokenizer", "is missing", hint=f"{scheme} engines know no text: give the model's folder"
            )
        tokenizer = locate(parse_model(word))
    known = family_named(family) if family is not None else family_of(tokenizer)
    return Renderer(known, Tokenizer(tokenizer), thinking=thinking)


def engine_of(word: str, renderer: Renderer, max_len: int | None) -> Engine:
    """The engine of a word.

    Raises:
        InputError: none of FORMS, or a script that cannot be read. EnvironmentMissing: a server does not answer.
    """
    from journeyman.engines import ENGINES
    from journeyman.engines.spec import open_engine

    scheme, _, rest = word.partition(":")
    if scheme == "vllm":
        served: Engine = ENGINES["vllm"]()(rest.split(","), max_len=max_len)
        return served
    if scheme == "scripted":
        turns = read_script(Path(rest), renderer)
        played: Engine = ENGINES["scripted"]()(turns, max_len=max_len or 1_000_000)
        return played
    options: dict[str, Any] = {"max_len": max_len} if max_len else {}
    return open_engine(word, **options)


def read_script(path: Path, renderer: Renderer) -> dict[str, list[list[int]]]:
    """Turns by conversation: ``{"tools-0001": [{"content": "", "calls": [{"name": "f", "arguments": {}}]}, ...]}``.

    Raises:
        InputError: it cannot be read, or a turn is none.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(str(path), f"cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise InputError(str(path), "is no table of conversations")
    return {
        name: [renderer.demonstrate(_turn(f"{path}:{name}[{n}]", turn)) for n, turn in enumerate(turns)]
        for name, turns in document.items()
    }


def _turn(where: str, turn: Any) -> Demonstration:
    if not isinstance(turn, Mapping) or turn.keys() - {"content", "calls", "reasoning"}:
        raise InputError(where, "is no turn", allowed="content, calls, reasoning")
    try:
        calls = tuple(ToolUse(call["name"], call["arguments"]) for call in turn.get("calls", ()))
    except (KeyError, TypeError) as error:
        raise InputError(f"{where}.calls", "is no list of calls", allowed="name and arguments of each") from error
    return Demonstration(turn.get("content", ""), calls, turn.get("reasoning"))
