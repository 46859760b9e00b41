"""YAML of mappings, lists and scalars; every string is written as a JSON string, so that no parser guesses."""

from __future__ import annotations

import json
from typing import Any


def dump(documents: list[dict[str, Any]]) -> str:
    """Several documents, ``---`` between them."""
    return "---\n".join("\n".join(_lines(document)) + "\n" for document in documents)


def _lines(value: Any) -> list[str]:
    if isinstance(value, dict) and value:
        return [line for key, below in value.items() for line in _entry(f"{_key(key)}:", below)]
    if isinstance(value, list) and value:
        return [line for below in value for line in _item(below)]
    return [_scalar(value)]


def _entry(head: str, below: Any) -> list[str]:
    if _is_nested(below):
        return [head, *(f"  {line}" for line in _lines(below))]
    if isinstance(below, str) and "\n" in below:
        return [f"{head} |", *(f"  {line}".rstrip() for line in below.splitlines())]
    return [f"{head} {_scalar(below)}"]


def _item(below: Any) -> list[str]:
    if isinstance(below, str) and "\n" in below:
        return ["- |", *(f"  {line}".rstrip() for line in below.splitlines())]
    lines = _lines(below)
    return [f"- {lines[0]}", *(f"  {line}" for line in lines[1:])]


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _key(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else json.dumps(key)


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
