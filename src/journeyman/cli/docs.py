"""``journeyman docs``: read, edit, diff and recalculate office files, each within limits of time and memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from journeyman.cli.verb import print_json, verb, warn

if TYPE_CHECKING:
    from journeyman.documents.node import Document, Node

T = TypeVar("T")

FILE = click.Path(path_type=Path)
DEADLINE = click.option(
    "--deadline-s", default=12.0, show_default=True, type=click.FloatRange(0.1), help="Wall clock allowed per file."
)
MEMORY = click.option(
    "--memory-mb", default=1024, show_default=True, type=click.IntRange(200), help="Memory the reader may take."
)


@click.group(short_help="Read, edit, compare and recalculate office files.")
def docs() -> None:
    """Work with PDF, Excel, Word, PowerPoint, mail, chat, calendar and CSV files.

    \b
    Example:  journeyman docs read report.pdf
    """


@verb(
    "read",
    "Print what a file holds, each place with its address.",
    "journeyman docs read report.pdf",
    "journeyman docs read model.xlsx --at 'DCF!B12' --json",
)
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option("--at", "address", help="Only this place and what is inside it.")
@DEADLINE
@MEMORY
def read(files: tuple[Path, ...], address: str | None, deadline_s: float, memory_mb: int, as_json: bool) -> int:
    """Read FILES as trees. Exit code 2 when one cannot be read; the others are printed all the same."""
    from journeyman.documents.child import read_safely
    from journeyman.documents.errors import UnreadableDocument
    from journeyman.errors import InputError

    found: list[dict[str, Any]] = []
    is_bad = False
    for path in files:
        try:
            document = read_safely(_bytes(path), path.name, deadline_s=deadline_s, memory_mb=memory_mb)
            nodes = document.nodes if address is None else (document.find(address),)
        except (UnreadableDocument, InputError) as error:
            is_bad = True
            kind = error.kind if isinstance(error, UnreadableDocument) else "no_file"
            warn(str(_input_error(error, path) if isinstance(error, UnreadableDocument) else error))
            found.append({"file": str(path), "error": kind, "message": str(error)})
            continue
        found.append({"file": str(path), **document.as_json(), "nodes": [node.as_json() for node in nodes]})
        if not as_json:
            _print(document, nodes, path)
    if as_json:
        print_json(found)
    return InputError.exit_code if is_bad else 0


@verb(
    "edit",
    "Change places of a file by address and say what changed.",
    """journeyman docs edit model.xlsx --change '{"op": "set", "address": "DCF!B10", "value": 0.06}'""",
)
@click.argument("file", type=FILE)
@click.option("--change", "changes", multiple=True, help="A change as JSON; may be given again.")
@click.option("--changes", "changes_file", type=FILE, help="A JSON file with a list of changes.")
@click.option("--out", type=FILE, help="Where to write; by default FILE itself is replaced.")
@DEADLINE
@MEMORY
def edit(
    file: Path,
    changes: tuple[str, ...],
    changes_file: Path | None,
    out: Path | None,
    deadline_s: float,
    memory_mb: int,
    as_json: bool,
) -> int:
    """Apply all changes to FILE, or none. Ops and fields of each format: docs/documents.md."""
    from journeyman.documents.child import edit_safely
    from journeyman.durable import write_bytes

    asked = [_json(text, "--change") for text in changes]
    if changes_file is not None:
        asked += _list(_json(_bytes(changes_file).decode("utf-8", "replace"), str(changes_file)), changes_file)
    data = _bytes(file)
    edited = _typed(lambda: edit_safely(data, file.name, asked, deadline_s=deadline_s, memory_mb=memory_mb), file)
    target = out or file
    write_bytes(target, edited.data)
    for text in edited.warnings:
        warn(f"{file}: {text}")
    if as_json:
        print_json({"file": str(target), **edited.as_json()})
        return 0
    for one in edited.changed:
        note = f"  ({one.note})" if one.note else ""
        click.echo(f"{one.address}\t{one.op}\t{_short(one.before)} -> {_short(one.after)}{note}")
    click.echo(f"{len(edited.changed)} changes: {target}")
    return 0


@verb("diff", "Say what differs between two files, by meaning.", "journeyman docs diff before.xlsx after.xlsx")
@click.argument("before", type=FILE)
@click.argument("after", type=FILE)
@click.option("--allowed", multiple=True, help="Address or range that may change; other changes are collateral.")
@DEADLINE
@MEMORY
def diff(before: Path, after: Path, allowed: tuple[str, ...], deadline_s: float, memory_mb: int, as_json: bool) -> int:
    """Compare BEFORE with AFTER. Exit code 1 when a change lies outside what --allowed names."""
    from journeyman.documents.child import diff_safely
    from journeyman.errors import GateFailed

    a, b = _bytes(before), _bytes(after)
    limits = {"deadline_s": deadline_s, "memory_mb": memory_mb}
    names = (before.name, after.name)
    value = _typed(lambda: diff_safely(a, b, *names, list(allowed) or None, **limits), before)  # type: ignore[arg-type]
    entries = value["entries"]
    collateral = [entry for entry in entries if entry.get("collateral")] if allowed else []
    for text in value["warnings"]:
        warn(text)
    if as_json:
        print_json(value)
    else:
        for entry in entries:
            mark = "  (collateral)" if entry in collateral else ""
            states = f"{_short(entry.get('before'))} -> {_short(entry.get('after'))}"
            click.echo(f"{entry['address']}\t{entry['kind']}\t{entry['what']}\t{states}{mark}")
        click.echo(f"{len(entries)} differences, {len(collateral)} outside what is allowed: {before} {after}")
    return GateFailed.exit_code if collateral else 0


@verb("recalc", "Compute all formulas of a workbook anew.", "journeyman docs recalc model.xlsx --out fresh.xlsx")
@click.argument("file", type=FILE)
@click.option("--out", type=FILE, help="Where to write the workbook with fresh values; without it none is written.")
@DEADLINE
@MEMORY
def recalc(file: Path, out: Path | None, deadline_s: float, memory_mb: int, as_json: bool) -> int:
    """Recalculate FILE with one engine and check it with another."""
    from journeyman.documents.child import recalculate_safely
    from journeyman.durable import write_bytes

    data = _bytes(file)
    limits = {"deadline_s": deadline_s, "memory_mb": memory_mb}
    report, fresh = _typed(lambda: recalculate_safely(data, file.name, **limits), file)  # type: ignore[arg-type]
    if out is not None:
        write_bytes(out, fresh)
    if as_json:
        print_json({"file": str(file), "out": None if out is None else str(out), **report})
        return 0
    for key, value in report.items():
        click.echo(f"{key}: {len(value) if isinstance(value, list | dict) else value}")
    click.echo(f"recalculated: {out or file}" + ("" if out else " (nothing written; --out PATH keeps the values)"))
    return 0


def _bytes(path: Path) -> bytes:
    from journeyman.errors import InputError

    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from error


def _typed(call: Callable[[], T], path: Path) -> T:
    from journeyman.documents.errors import UnreadableDocument

    try:
        return call()
    except UnreadableDocument as error:
        raise _input_error(error, path) from error


def _input_error(error: Any, path: Path) -> Exception:
    from journeyman.errors import InputError

    name = str(path if error.name == path.name else path.parent / error.name)
    where = f"{name}, {error.place}" if error.place else name
    return InputError(where, f"{error.what} [{error.kind}]", hint=error.remedy or None)


def _json(text: str, where: str) -> Any:
    from journeyman.errors import InputError

    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError(where, f"no JSON: {error}", allowed='{"op": ..., "address": ..., ...}') from error


def _list(value: Any, path: Path) -> list[Any]:
    from journeyman.errors import InputError

    if not isinstance(value, list):
        raise InputError(str(path), "holds no list", allowed='[{"op": ..., "address": ...}, ...]')
    return value


def _print(document: Document, nodes: tuple[Node, ...], path: Path) -> None:
    for text in document.warnings:
        warn(f"{path}: {text}")
    count, stack = 0, list(reversed(nodes))
    while stack:
        node = stack.pop()
        stack.extend(reversed(node.children))
        count += 1
        click.echo(f"{node.address}\t{node.kind}\t{' '.join(node.text.split())}")
    click.echo(f"{count} places: {path} ({document.format})")


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:79]}…"


for _command in (read, edit, diff, recalc):
    docs.add_command(_command)
