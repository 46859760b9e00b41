"""Takes deliverables out of a sandbox, after QUIESCE: regular files below one directory, bounded in number and size."""

from __future__ import annotations

from journeyman.deadline import Deadline
from journeyman.sandbox.errors import TransferFailed
from journeyman.sandbox.protocol import Sandbox
from journeyman.tasks.artifacts import MAX_DELIVERABLE_BYTES, stays_inside

MAX_FILES = 200
MAX_TOTAL_BYTES = 64_000_000


def collect_files(sandbox: Sandbox, logs: str, limit_s: float, transfer_s: float) -> dict[str, bytes]:
    """Files below ``<logs>/artifacts`` by relative name. Links are not followed, special files not opened.

    A file that is longer than a verifier reads, and what comes after ``MAX_FILES`` files or ``MAX_TOTAL_BYTES`` bytes,
    is left out: it could not be graded.

    Raises:
        SandboxFault: the sandbox broke or a deadline passed.
    """
    deadline = Deadline.after(limit_s, "collection of deliverables")
    folder = f"{logs}/artifacts"
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
