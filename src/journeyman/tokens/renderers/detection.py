"""Which family a model directory belongs to, by what its chat template spells."""

from __future__ import annotations

from pathlib import Path

from journeyman.errors import InputError, nearest
from journeyman.tokens.chat_template import CHAT_TEMPLATE
from journeyman.tokens.official import read_template
from journeyman.tokens.renderers import FAMILIES
from journeyman.tokens.renderers.family import Family

SIGNS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    # family, what its template spells, what it must not spell; the first that fits decides
    ("gpt-oss", ("<|channel|>", "<|start|>", "<|call|>"), ()),
    ("llama3.1", ("<|start_header_id|>", "ipython"), ()),
    ("llama3", ("<|start_header_id|>",), ("tool",)),
    ("glm-4.5", ("[gMASK]<sop>", "<|observation|>", "/nothink"), ()),
    ("glm-4.7", ("[gMASK]<sop>", "<|observation|>", "</think>", "<arg_key>"), ()),
    ("qwen3.8", ("<|im_start|>", "<function=", "<think>", "reasoning_effort"), ()),
    ("qwen3.6", ("<|im_start|>", "<function=", "<think>", "preserve_thinking"), ()),
    ("qwen3.5", ("<|im_start|>", "<function=", "<think>"), ()),
    ("qwen3", ("<|im_start|>", "<tool_call>", "# Tools", "enable_thinking"), ("<function=",)),
    ("qwen2.5", ("<|im_start|>", "<tool_call>", "# Tools", "You are Qwen, created by Alibaba Cloud"), ("<function=",)),
    ("qwen3-2507", ("<|im_start|>", "<tool_call>", "# Tools"), ("<function=", "<think>")),
    ("smollm2", ("<|im_start|>", "SmolLM"), ("<tool_call>",)),
)


def family_named(name: str) -> Family:
    """A family by name.

    Raises:
        InputError: there is none; names the nearest.
    """
    if name not in FAMILIES:
        near = nearest(name, FAMILIES)
        hint = f"did you mean {near}?" if near else None
        raise InputError("--family", f"unknown family {name!r}", allowed=", ".join(sorted(FAMILIES)), hint=hint)
    return FAMILIES[name]


def detect(template: str, where: str) -> Family:
    """The family whose signs a chat template shows.

    Raises:
        InputError: none does.
    """
    if template == CHAT_TEMPLATE:
        hint = "it has nothing to render: its prompts come from journeyman.tokens.framing"
        raise InputError(where, "is a tokenizer that journeyman trained, with a framing of its own", hint=hint)
    for name, present, absent in SIGNS:
        if all(sign in template for sign in present) and not any(sign in template for sign in absent):
            return FAMILIES[name]
    raise InputError(
        where,
        "has a chat format that no renderer knows",
        allowed=", ".join(sorted(FAMILIES)),
        hint="tokens audit --family NAME shows where it differs from the nearest: give the model that chat template, "
        "or add one file to tokens/renderers (docs/tokens.md)",
    )


def family_of(directory: Path, name: str | None = None) -> Family:
    """The family of a model directory, or the one ``name`` says.

    Raises:
        InputError: as ``family_named``, ``read_template`` and ``detect``.
    """
    return family_named(name) if name else detect(read_template(directory), str(directory))
