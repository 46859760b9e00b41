"""Llama 3: header tokens around roles, a call is the whole turn, the date stands in the system turn.

The wording is protocol: it is what the models were trained on (official templates).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from journeyman.tokens.renderers.family import Demonstration, Family, Opening, ToolResult, TurnEnd, as_json
from journeyman.tokens.runs import Foreign, Parts

TOOLS_BEFORE = (
    "Given the following functions, please respond with a JSON for a function call with its proper arguments that best "
    'answers the given prompt.\n\nRespond in the format {"name": function name, "parameters": dictionary of argument '
    "name and its value}.Do not use variables.\n\n"
)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def header(role: str) -> str:
    """What begins a turn."""
    return f"<|start_header_id|>{role}<|end_header_id|>\n\n"


def day(today: date | None) -> str:
    """``26 Jul 2024``, whatever the locale."""
    if today is None:
        raise ValueError("this family states a date: the trial's clock must give one")
    return f"{today.day:02d} {MONTHS[today.month - 1]} {today.year}"


def user(text: str, thinking: bool) -> Parts:
    """A user turn; the template trims."""
    return [header("user"), Foreign(text.strip()), "<|eot_id|>"]


def opening_30(given: Opening) -> Parts:
    """Llama 3: no default system turn, no date, no tools."""
    if given.tools:
        raise ValueError("the template of Llama 3.0 knows no tools; 3.1 and later do")
    system: Parts = [header("system"), Foreign(given.system.strip()), "<|eot_id|>"] if given.system is not None else []
    return ["<|begin_of_text|>", *system, *(part for text in given.users for part in user(text, False))]


def opening_31(given: Opening) -> Parts:
    """Llama 3.1 and later: the system turn states the date, the first user turn the tools."""
    head: Parts = ["<|begin_of_text|>", header("system"), "Environment: ipython\n" if given.tools else ""]
    head += [f"Cutting Knowledge Date: December 2023\nToday Date: {day(given.today)}\n\n"]
    head += [Foreign((given.system or "").strip()), "<|eot_id|>"]
    first, *others = given.users
    body = user(first, False)
    if given.tools:
        schemas = [part for tool in given.tools for part in (Foreign(as_json(tool, indent=4)), "\n\n")]
        body = [header("user"), TOOLS_BEFORE, *schemas, Foreign(first.strip()), "<|eot_id|>"]
    return [*head, *body, *(part for text in others for part in user(text, False))]


def results(given: Sequence[ToolResult]) -> Parts:
    """One ipython turn per result, its text as a JSON string, as the template writes it."""
    return [p for item in given for p in (header("ipython"), Foreign(as_json(item.text)), "<|eot_id|>")]


def demonstration(given: Demonstration, thinking: bool) -> Parts:
    """A call or a text; the family knows no turn with both, and no second call."""
    if not given.calls:
        return [Foreign(given.content.strip()), "<|eot_id|>"]
    (call,) = given.calls
    return [f'{{"name": "{call.name}", "parameters": ', Foreign(as_json(dict(call.arguments))), "}<|eot_id|>"]


def forced(end: TurnEnd) -> str:
    """The end of a turn."""
    return "<|eot_id|>"


LLAMA31 = Family(
    name="llama3.1",
    models="Llama 3.1, 3.2 and 3.3 Instruct",
    specials=(
        "<|begin_of_text|>",
        "<|end_of_text|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eom_id|>",
        "<|eot_id|>",
        "<|python_tag|>",
    ),
    stops=("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"),
    closes=("<|eot_id|>", "<|eom_id|>"),
    call_style="llama",
    opening=opening_31,
    user=user,
    results=results,
    generation=lambda thinking: header("assistant"),
    demonstration=demonstration,
    forced=forced,
    reads_date=True,
    deviations=(
        "Without date_string the template states 26 Jul 2024 or the wall clock; here it is the trial's date.",
        "The template writes earlier turns trimmed, and calls alone with <|eot_id|>; here turns stay as sampled.",
    ),
    text_checked="trl 1.16, llama3_1 and llama3_2",
    vocabulary_checked="llama-models 0.3.0 (base), special ids as published",
)
LLAMA30 = replace(
    LLAMA31,
    name="llama3",
    models="Llama 3 Instruct (3.0)",
    specials=("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    stops=("<|eot_id|>", "<|end_of_text|>"),
    closes=("<|eot_id|>",),
    opening=opening_30,
    reads_date=False,
    deviations=(
        "The template knows no tools: an opening with tools is refused.",
        "The template writes earlier turns trimmed; here turns stay as sampled.",
    ),
    text_checked="trl 1.16, llama3",
    vocabulary_checked="llama-models 0.3.0 (base), special ids as published",
)
