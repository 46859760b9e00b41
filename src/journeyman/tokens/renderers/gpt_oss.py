"""gpt-oss: the harmony format. A turn is a row of messages on channels; a call is a message to a function.

The wording of the system turn is protocol: it is what the models were trained on (official template, Apache-2.0).
"""

from __future__ import annotations

from collections.abc import Sequence

from journeyman.tokens.renderers.family import Demonstration, Family, Opening, ToolResult, TurnEnd, as_json
from journeyman.tokens.renderers.typescript import namespace_text
from journeyman.tokens.runs import Foreign, Parts

ANALYSIS = "<|channel|>analysis<|message|>"
FINAL = "<|channel|>final<|message|>"


def user(text: str, thinking: bool) -> Parts:
    """A user turn."""
    return ["<|start|>user<|message|>", Foreign(text), "<|end|>"]


def opening(given: Opening) -> Parts:
    """The system turn with date and effort, the developer turn with instructions and tools, the user turns."""
    if given.today is None:
        raise ValueError("this family states a date: the trial's clock must give one")
    head: Parts = [
        "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
        f"Knowledge cutoff: 2024-06\nCurrent date: {given.today.isoformat()}\n\n"
        f"Reasoning: {'medium' if given.thinking else 'low'}\n\n"
        "# Valid channels: analysis, commentary, final. Channel must be included for every message.",
        "\nCalls to these tools must go to the commentary channel: 'functions'." if given.tools else "",
        "<|end|>",
    ]
    if given.system or given.tools:
        head.append("<|start|>developer<|message|>")
        head += ["# Instructions\n\n", Foreign(given.system), "\n\n"] if given.system else []
        head += ["# Tools\n\n", Foreign(namespace_text(given.tools))] if given.tools else []
        head.append("<|end|>")
    return [*head, *(part for text in given.users for part in user(text, given.thinking))]


def results(given: Sequence[ToolResult]) -> Parts:
    """One message per result, from the function to the assistant; its text as a JSON string, as the template has it."""
    return [
        part
        for item in given
        for part in (
            "<|start|>functions.",
            Foreign(item.name),
            " to=assistant<|channel|>commentary<|message|>",
            Foreign(as_json(item.text)),
            "<|end|>",
        )
    ]


def demonstration(given: Demonstration, thinking: bool) -> Parts:
    """Thinking, then one call or a final text; text beside a call goes to the commentary channel before it."""
    parts: Parts = []
    if given.reasoning:
        parts += [ANALYSIS, Foreign(given.reasoning), "<|end|><|start|>assistant"]
    if not given.calls:
        return [*parts, FINAL, Foreign(given.content), "<|return|>"]
    if given.content:
        parts += ["<|channel|>commentary<|message|>", Foreign(given.content), "<|end|><|start|>assistant"]
    (call,) = given.calls
    arguments = Foreign(as_json(dict(call.arguments)))
    return [*parts, f" to=functions.{call.name}<|channel|>commentary json<|message|>", arguments, "<|call|>"]


def forced(end: TurnEnd) -> str:
    """The end of the message that was cut; one cut in its head gets an empty body, one cut after its end nothing."""
    if end.last_special == "<|end|>":
        return ""
    return "<|end|>" if end.last_special == "<|message|>" else "<|message|><|end|>"


GPT_OSS = Family(
    name="gpt-oss",
    models="gpt-oss-20b and gpt-oss-120b",
    specials=("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>"),
    stops=("<|return|>", "<|call|>"),
    closes=("<|return|>", "<|call|>"),
    call_style="harmony",
    opening=opening,
    user=user,
    results=results,
    generation=lambda thinking: "<|start|>assistant",
    demonstration=demonstration,
    forced=forced,
    reads_date=True,
    deviations=(
        "The template asks the wall clock for the date; here it is the trial's date.",
        "Earlier final messages end with <|end|> in the template; here with the sampled <|return|>.",
        "The template drops the thinking of earlier turns once a final message follows; here it stays as sampled.",
        "The library openai-harmony writes tool results raw, the template as JSON strings; here as the template.",
        "Without thinking the effort is low: the template knows no other way to say so.",
    ),
    text_checked="trl 1.16, gptoss",
)
