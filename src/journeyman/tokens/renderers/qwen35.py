"""ChatML with XML calls: Qwen3.5, Qwen3.6 and Qwen3.8, thinking and not.

The wording of the tool instruction is protocol: it is what the models were trained on (official templates, Apache-2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from journeyman.tokens.renderers.family import Demonstration, Family, Opening, ToolResult, as_json
from journeyman.tokens.renderers.hermes import CALL_TAGS, CHATML, NO_THOUGHT, THINK, forced, turn
from journeyman.tokens.renderers.hermes import results as hermes_results
from journeyman.tokens.runs import Foreign, Parts

TOOLS_BEFORE = "# Tools\n\nYou have access to the following functions:\n\n<tools>"
TOOLS_AFTER = (
    "\n</tools>\n\nIf you choose to call a function ONLY reply in the following format with NO suffix:\n\n"
    "<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n</parameter>\n"
    "<parameter=example_parameter_2>\nThis is the value for the second parameter\nthat can span\nmultiple lines\n"
    "</parameter>\n</function>\n</tool_call>\n\n<IMPORTANT>\nReminder:\n- Function calls MUST follow the specified "
    "format: an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags\n"
    "- Required parameters MUST be specified\n- You may provide optional reasoning for your function call in natural "
    "language BEFORE the function call, but NOT after\n- If there is no function call available, answer the question "
    "like normal with your current knowledge and do not tell the user about function calls\n</IMPORTANT>"
)
EFFORT = (
    "Reasoning effort is set to xhigh. Please think carefully through the task, validate key assumptions, consider "
    "plausible alternatives, and prioritize correctness, consistency, and clarity in the final answer."
)
"""What Qwen3.8 says at its default effort."""


def user(text: str, thinking: bool) -> Parts:
    """A user turn; the template trims."""
    return turn("user", text.strip())


def opening_with(effort: str | None) -> Callable[[Opening], Parts]:
    """The opening; a thinking Qwen3.8 begins its system turn with the effort."""

    def opening(given: Opening) -> Parts:
        asked = effort if given.thinking else None
        system = None if given.system is None else given.system.strip()
        users = [part for text in given.users for part in user(text, given.thinking)]
        if given.tools:
            head: Parts = ["<|im_start|>system\n", *([f"{asked}\n\n"] if asked else []), TOOLS_BEFORE]
            head += [part for tool in given.tools for part in ("\n", Foreign(as_json(tool)))]
            head.append(TOOLS_AFTER)
            head += ["\n\n", Foreign(system)] if system else []
            return [*head, "<|im_end|>\n", *users]
        if asked:
            tail: Parts = ["\n\n", Foreign(system)] if system else []
            return [f"<|im_start|>system\n{asked}", *tail, "<|im_end|>\n", *users]
        # An empty system text is a turn for 3.5 and 3.6, and nothing for 3.8.
        return [*(turn("system", system) if system or (system is not None and effort is None) else []), *users]

    return opening


def results(given: Sequence[ToolResult]) -> Parts:
    """All results of one assistant turn, in one user turn; the template trims each."""
    return hermes_results([replace(item, text=item.text.strip()) for item in given])


def value_text(value: Any, python_scalars: bool) -> str:
    """A parameter's value: strings raw, the rest as JSON; Qwen3.5 writes None, True and False as Python does."""
    if isinstance(value, str):
        return value
    if python_scalars and not isinstance(value, list | tuple | dict):
        return str(value)
    return as_json(value)


def demonstration_with(python_scalars: bool) -> Callable[[Demonstration, bool], Parts]:
    """What the model samples: it begins inside the thinking, which the generation prompt opened."""

    def demonstration(given: Demonstration, thinking: bool) -> Parts:
        content = given.content.strip()
        parts: Parts = [Foreign((given.reasoning or "").strip()), f"\n{THINK[1]}\n\n"] if thinking else []
        parts.append(Foreign(content))
        for index, call in enumerate(given.calls):
            parts += ["\n" if index else "\n\n" if content else "", f"<tool_call>\n<function={call.name}>\n"]
            for name, value in call.arguments.items():
                parts += [f"<parameter={name}>\n", Foreign(value_text(value, python_scalars)), "\n</parameter>\n"]
            parts.append("</function>\n</tool_call>")
        return [*parts, "<|im_end|>"]

    return demonstration


KEEPS_THINKING = (
    "The template drops earlier thinking once a new user turn stands after it; here it stays as sampled.",
    "The template drops the empty thinking of earlier turns that had none; here the prompt stays as it was.",
)
QWEN35 = Family(
    name="qwen3.5",
    models="Qwen3.5",
    specials=(*CHATML, *CALL_TAGS, *THINK),
    stops=("<|im_end|>", "<|endoftext|>"),
    closes=("<|im_end|>",),
    call_style="xml",
    opening=opening_with(None),
    user=user,
    results=results,
    generation=lambda thinking: "<|im_start|>assistant\n" + ("<think>\n" if thinking else NO_THOUGHT),
    demonstration=demonstration_with(python_scalars=True),
    forced=forced,
    separator="\n",
    think=THINK,
    opens_thinking=True,
    deviations=KEEPS_THINKING,
    text_checked="trl 1.16, qwen3_5_think and qwen3_5_nothink",
)
QWEN36 = replace(
    QWEN35,
    name="qwen3.6",
    models="Qwen3.6",
    demonstration=demonstration_with(python_scalars=False),
    deviations=("As Qwen3.5, unless the template is given preserve_thinking = true: then it agrees.",),
    text_checked="trl 1.16, qwen3_6 with preserve_thinking",
)
QWEN38 = replace(
    QWEN36,
    name="qwen3.8",
    models="Qwen3.8",
    opening=opening_with(EFFORT),
    deviations=(),
    text_checked="trl 1.16, qwen3_8",
)
