"""A directory to work in that does not outlive its owner: it carries the owner's name, so the reaper knows it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from journeyman.sandbox.identity import Identity
from journeyman.sandbox.reaper import DIRECTORY_PREFIX

REMOVAL_S = 2.0
"""How long the removal of a directory is tried again."""


def make_scratch(label: str) -> Path:
    """An empty directory, readable by this user alone, in the temporary directory; its maker removes it.

    What makers of the same label left that were killed is removed first, so nothing piles up where nobody reaps.

    Args:
        label: as in ``SandboxSpec.label``; ``reap`` finds the directory by it.

    Raises:
        InputError: a bad label.
        OSError: it cannot be made.
    """
    mine = Identity.fresh(label).as_scratch()
    place = Path(tempfile.gettempdir())
    for path in place.glob(f"{DIRECTORY_PREFIX}{label}~*"):
        other = Identity.parse(path.name.removeprefix(DIRECTORY_PREFIX))
        if other is not None and not other.is_sandbox and other.is_orphan:
            shutil.rmtree(path, ignore_errors=True)
    directory = place / (DIRECTORY_PREFIX + mine.name)
    directory.mkdir(mode=0o700)
    return directory


def remove_scratch(directory: Path) -> bool:
    """Remove a scratch directory; False when it is still there after ``REMOVAL_S`` seconds of trying.

    One try is not enough: what a process that is being killed still writes fills a directory that was emptied.
    """
    ends_at = time.monotonic() + REMOVAL_S
    while directory.exists():
        shutil.rmtree(directory, ignore_errors=True)
        if time.monotonic() > ends_at:
            return not directory.exists()
        if directory.exists():
            time.sleep(0.02)
    return True


@contextmanager
def scratch(label: str) -> Iterator[Path]:
    """``make_scratch``, and its removal."""
    directory = make_scratch(label)
    try:
        yield directory
    finally:
        remove_scratch(directory)
