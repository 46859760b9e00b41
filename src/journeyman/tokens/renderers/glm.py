"""GLM: role tokens without an end token, so a turn stops at the start of the next one. GLM-4.5/4.6 and GLM-4.7/5.

The wording of the tool instruction is protocol: it is what the models were trained on (official templates, MIT).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from journeyman.tokens.renderers.family import Demonstration, Family, Opening, ToolResult, TurnEnd, as_json
from journeyman.tokens.runs import Foreign, Parts

TOOLS_BEFORE = (
    "<|system|>\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
)
TOOLS_AFTER = (
    "</tools>\n\nFor each function call, output the function name and arguments within the following XML format:\n"
    "<tool_call>{{function-name}}{gap}<arg_key>{{arg-key-1}}</arg_key>{gap}<arg_value>{{arg-value-1}}</arg_value>{gap}"
    "<arg_key>{{arg-key-2}}</arg_key>{gap}<arg_value>{{arg-value-2}}</arg_value>{gap}...{gap}</tool_call>"
)
NO_THINK = "/nothink"


def opening_with(gap: str) -> Callable[[Opening], Parts]:
    """The opening; ``gap`` is what stands between tags, a line break until GLM-4.6 and nothing after."""
    user = user_with(gap)

    def opening(given: Opening) -> Parts:
        head: Parts = ["[gMASK]<sop>"]
        if given.tools:
            schemas = [part for tool in given.tools for part in (Foreign(as_json(tool)), "\n")]
            head += [TOOLS_BEFORE, *schemas, TOOLS_AFTER.format(gap=gap)]
        head += [f"<|system|>{gap}", Foreign(given.system)] if given.system is not None else []
        return [*head, *(part for text in given.users for part in user(text, given.thinking))]

    return opening


def user_with(gap: str) -> Callable[[str, bool], Parts]:
    """A user turn; until GLM-4.6 the words /nothink at its end switch thinking off."""

    def user(text: str, thinking: bool) -> Parts:
        silenced = bool(gap) and not thinking and not text.endswith(NO_THINK)
        return [f"<|user|>{gap}", Foreign(text), NO_THINK if silenced else ""]

    return user


def results_with(gap: str) -> Callable[[Sequence[ToolResult]], Parts]:
    """All results of one assistant turn in one observation."""

    def results(given: Sequence[ToolResult]) -> Parts:
        before, after = f"{gap}<tool_response>{gap}", f"{gap}</tool_response>"
        return ["<|observation|>", *(part for item in given for part in (before, Foreign(item.text), after))]

    return results


def demonstration_with(gap: str) -> Callable[[Demonstration, bool], Parts]:
    """What the model samples; it ends with the role it expects next."""

    def demonstration(given: Demonstration, thinking: bool) -> Parts:
        content = given.content.strip()
        parts: Parts = ["\n<think>" if gap else "", Foreign((given.reasoning or "").strip()), "</think>"]
        parts = (parts if thinking else []) + ([gap, Foreign(content)] if content else [])
        for call in given.calls:
            parts.append(f"{gap}<tool_call>{call.name}{gap}")
            for name, value in call.arguments.items():
                text = value if isinstance(value, str) else as_json(value)
                parts += [f"<arg_key>{name}</arg_key>{gap}<arg_value>", Foreign(text), f"</arg_value>{gap}"]
            parts.append("</tool_call>")
        return [*parts, "<|observation|>" if given.calls else "<|user|>"]

    return demonstration


def forced(end: TurnEnd) -> str:
    """The end of the thinking, if it was cut in there; the next role ends the turn."""
    return "</think>" if end.thinking else ""


GLM45 = Family(
    name="glm-4.5",
    models="GLM-4.5 and GLM-4.6",
    specials=(
        "[gMASK]",
        "<sop>",
        "<|system|>",
        "<|user|>",
        "<|assistant|>",
        "<|observation|>",
        "<|endoftext|>",
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "<arg_key>",
        "</arg_key>",
        "<arg_value>",
        "</arg_value>",
    ),
    stops=("<|user|>", "<|observation|>", "<|endoftext|>"),
    closes=("<|user|>", "<|observation|>"),
    call_style="glm",
    opening=opening_with("\n"),
    user=user_with("\n"),
    results=results_with("\n"),
    generation=lambda thinking: "<|assistant|>" + ("" if thinking else "\n<think></think>"),
    demonstration=demonstration_with("\n"),
    forced=forced,
    think=("<think>", "</think>"),
    stop_is_next_role=True,
    deviations=(
        "The template empties earlier thinking once a new user turn stands after it; here it stays as sampled.",
        "A turn that stopped for another role than the one that follows keeps its stop token; the template has none.",
    ),
    text_checked="trl 1.16, glm4moe",
)
GLM47 = replace(
    GLM45,
    name="glm-4.7",
    models="GLM-4.7 and GLM-5",
    opening=opening_with(""),
    user=user_with(""),
    results=results_with(""),
    generation=lambda thinking: "<|assistant|>" + ("<think>" if thinking else "</think>"),
    demonstration=demonstration_with(""),
    opens_thinking=True,
    deviations=(
        "The template drops earlier thinking once a new user turn stands after it (unless clear_thinking = false); "
        "here it stays as sampled.",
        "The template writes an earlier turn without thinking as </think> alone; here <think></think> stays.",
        "A turn that stopped for another role than the one that follows keeps its stop token; the template has none.",
    ),
    text_checked="the model's own template",
)
