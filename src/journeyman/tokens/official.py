"""A model directory's own chat template: found, rendered under the trial's clock, and searched for dates.

Journeyman's renderers do not run it; it is what they are checked against.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from journeyman.errors import InputError

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_DAY = re.compile(
    rf"\b\d{{1,2}}(?:st|nd|rd|th)? {_MONTH},? \d{{4}}\b|\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}\b"
    r"|\b(?:19|20)\d\d[-/.](?:0?[1-9]|1[0-2])[-/.](?:0?[1-9]|[12]\d|3[01])\b"
    r"|(?:19|20)\d\d\s?年\s?\d{1,2}\s?月\s?\d{1,2}\s?日"
)
_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)


@dataclass(frozen=True)
class TemplateDate:
    """A date that a chat template states of its own accord.

    Attributes:
        kind: "fixed" (the text is in the template) or "wall clock" (it asks the machine at rendering time).
        text: the date, or the call that asks for it.
        line: line of the template, from 1.
    """

    kind: Literal["fixed", "wall clock"]
    text: str
    line: int


def read_template(directory: Path) -> str:
    """The chat template of a model directory.

    Raises:
        InputError: there is no directory, or no template in ``chat_template.jinja`` or ``tokenizer_config.json``.
    """
    if not directory.is_dir():
        raise InputError(str(directory), "is not a directory", allowed="a model directory as from_pretrained takes it")
    own = directory / "chat_template.jinja"
    if own.is_file():
        return own.read_text(encoding="utf-8")
    path = directory / "tokenizer_config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError as error:
        raise InputError(str(path), f"is no JSON: {error}") from error
    template = config.get("chat_template") if isinstance(config, dict) else None
    if isinstance(template, list):  # several, by name
        named = {item.get("name"): item.get("template") for item in template if isinstance(item, dict)}
        template = named.get("tool_use") or named.get("default")
    if not isinstance(template, str):
        raise InputError(
            str(directory),
            "has no chat template",
            allowed="chat_template.jinja, or chat_template in tokenizer_config.json",
            hint="copy it from the model's repository; tokens audit and capture also take the format by name: --family",
        )
    return template


def template_dates(template: str) -> list[TemplateDate]:
    """Every date the template would state of its own accord: fixed ones, and calls of the wall clock."""
    text = _COMMENT.sub(lambda match: "\n" * match.group().count("\n"), template)
    found = [TemplateDate("fixed", m.group(), text.count("\n", 0, m.start()) + 1) for m in _DAY.finditer(text)]
    for match in re.finditer(r"strftime_now\([^)]*\)|datetime\.now\([^)]*\)", text):
        found.append(TemplateDate("wall clock", match.group(), text.count("\n", 0, match.start()) + 1))
    return sorted(found, key=lambda item: item.line)


def render(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    today: date,
    add_generation_prompt: bool = True,
    **variables: Any,
) -> str:
    """The template's text, with the functions ``apply_chat_template`` of transformers gives it; "now" is ``today``.

    Raises:
        InputError: the template refuses these messages or is no Jinja.
    """
    import jinja2

    try:
        text: str = _compiled(template).render(
            messages=messages,
            tools=list(tools) or None,
            add_generation_prompt=add_generation_prompt,
            strftime_now=today.strftime,
            **variables,
        )
    except jinja2.TemplateError as error:
        raise InputError("chat template", f"cannot be rendered: {error}") from error
    return text


@lru_cache(maxsize=32)
def _compiled(template: str) -> Any:
    import jinja2
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    def tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, **options: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)

    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = refuse
    return environment.from_string(template)
