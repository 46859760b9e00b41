"""The reference of ``report.json`` as Markdown, made from the models so that page and code cannot drift apart.

``python -m journeyman.ladder.report.schema`` prints it; a test compares it with ``docs/report.md``.
"""

from __future__ import annotations

import re
import sys
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import FiniteFloat

from journeyman.evals.score import Word
from journeyman.ladder.report.model import Report
from journeyman.ladder.report.timeless import measures

_WORDS = {str: "text", int: "integer", float: "number", bool: "true or false", type(None): "null", Any: "any JSON"}
_ATTRIBUTE = re.compile(r"^        (\w+(?:, \w+)*): (.*(?:\n            .*)*)", re.M)


def schema_markdown() -> str:
    """One section per model, ``Report`` first, then in order of first use."""
    return "\n\n".join(_section(model) for model in models_below(Report))


def models_below(root: type[Word]) -> list[type[Word]]:
    """``root`` and every model its fields lead to, in order of first use."""
    found = [root]
    for model in found:
        for field in model.model_fields.values():
            found += [part for part in _models(field.annotation) if part not in found]
    return found


def _models(kind: Any) -> list[type[Word]]:
    if isinstance(kind, type) and issubclass(kind, Word):
        return [kind]
    return list(dict.fromkeys(part for inner in get_args(kind) for part in _models(inner)))


def _section(model: type[Word]) -> str:
    doc = model.__doc__ or ""
    intro, _, rest = doc.partition("Attributes:")
    meanings = {name: " ".join(text.split()) for names, text in _ATTRIBUTE.findall(rest) for name in names.split(", ")}
    lines = [
        f"### {model.__name__}",
        "",
        " ".join(intro.split()).replace("``", "`"),
        "",
        "| field | type | meaning |",
        "| --- | --- | --- |",
    ]
    for name, field in model.model_fields.items():
        marked = measures(field)
        meaning = meanings.get(name, "").replace("``", "`").replace("|", "\\|")
        aside = f"*(measures {marked})*" if marked else ""
        lines.append(f"| `{name}` | {_type(field.annotation)} | {' '.join(filter(None, [meaning, aside]))} |")
    return "\n".join(lines)


def _type(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, Word):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    if kind in (FiniteFloat,) or origin is Annotated:
        return _type(inner[0])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in inner)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_type(part) for part in inner))
    if origin is tuple:
        return "list of " + _type(inner[0])
    if origin is dict:
        return "map of text to " + _type(inner[1])
    return _WORDS.get(kind, "any JSON")


if __name__ == "__main__":
    sys.stdout.write(schema_markdown() + "\n")
