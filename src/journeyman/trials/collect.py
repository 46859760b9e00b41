"""Takes deliverables out of a sandbox, after QUIESCE: regular files below one directory, bounded in number and size."""

from __future__ import annotations

import io
import os

from journeyman.deadline import Deadline
from journeyman.sandbox import outside
from journeyman.sandbox.errors import TransferFailed
from journeyman.sandbox.protocol import Sandbox
from journeyman.tasks.artifacts import MAX_DELIVERABLE_BYTES, stays_inside

MAX_FILES = 200
MAX_TOTAL_BYTES = 64_000_000
_FOLDER = "artifacts"
_TAR_FAILED = 2


def collect_files(sandbox: Sandbox, logs: str, limit_s: float, transfer_s: float) -> dict[str, bytes]:
    """Files below ``<logs>/artifacts`` by relative name. Links are not followed, special files not opened.

    A file that is longer than a verifier reads, and what comes after ``MAX_FILES`` files or ``MAX_TOTAL_BYTES`` bytes,
    is left out: it could not be graded.

    Raises:
        SandboxFault: the sandbox broke or a deadline passed.
    """
    deadline = Deadline.after(limit_s, "collection of deliverables")
    folder = f"{logs}/{_FOLDER}"
    seen = _seen(sandbox, folder, deadline)
    if seen is not None:
        return seen
    packed = _packed(sandbox, logs, deadline)
    if packed is not None:
        return packed
    listing = f"[ -d {folder} ] && [ ! -h {folder} ] || exit 0; cd {folder} && exec find . -type f -print0"
    result = sandbox.exec(listing, deadline_s=limit_s)
    names = sorted(n.removeprefix("./") for n in result.stdout.decode(errors="replace").split("\0") if n)
    found: dict[str, bytes] = {}
    total = 0
    for name in [n for n in names if stays_inside(n)][:MAX_FILES]:
        deadline.check()
        try:
            data = sandbox.download(
                f"{folder}/{name}",
                deadline_s=min(transfer_s, max(deadline.remaining_s, 0.1)),
                max_bytes=MAX_DELIVERABLE_BYTES,
            )
        except TransferFailed:
            continue
        total += len(data)
        if total > MAX_TOTAL_BYTES:
            break
        found[name] = data
    return found


def _seen(sandbox: Sandbox, folder: str, deadline: Deadline) -> dict[str, bytes] | None:
    """Read from outside, which costs no process at all; None where that is not possible, or a link is in the way."""
    root = sandbox.root()
    if root is None:
        return None
    found: dict[str, bytes] = {}
    total, top = 0, -1
    try:
        top = outside.open_folder(root, folder)
        for name, size, file in outside.regular_files(top):
            deadline.check()
            if size > MAX_DELIVERABLE_BYTES or not stays_inside(name):
                continue
            total += size
            if len(found) == MAX_FILES or total > MAX_TOTAL_BYTES:
                break
            found[name] = outside.read_whole(file, size)
    except FileNotFoundError:
        return {}
    except OSError:
        return None
    finally:
        os.close(root)
        if top >= 0:
            os.close(top)
    return dict(sorted(found.items()))


def _packed(sandbox: Sandbox, logs: str, deadline: Deadline) -> dict[str, bytes] | None:
    """All of it as one archive, which costs one process instead of two per file; None where that is not possible.

    A directory that is a link is archived as a link. The archive is data of unknown intent: only regular members with
    safe names are taken, within the same bounds.
    """
    words = ["tar", "-cf", "-", "-C", logs, _FOLDER]
    result = sandbox.exec(words, deadline_s=max(deadline.remaining_s, 0.1), max_output_bytes=MAX_TOTAL_BYTES)
    if result.return_code == _TAR_FAILED and not result.stdout.strip(b"\0"):
        return {}  # there is no such directory
    if result.return_code != 0 or result.omitted_bytes:
        return None
    import tarfile

    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(result.stdout), mode="r:") as archive:
            for member in archive:
                name = member.name.removeprefix(f"{_FOLDER}/")
                if name == member.name:
                    continue  # the directory itself, or what stands in its place
                twin = found.get(member.linkname.removeprefix(f"{_FOLDER}/")) if member.islnk() else None
                if twin is not None and stays_inside(name) and len(found) < MAX_FILES:
                    found[name] = twin  # a second hard link to a file that came before
                file = archive.extractfile(member) if member.isreg() and stays_inside(name) else None
                if file is not None and member.size <= MAX_DELIVERABLE_BYTES and len(found) < MAX_FILES:
                    found[name] = file.read()
    except (tarfile.TarError, ValueError, EOFError):
        return None
    return dict(sorted(found.items()))
