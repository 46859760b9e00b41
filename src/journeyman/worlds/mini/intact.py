"""Are a world's files still those that were made, and if not: which one, and what is wrong with it?

Judged from outside: digests, first bytes, and the checksums of zip containers. No document is parsed here, since a file
that somebody changed is a stranger's file; parsing is for readers in a sandbox.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from journeyman.digest import tree_sha256

CONTAINERS = ("xlsx", "docx")
MAX_UNPACKED_BYTES = 256_000_000
"""A container that claims to unpack to more is not unpacked to check it."""


def damage(name: str, data: bytes) -> str | None:
    """What is visibly wrong with a file of this name, or None: that is no proof that a reader can use it."""
    suffix = name.rpartition(".")[2].lower()
    if not data:
        return "is empty"
    if suffix == "pdf" and not data.startswith(b"%PDF-"):
        return "damaged pdf: it does not begin like one"
    if suffix not in CONTAINERS:
        return None
    try:
        with zipfile.ZipFile(BytesIO(data)) as container:
            if sum(member.file_size for member in container.infolist()) > MAX_UNPACKED_BYTES:
                return f"damaged {suffix}: claims to unpack to more than {MAX_UNPACKED_BYTES} bytes"
            broken = container.testzip()
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        return f"damaged {suffix}: {error}"
    return f"damaged {suffix}: its part {broken} does not have its checksum" if broken else None


def findings(directory: Path, digest: str, made: Mapping[str, bytes] | None) -> list[str]:
    """What is wrong with a world's files, one line per file with its path; empty when they are those of ``digest``.

    Args:
        directory: holds the files.
        digest: ``world_digest`` of a task; empty when the task does not say.
        made: the files as they were made, if they can be had; ignored when they are not those of ``digest`` either.
    """
    found = {path.relative_to(directory).as_posix(): path.read_bytes() for path in _files(directory)}
    if not digest or tree_sha256(found) == digest:
        return []
    lines = {name: problem for name, data in found.items() if (problem := damage(name, data))}
    if made is not None and tree_sha256(made) == digest:
        for name in sorted(made.keys() | found.keys()):
            if name not in found:
                lines[name] = "is missing"
            elif name not in made:
                lines[name] = "does not belong to this world"
            elif found[name] != made[name]:
                lines.setdefault(name, "differs from what was made")
    if not lines:
        return [f"{directory}: the files are not those that world_digest in task.toml names"]
    return [f"{directory / name}: {problem}" for name, problem in sorted(lines.items())]


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())
