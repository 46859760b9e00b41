"""Renderers against the official chat templates: the same text and the same ids wherever those are append-only."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journeyman.tokens import Tokenizer
from journeyman.tokens.official import render
from journeyman.tokens.renderers import FAMILIES, Demonstration, Renderer, ToolResult, ToolUse
from journeyman.tokens.renderers.detection import detect
from journeyman.tokens.runs import plain

TODAY = date(2026, 3, 4)
HERE = Path(__file__).parent / "templates"
BOTH: dict[bool, dict[str, Any]] = {True: {"enable_thinking": True}, False: {"enable_thinking": False}}
SAME: dict[bool, dict[str, Any]] = {True: {}, False: {}}


@dataclass(frozen=True, eq=False)
class Official:
    """An official template: its file, the variables that switch thinking, and others."""

    family: str
    file: str
    thinking: dict[bool, dict[str, Any]] = field(default_factory=lambda: SAME)
    detected: bool = True


OFFICIALS = [
    Official("qwen2.5", "qwen2_5"),
    Official("qwen3", "qwen3", BOTH),
    Official("qwen3-2507", "qwen3_instruct_2507"),
    Official("smollm2", "smollm2"),
    Official("qwen3.5", "qwen3_5_think", BOTH),
    Official("qwen3.5", "qwen3_5_nothink", BOTH),
    Official("qwen3.6", "qwen3_6", {k: {**v, "preserve_thinking": True} for k, v in BOTH.items()}),
    Official("qwen3.8", "qwen3_8", BOTH),
    Official("llama3", "llama3"),
    Official("llama3.1", "llama3_1", {k: {"date_string": "04 Mar 2026"} for k in SAME}),
    Official("llama3.1", "llama3_2"),
    Official("glm-4.5", "glm4moe", BOTH),
    Official("glm-4.7", "glm-4.7", {k: {**v, "clear_thinking": False} for k, v in BOTH.items()}),
    Official("gpt-oss", "gptoss", {True: {}, False: {"reasoning_effort": "low"}}),
]
each_official = pytest.mark.parametrize("official", OFFICIALS, ids=lambda item: item.file)
BOS = {"llama3": "<|begin_of_text|>", "llama3.1": "<|begin_of_text|>"}
WITHOUT_TOOLS = {"smollm2", "llama3"}

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "calc",
            "description": "Adds, é and all.",
            "parameters": {
                "type": "object",
                "properties": {
                    "expr": {"type": "string", "description": "a sum"},
                    "digits": {"type": "integer", "default": 2},
                    "rows": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                    "mode": {"type": "string", "enum": ["up", "down"], "default": "up"},
                    "where": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "boolean"}}},
                    "any": {"oneOf": [{"type": "string", "description": "d"}, {"type": "integer", "default": 1}]},
                },
                "required": ["expr"],
            },
        },
    },
    {"type": "function", "function": {"name": "now", "description": "", "parameters": {"type": "object"}}},
]


@cache
def template_text(official: Official) -> str:
    own = HERE / f"{official.file}.jinja"
    if own.is_file():
        return own.read_text()
    found = importlib.util.find_spec("trl")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the official templates come with the package trl: pip install trl")
    return (Path(found.submodule_search_locations[0]) / "chat_templates" / f"{official.file}.jinja").read_text()


def official_text(official: Official, messages: list[dict[str, Any]], tools: Any, thinking: bool, **more: Any) -> str:
    variables = {**official.thinking[thinking], "bos_token": BOS.get(official.family, ""), **more}
    return render(template_text(official), messages, tools, today=TODAY, **variables)


@cache
def library(tokenizer_dir: Path) -> Any:
    from tokenizers import Tokenizer as Library

    return Library.from_file(str(tokenizer_dir / "tokenizer.json"))


def library_ids(tokenizer_dir: Path, text: str) -> list[int]:
    """What the tokenizer library itself makes of a rendered template."""
    ids: list[int] = library(tokenizer_dir).encode(text, add_special_tokens=False).ids
    return ids


words = st.text(alphabet="ab 0\n.é{}\"'\t/", max_size=12) | st.sampled_from(
    ["", " ", "report Acme Q1", "x\n\ny", "/nothink"]
)


@each_official
@settings(max_examples=60, deadline=None)
@given(
    system=st.none() | words,
    users=st.lists(words, min_size=1, max_size=2),
    with_tools=st.booleans(),
    thinking=st.booleans(),
)
def test_an_opening_has_the_text_and_the_ids_of_the_official_template(
    official: Official,
    family_dir: Callable[[str], Path],
    family_tokenizer: Callable[[str], Tokenizer],
    system: str | None,
    users: list[str],
    with_tools: bool,
    thinking: bool,
) -> None:
    renderer = Renderer(FAMILIES[official.family], family_tokenizer(official.family), thinking=thinking)
    tools = TOOLS if with_tools and official.family not in WITHOUT_TOOLS else []
    messages = [{"role": "system", "content": system}] if system is not None else []
    messages += [{"role": "user", "content": text} for text in users]
    expected = official_text(official, messages, tools, thinking)
    assert plain(renderer.opening_parts(messages, tools, today=TODAY)) == expected
    assert renderer.open(messages, tools, today=TODAY) == library_ids(family_dir(official.family), expected)


CALL = ToolUse("calc", {"expr": "412+388", "digits": 2, "rows": [{"a": "é"}]})


def as_message(family: str, turn: Demonstration) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": turn.content}
    if turn.calls:
        message["tool_calls"] = [
            {"type": "function", "function": {"name": c.name, "arguments": dict(c.arguments)}} for c in turn.calls
        ]
    if turn.reasoning:
        message["thinking" if family == "gpt-oss" else "reasoning_content"] = turn.reasoning
    return message


def turns_of(official: Official, thinking: bool) -> list[tuple[Demonstration, list[ToolResult]]]:
    reasons = (thinking and FAMILIES[official.family].think is not None) or official.family == "gpt-oss"
    thought = "I add.\nThen I look." if reasons else None
    several = official.family not in ("llama3.1", "gpt-oss")
    said = "I look it up." if several else ""
    first = Demonstration(said, (CALL, CALL) if several else (CALL,), thought)
    answers = [ToolResult("412 <b>\n\nrows", "calc"), ToolResult("é", "calc")]
    return [(first, answers if several else answers[:1]), (Demonstration("", (CALL,), thought), [answers[1]])]


@each_official
@pytest.mark.parametrize("thinking", [True, False])
def test_a_tool_conversation_has_the_text_and_the_ids_of_the_official_template(
    official: Official, family_dir: Callable[[str], Path], thinking: bool
) -> None:
    if official.family in WITHOUT_TOOLS:
        pytest.skip("the template of this family knows no tools")
    directory = family_dir(official.family)
    tokenizer = Tokenizer(directory)
    renderer = Renderer(FAMILIES[official.family], tokenizer, thinking=thinking)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Work."}, {"role": "user", "content": "add"}]
    ids = renderer.open(messages, TOOLS, today=TODAY)
    for turn, results in turns_of(official, thinking):
        sampled = renderer.demonstrate(turn)
        bridge = renderer.after(sampled, results=results)
        assert bridge.forced == ()
        ids += [*sampled, *bridge.observed]
        messages += [as_message(official.family, turn), *({"role": "tool", "content": r.text} for r in results)]
        expected = official_text(official, messages, TOOLS, thinking)
        if official.family == "qwen3" and not thinking:
            assert tokenizer.decode(ids) != expected, (
                "it takes the empty thinking of the prompt away: a listed deviation"
            )
            continue
        assert tokenizer.decode(ids) == expected
        assert ids == library_ids(directory, expected)


@each_official
def test_the_family_is_detected_by_its_template(official: Official) -> None:
    assert detect(template_text(official), "here").name == official.family


REWRITES_AFTER_A_USER_TURN = {
    # official template: what it does to earlier thinking, or to the end of an earlier turn, once a user turn follows
    "qwen3": True,
    "qwen3_5_think": True,
    "qwen3_5_nothink": True,
    "glm4moe": True,
    "gptoss": True,
    "qwen2_5": False,
    "qwen3_instruct_2507": False,
    "smollm2": False,
    "qwen3_6": False,
    "qwen3_8": False,
    "llama3": False,
    "llama3_1": False,
    "llama3_2": False,
    "glm-4.7": False,
}


def after_a_user_turn(official: Official, tokenizer: Tokenizer, **more: Any) -> tuple[str, str]:
    """(our prompt, the official one) after a turn that ended and a new user turn."""
    family = FAMILIES[official.family]
    renderer = Renderer(family, tokenizer)
    thought = "I add." if family.think or official.family == "gpt-oss" else None
    turn = Demonstration("So 800.", (), thought)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "add"}]
    ids = renderer.open(messages, today=TODAY)
    sampled = renderer.demonstrate(turn)
    ids += [*sampled, *renderer.after(sampled, user="and now?").ids]
    messages += [as_message(official.family, turn), {"role": "user", "content": "and now?"}]
    return tokenizer.decode(ids), official_text(official, messages, [], True, **more)


@each_official
def test_only_the_listed_templates_rewrite_history_after_a_user_turn(
    official: Official, family_tokenizer: Callable[[str], Tokenizer]
) -> None:
    ours, theirs = after_a_user_turn(official, family_tokenizer(official.family))
    assert (ours != theirs) == REWRITES_AFTER_A_USER_TURN[official.file]
    if ours != theirs:
        assert FAMILIES[official.family].deviations


@pytest.mark.parametrize(
    ("file", "variable"), [("qwen3_6", {"preserve_thinking": False}), ("glm-4.7", {"clear_thinking": True})]
)
def test_templates_that_can_keep_thinking_drop_it_when_not_asked_to(
    family_tokenizer: Callable[[str], Tokenizer], file: str, variable: dict[str, Any]
) -> None:
    official = next(item for item in OFFICIALS if item.file == file)
    ours, theirs = after_a_user_turn(official, family_tokenizer(official.family), **variable)
    assert "I add." in ours
    assert "I add." not in theirs
