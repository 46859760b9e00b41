"""From what was written to values: the text of flags and variables by the field's type, paths against their file.

Done after the merge, because only then is it known which member of a union a key belongs to.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from journeyman.config.layers import Leaf, Tree
from journeyman.config.merge import types_of
from journeyman.config.slots import Slot
from journeyman.errors import Problem

_SECRET_VALUE = re.compile(
    r"^(sk|pk|rk)[-_][A-Za-z0-9_-]{16,}$"  # API keys of model vendors and payment services
    r"|^(hf|ghp|gho|ghs|glpat|npm|pypi)[-_][A-Za-z0-9_-]{16,}$|^github_pat_|^xox[abprs]-|^AIza[A-Za-z0-9_-]{30,}$"
    r"|^AKIA[A-Z0-9]{16}$|^eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.|-----BEGIN [A-Z ]*PRIVATE KEY"
)
_SECRET_NAME = re.compile(r"(^|_)(api_?key|secret|password|passwd|(access|auth|api|bearer)_token)$")
_REFERENCE = re.compile(r"^env:[A-Za-z_][A-Za-z0-9_]*$")
SECRET = "looks like a secret (value not shown); give env:NAME, the environment variable that holds it"


def settle(tree: Tree, slot: Slot | None, path: tuple[str, ...], problems: list[Problem]) -> dict[str, Any]:
    """The tree as plain data for the model. Secrets and flags without their value become ``problems``."""
    data: dict[str, Any] = {}
    for key, value in tree.items():
        child = slot.child(key, types_of(tree)) if slot else None
        at = (*path, key)
        if isinstance(value, dict):
            data[key] = settle(value, child, at, problems)
        elif _is_secret(key, value):
            problems.append(Problem(".".join(at), value.source.text, SECRET))
            data[key] = "env:NAME"
        elif value.is_bare and child is not None and not child.holds(bool):
            problems.append(Problem(".".join(at), value.source.text, f"needs a value; expected {child.describe()}"))
            data[key] = value.value
        else:
            data[key] = _settled(value, child)
    return data


def _settled(leaf: Leaf, slot: Slot | None) -> Any:
    if slot is None:
        return leaf.value
    if leaf.source.kind in ("env", "flag"):
        return from_text(leaf.value, slot)
    return _against(leaf.source.base, leaf.value, slot) if leaf.source.base else leaf.value


def from_text(text: str, slot: Slot) -> Any:
    """The text of a flag or variable as the nearest value the slot may hold; text that fits nothing stays text."""
    if slot.optional and text == "none":
        return None
    if slot.item and text.startswith("["):
        return _from_literal(text)
    if slot.item:
        return [from_text(part.strip(), slot.item) for part in text.split(",")] if text else []
    if slot.entry and text.startswith("{"):
        return _from_literal(text)
    for choice in slot.choices:
        if str(choice) == text:
            return choice
    if slot.holds(bool) and text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        if slot.holds(kind) and not slot.holds(str):
            try:
                return kind(text)
            except ValueError:
                continue
    return text


def _from_literal(text: str) -> Any:
    """JSON or an inline TOML value; text that is neither stays text."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _against(base: Path, value: Any, slot: Slot) -> Any:
    """Path texts of a file, joined to the file's directory; ``~`` is the home directory."""
    if isinstance(value, str) and slot.holds(Path):
        return base / Path(value).expanduser()
    if isinstance(value, list) and slot.item:
        item = slot.item
        return [_against(base, part, item) for part in value]
    if isinstance(value, dict):
        children = {key: slot.child(key, value) for key in value}
        return {key: _against(base, part, below) if (below := children[key]) else part for key, part in value.items()}
    return value


def _is_secret(key: str, leaf: Leaf) -> bool:
    value = leaf.value
    if leaf.source.kind == "default" or not isinstance(value, str) or not value or _REFERENCE.match(value):
        return False
    return bool(_SECRET_VALUE.search(value) or _SECRET_NAME.search(key))
