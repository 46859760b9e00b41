"""Tool schemas as the TypeScript-like text that gpt-oss reads, in its template's spelling and odd white space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from journeyman.tokens.renderers.family import ToolSchema, as_json

_SCALARS = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean"}
_LONGEST_ITEM = 50


def namespace_text(tools: Sequence[ToolSchema]) -> str:
    """The block ``## functions`` with one type per tool."""
    types = "".join(tool_text(tool["function"]) for tool in tools)
    return f"## functions\n\nnamespace functions {{\n\n{types}}} // namespace functions"


def tool_text(function: Mapping[str, Any]) -> str:
    """One tool as a type."""
    parameters = function.get("parameters") or {}
    head = f"// {function.get('description', '')}\ntype {function['name']} = "
    properties = parameters.get("properties")
    if not properties:
        return f"{head}() => any;\n\n"
    required = parameters.get("required") or ()
    lines = "".join(parameter_text(name, spec, name in required) for name, spec in properties.items())
    return f"{head}(_: {{\n{lines}}}) => any;\n\n"


def parameter_text(name: str, spec: Mapping[str, Any], is_required: bool) -> str:
    """One parameter, its description before and its default after it."""
    comment = f"// {spec['description']}\n" if spec.get("description") else ""
    default = ""
    if "default" in spec:
        shown = spec["default"] if spec.get("enum") else as_json(spec["default"])
        default = f"// default: {shown}" if spec.get("oneOf") and not spec.get("enum") else f", // default: {shown}"
    return f"{comment}{name}{'' if is_required else '?'}: {type_text(spec)}{default},\n"


def type_text(spec: Mapping[str, Any]) -> str:
    """The type of one schema."""
    kind = spec.get("type")
    null = " | null" if spec.get("nullable") else ""
    if kind == "array":
        return _array_text(spec) + null
    if isinstance(kind, list | tuple) and kind:
        return " | ".join(kind)
    if spec.get("oneOf"):
        return "".join(_variants(spec["oneOf"]))
    if kind == "string":
        return '"' + '" | "'.join(spec["enum"]) + '"' if spec.get("enum") else f"string{null}"
    if kind == "object":
        return _object_text(spec)
    return _SCALARS.get(kind, "any") if isinstance(kind, str) else "any"


def _array_text(spec: Mapping[str, Any]) -> str:
    items = spec.get("items")
    if not items:
        return "any[]"
    if isinstance(items.get("type"), str) and items["type"] in _SCALARS:
        return f"{_SCALARS[items['type']]}[]"
    inner = type_text(items)
    return "any[]" if inner == "object | object" or len(inner) > _LONGEST_ITEM else f"{inner}[]"


def _object_text(spec: Mapping[str, Any]) -> str:
    properties = spec.get("properties")
    if not properties:
        return "object"
    required = spec.get("required") or ()
    gap = "\n" + " " * 16  # what the template leaves between a name and its type
    fields = [f"{n}{'' if n in required else '?'}: {gap}{type_text(inner)}" for n, inner in properties.items()]
    return "{\n" + ", ".join(fields) + "}"


def _variants(variants: Sequence[Mapping[str, Any]]) -> list[str]:
    texts: list[str] = []
    for variant in variants:
        text = type_text(variant)
        text += f"// {variant['description']}" if variant.get("description") else ""
        text += " " * 20 + f"// default: {as_json(variant['default'])}" if "default" in variant else ""
        texts.append(text if variant is variants[-1] else f"{text} | \n")
    return texts
