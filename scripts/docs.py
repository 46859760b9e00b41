"""Regenerate the tables in docs/ that come from the code: ``python scripts/docs.py``, or ``--check`` to only compare.

A table stands between ``<!-- table: KIND [ARGUMENT] -->`` and ``<!-- end -->``. Kinds:

- ``recipe module:Model``: every knob of a recipe with type, default and meaning;
- ``verbs``: the verbs of the command line with an example each;
- ``dict module:NAME``: the entries of an explicit dict with the first line of each entry's docstring;
- ``templates``: the task templates of offices, by domain.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(<!-- table: (\w+) ?(\S*) -->\n).*?(<!-- end -->)", re.DOTALL)


def main(words: list[str]) -> int:
    stale = []
    for page in [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]:
        old = page.read_text(encoding="utf-8")
        new = filled(old)
        if new != old:
            stale.append(page.relative_to(ROOT))
            if "--check" not in words:
                page.write_text(new, encoding="utf-8")
    verb = "is stale; run `make docs`" if "--check" in words else "updated"
    for page in stale:
        print(f"{page} {verb}")
    return 1 if stale and "--check" in words else 0


def filled(text: str) -> str:
    """The page with every table made anew. Raises KeyError for an unknown kind."""
    return BLOCK.sub(lambda m: f"{m[1]}\n{TABLES[m[2]](m[3])}\n{m[4]}", text)


def recipe_table(reference: str) -> str:
    from journeyman.config.slots import Slot

    def rows(model: Any, path: str) -> Iterator[tuple[str, ...]]:
        for name, field in model.model_fields.items():
            slot = Slot.of(field.annotation, tuple(field.metadata))
            if slot.models and not slot.tags:
                yield from rows(slot.models[0], f"{path}{name}.")
            else:
                default = "required" if field.is_required() else f"`{shown(field.get_default())}`"
                yield f"`{path}{name}`", default, slot.describe(), field.description or ""

    return table(("key", "default", "allowed", "meaning"), rows(resolved(reference), ""))


def verbs_table(_: str) -> str:
    import click

    from journeyman.cli.main import VERBS

    def rows(commands: dict[str, click.Command], before: str) -> Iterator[tuple[str, ...]]:
        for name, command in commands.items():
            if isinstance(command, click.Group):
                yield from rows(dict(command.commands), f"{before}{name} ")
            else:
                examples = getattr(command, "examples", ())
                yield f"`{before}{name}`", command.short_help or "", f"`{examples[0]}`"

    return table(("verb", "what it does", "example"), rows(VERBS, "journeyman "))


def dict_table(reference: str) -> str:
    entries = resolved(reference)
    return table(("name", "what it is"), ((f"`{key}`", first_line(value)) for key, value in entries.items()))


def templates_table(_: str) -> str:
    from journeyman.worlds.splits import HELD_OUT_FAMILIES
    from journeyman.worlds.templates import TEMPLATES

    domains = list(dict.fromkeys(one.domain for one in TEMPLATES.values()))

    def place(name: str) -> tuple[int, str, int]:
        return domains.index(TEMPLATES[name].domain), name.rstrip("0123456789"), int(re.sub(r"\D", "", name) or 0)

    rows = (
        (f"`{name}`{' (test only)' if name in HELD_OUT_FAMILIES else ''}", one.domain, one.title, ", ".join(one.traps))
        for name, one in sorted(TEMPLATES.items(), key=lambda item: place(item[0]))
    )
    return table(("template", "domain", "task", "traps it can use"), rows)


def table(header: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(shown(part) for part in value) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def first_line(value: Any) -> str:
    text = inspect.getdoc(value) or inspect.getdoc(sys.modules[value.__module__]) or ""
    return text.splitlines()[0] if text else ""


def resolved(reference: str) -> Any:
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


TABLES: dict[str, Callable[[str], str]] = {
    "recipe": recipe_table,
    "verbs": verbs_table,
    "dict": dict_table,
    "templates": templates_table,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
