"""Is this renderer right for this model directory? Text, special tokens and ids, each against the directory's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal

from journeyman.errors import InputError
from journeyman.tokens.official import TemplateDate, read_template, render, template_dates
from journeyman.tokens.renderers import Demonstration, Renderer, ToolResult, ToolUse
from journeyman.tokens.renderers.detection import family_of
from journeyman.tokens.renderers.family import Family
from journeyman.tokens.runs import plain
from journeyman.tokens.tokenizer import Tokenizer

PROBE_DAY = date(2026, 3, 4)
"""Any day but today: a template that asks the wall clock shows it."""
PROBE_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "lookup",
        "description": "One cell of a table.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string", "description": "é"}, "row": {"type": "integer"}},
            "required": ["path"],
        },
    },
}
_SYSTEM, _USER = {"role": "system", "content": "You work."}, {"role": "user", "content": "Add 412.\n\nRows: é, 3\t5"}
PROBES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "user": ([_USER], []),
    "system and user": ([_SYSTEM, _USER], []),
    "user and tools": ([_USER], [PROBE_TOOL]),
    "system, user and tools": ([_SYSTEM, _USER], [PROBE_TOOL]),
}
VARIABLES: dict[str, dict[bool, dict[str, Any]]] = {
    "llama3.1": {flag: {"date_string": "04 Mar 2026"} for flag in (True, False)},
    "gpt-oss": {True: {}, False: {"reasoning_effort": "low"}},
}
"""How a family's template is told the date or the effort; the others take ``enable_thinking``."""
WITHOUT_TOOLS = frozenset({"llama3", "smollm2"})
REWRITES_TOOL_TURNS = frozenset({("qwen3", False)})
"""(family, thinking) whose template rewrites the prompt once a tool has answered: a known deviation."""
_USE = ToolUse("lookup", {"path": "a.csv", "row": 3})


@dataclass(frozen=True)
class Check:
    """One row of the audit.

    Attributes:
        name: what was compared.
        verdict: "equal", "differs", or "not checked" when there was nothing to compare with.
        detail: the first difference, or why it was not checked.
    """

    name: str
    verdict: Literal["equal", "differs", "not checked"]
    detail: str = ""


@dataclass(frozen=True)
class ModelAudit:
    """What was found in a model directory.

    Attributes:
        directory: the directory.
        family: the renderer's family.
        checks: all comparisons.
        dates: dates the chat template states of its own accord.
        deviations: where the family's template is known to rewrite history.
    """

    directory: str
    family: str
    checks: tuple[Check, ...]
    dates: tuple[TemplateDate, ...]
    deviations: tuple[str, ...]

    @property
    def ids_verified(self) -> bool:
        """True when every comparison was made and none differs."""
        return all(check.verdict == "equal" for check in self.checks)


def audit_model(directory: Path, family: str | None = None) -> ModelAudit:
    """Compare a renderer with the chat template and the tokenizer of a model directory. Nothing is loaded but those.

    Args:
        directory: as ``from_pretrained`` takes it; weights are not needed.
        family: name of a family, for a template that is not recognised.

    Raises:
        InputError: no tokenizer, no chat template and no family named, or a chat format no renderer knows.
    """
    chosen = family_of(directory, family)
    tokenizer = Tokenizer(directory)
    specials = [_special_check(chosen, tokenizer)]
    dates: list[TemplateDate] = []
    try:
        template = read_template(directory)
    except InputError as error:
        checks = [Check("template text", "not checked", error.problem), Check("ids", "not checked", error.problem)]
    else:
        dates = template_dates(template)
        checks = []
        if specials[0].verdict == "equal":
            for thinking in (True, False) if chosen.think or chosen.name == "gpt-oss" else (True,):
                renderer = Renderer(chosen, tokenizer, thinking=thinking)
                checks += _probe_checks(renderer, template, directory)
    return ModelAudit(str(directory), chosen.name, (*specials, *checks), tuple(dates), chosen.deviations)


