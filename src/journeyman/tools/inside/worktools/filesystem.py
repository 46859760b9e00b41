"""filesystem: list, find, read. It changes nothing; writing belongs to the servers of the formats and to code_exec."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from .workspace import Refused, Workspace

MAX_ENTRIES = 1_000
"""Entries of one listing."""

OFFICE = {
    "pdf": "pdfs_read_pdf_pages",
    "docx": "documents_read_document_content",
    "xlsx": "spreadsheets_read_tab",
    "xlsm": "spreadsheets_read_tab",
    "xls": "spreadsheets_read_tab",
    "pptx": "presentations_read_slides",
}
"""Suffix -> the tool that reads it."""


def list_files(workspace: Workspace, path: str = "/") -> str:
    """One line an entry: kind, size, name."""
    folder = workspace.directory(path)
    entries = sorted(folder.iterdir(), key=lambda one: (not one.is_dir(), one.name))
    lines = [f"{'dir ' if one.is_dir() else 'file'} {_size(one):>10} {one.name}" for one in entries[:MAX_ENTRIES]]
    lines += [f"[{len(entries) - MAX_ENTRIES} more entries]"] if len(entries) > MAX_ENTRIES else []
    return "\n".join([f"{workspace.shown(folder)}: {len(entries)} entries", *lines])


def _size(path: Path) -> str:
    try:
        return "" if path.is_dir() else str(path.lstat().st_size)
    except OSError:
        return "?"


def read_image_file(workspace: Workspace, file_path: str) -> dict[str, Any]:
    """Size, format and colour of an image, and a copy of it."""
    data, name = workspace.read(file_path)
    return {"image": workspace.shown(workspace.file(file_path)), **workspace.keep_image(data, name)}


def read_text_file(workspace: Workspace, file_path: str, encoding: str = "utf-8", max_size: int = 0) -> str:
    """The text of a file."""
    data, name = workspace.read(file_path)
    suffix = name.rpartition(".")[2].lower()
    if b"\0" in data[:65536] and not encoding.lower().startswith(("utf-16", "utf-32", "utf16", "utf32")):
        hint = f"; use {OFFICE[suffix]}" if suffix in OFFICE else ""
        raise Refused(f"{file_path} is not a text file{hint}")
    if suffix == "pdf" and data.startswith(b"%PDF"):
        raise Refused(f"{file_path} is a PDF; use {OFFICE['pdf']}")
    part = data[:max_size] if max_size else data
    try:
        text = part.decode(encoding, "ignore" if len(part) < len(data) else "strict")
    except LookupError as error:
        raise Refused(f"no encoding {encoding!r}; try utf-8, cp1252 or latin-1") from error
    except UnicodeDecodeError as error:
        raise Refused(f"{file_path} is not {encoding} (byte {error.start}); try cp1252 or latin-1") from error
    rest = len(data) - len(part)
    return f"{text}\n[{rest} bytes more in the file]" if rest else text or "(the file is empty)"


def search_files(
    workspace: Workspace, pattern: str, path: str = "/", recursive: bool = True, max_results: int = 100
) -> str:
    """Paths whose name, or path from the directory, matches."""
    folder = workspace.directory(path)
    wanted = (pattern if any(one in pattern for one in "*?[") else f"*{pattern}*").lower()
    start = len(str(folder).rstrip("/")) + 1
    found = []
    for one in workspace.names(folder):
        inner = one[start:]
        name = inner.rpartition("/")[2]
        if (recursive or name == inner) and (
            fnmatchcase(name.lower(), wanted) or (name != inner and fnmatchcase(inner.lower(), wanted))
        ):
            found.append(workspace.shown(Path(one)))
    more = [f"[{len(found) - max_results} more]"] if len(found) > max_results else []
    return "\n".join([f"{len(found)} files match {pattern}", *found[:max_results], *more])


def get_file_metadata(workspace: Workspace, file_path: str) -> dict[str, Any]:
    """Size, time, kind, digest."""
    path = workspace.path(file_path)
    if not path.exists():
        workspace.file(file_path)
    facts = path.stat()
    common = {
        "path": workspace.shown(path),
        "kind": "directory" if path.is_dir() else "file",
        "modified_at": datetime.fromtimestamp(facts.st_mtime, UTC).isoformat(timespec="seconds"),
    }
    if path.is_dir():
        return {**common, "entries": len(list(path.iterdir()))}
    data, name = workspace.read(file_path)
    digest = hashlib.sha256(data).hexdigest()
    return {**common, "size_bytes": len(data), "suffix": name.rpartition(".")[2].lower(), "sha256": digest}


def get_directory_tree(
    workspace: Workspace, path: str = "/", max_depth: int = 3, include_files: bool = True, show_size: bool = False
) -> str:
    """The tree, two blanks a level."""
    folder = workspace.directory(path)
    lines: list[str] = []
    for line in _tree(folder, 1, max_depth, include_files, show_size):
        if len(lines) == MAX_ENTRIES:
            lines.append("[more entries; ask for a directory below]")
            break
        lines.append(line)
    return "\n".join([workspace.shown(folder), *lines])


def _tree(folder: Path, depth: int, max_depth: int, include_files: bool, show_size: bool) -> Iterator[str]:
    for one in sorted(folder.iterdir(), key=lambda entry: (not entry.is_dir(), entry.name)):
        is_folder = one.is_dir() and not one.is_symlink()
        if is_folder:
            yield f"{'  ' * depth}{one.name}/"
            if depth < max_depth:
                yield from _tree(one, depth + 1, max_depth, include_files, show_size)
        elif include_files:
            yield f"{'  ' * depth}{one.name}{f' ({_size(one)} bytes)' if show_size else ''}"


TOOLS: dict[str, Callable[..., Any]] = {
    "list_files": list_files,
    "read_image_file": read_image_file,
    "read_text_file": read_text_file,
    "search_files": search_files,
    "get_file_metadata": get_file_metadata,
    "get_directory_tree": get_directory_tree,
}
