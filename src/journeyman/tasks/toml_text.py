"""TOML as text: the line of a key, for error messages, and the writer that the standard library lacks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any


def line_of(text: str, path: tuple[str | int, ...]) -> int | None:
    """Line, from 1, where a dotted ``path`` is set in TOML ``text``, or else the table nearest to it; None for neither.

    Knows tables, arrays of tables and plain keys, which is what task files use; it only serves error messages.
    """
    keys = [part for part in path if isinstance(part, str)]
    table: list[str] = []
    best, best_depth = None, 0
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.fullmatch(r"\s*\[\[?\s*([^\[\]]+?)\s*\]?\]\s*(#.*)?", line):
            here = table = [part.strip().strip('"') for part in header[1].split(".")]
        elif assignment := re.match(r"\s*\"?([\w.-]+)\"?\s*=", line):
            here = table + assignment[1].split(".")
        else:
            continue
        if here == keys[: len(here)] and len(here) > best_depth:
            best, best_depth = number, len(here)
    return best


def to_toml(values: Mapping[str, Any]) -> str:
    """TOML text of nested mappings of strings, numbers, booleans and lists; None is left out.

    Raises:
        TypeError: a value TOML has no form for.
    """
    return "\n".join(_table(values, ())).strip() + "\n"


def _table(values: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    tables = {k: v for k, v in values.items() if isinstance(v, Mapping)}
    plain = {k: v for k, v in values.items() if k not in tables and v is not None}
    if path and (plain or not tables):
        yield f"\n[{'.'.join(map(_key, path))}]"
    yield from (f"{_key(key)} = {_value(value)}" for key, value in plain.items())
    for key, value in tables.items():
        yield from _table(value, (*path, key))


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(k)} = {_value(v)}' for k, v in value.items() if v is not None)}}}"
    raise TypeError(f"TOML has no form for {type(value).__name__}")