def _special_check(family: Family, tokenizer: Tokenizer) -> Check:
    missing = [name for name in family.specials if name not in tokenizer.special_names]
    if missing:
        return Check("special tokens", "differs", f"not single tokens here: {', '.join(missing)}")
    ids = ", ".join(f"{name} {tokenizer.special(name)}" for name in family.specials)
    return Check("special tokens", "equal", ids)


def _probe_checks(renderer: Renderer, template: str, directory: Path) -> list[Check]:
    from tokenizers import Tokenizer as Library

    library = Library.from_file(str(directory / "tokenizer.json" if directory.is_dir() else directory))
    name, thinking = renderer.family.name, renderer.thinking
    variables = VARIABLES.get(name, {}).get(thinking, {"enable_thinking": thinking})
    mode = "thinking, " if thinking and renderer.family.think else ""
    checks: list[Check] = []
    for probe, (messages, tools) in PROBES.items():
        if tools and name in WITHOUT_TOOLS:
            continue
        ours = renderer.opening_parts(messages, tools, today=PROBE_DAY)
        theirs = render(template, messages, tools, today=PROBE_DAY, bos_token=_bos(directory), **variables)
        checks.append(_compare(f"text: {mode}{probe}", plain(ours), theirs))
        ids = renderer.open(messages, tools, today=PROBE_DAY)
        library_ids = library.encode(theirs, add_special_tokens=False).ids
        checks.append(_compare_ids(f"ids: {mode}{probe}", ids, library_ids))
    if name not in WITHOUT_TOOLS and (name, thinking) not in REWRITES_TOOL_TURNS:
        ids, messages = _tool_turn(renderer)
        theirs = render(template, messages, [PROBE_TOOL], today=PROBE_DAY, bos_token=_bos(directory), **variables)
        checks.append(_compare(f"text: {mode}after a tool turn", renderer.tokenizer.decode(ids), theirs))
        library_ids = library.encode(theirs, add_special_tokens=False).ids
        checks.append(_compare_ids(f"ids: {mode}after a tool turn", ids, library_ids))
    return checks


def _tool_turn(renderer: Renderer) -> tuple[list[int], list[dict[str, Any]]]:
    """The second prompt of a trial, by bridging, and the messages that should render to it."""
    says_why = renderer.family.name == "gpt-oss" or (renderer.family.think is not None and renderer.thinking)
    turn = Demonstration("", (_USE,), "I look it up." if says_why else None)
    ids = renderer.open([_SYSTEM, _USER], [PROBE_TOOL], today=PROBE_DAY)
    sampled = renderer.demonstrate(turn)
    ids += [*sampled, *renderer.after(sampled, results=[ToolResult("412", "lookup")]).ids]
    call = {"type": "function", "function": {"name": _USE.name, "arguments": dict(_USE.arguments)}}
    said: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [call]}
    if turn.reasoning:
        said["thinking" if renderer.family.name == "gpt-oss" else "reasoning_content"] = turn.reasoning
    return ids, [_SYSTEM, _USER, said, {"role": "tool", "content": "412"}]


def _compare(name: str, ours: str, theirs: str) -> Check:
    if ours == theirs:
        return Check(name, "equal", f"{len(ours)} characters")
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    detail = f"at character {at}: renderer {ours[at : at + 40]!r}, template {theirs[at : at + 40]!r}"
    return Check(name, "differs", detail)


def _compare_ids(name: str, ours: list[int], theirs: list[int]) -> Check:
    if ours == theirs:
        return Check(name, "equal", f"{len(ours)} tokens")
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    detail = f"at token {at}: renderer {ours[at : at + 5]}, tokenizer {theirs[at : at + 5]}"
    return Check(name, "differs", detail)


def _bos(directory: Path) -> str:
    """The spelling of the first token, for templates that write it."""
    path = directory / "tokenizer_config.json"
    config: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    bos = config.get("bos_token") or ""
    return bos if isinstance(bos, str) else str(bos.get("content", ""))
