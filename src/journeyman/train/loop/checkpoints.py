"""Which checkpoints stay: the last few, every n-th, and the best, by hard links beside the trainer's own.

The trainer writes and prunes ``checkpoints/`` as it likes; what is to be kept longer is linked into ``kept/`` as soon
as it is whole, so it costs no copy and no second write.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from journeyman.durable import storage_error, sync_directory
from journeyman.train.checkpoint import PREFIX, latest
from journeyman.train.loop.spec import Retention

BEST, CANDIDATE = "best", "candidate"


def newest(root: Path) -> Path | None:
    """The checkpoint to resume from, or None."""
    return latest(root / "checkpoints") or latest(root / "kept")


def keep(root: Path, checkpoint: Path, step: int, rule: Retention) -> None:
    """Link a checkpoint into ``kept/`` where a rule wants it, and remove those that no rule wants any more.

    Args:
        root: of the run.
        checkpoint: directory of the one just written.
        step: its number.

    Raises:
        StorageError: the place is not writable.
    """
    folder = root / "kept"
    if rule.last > 1 or (rule.every and step % rule.every == 0):
        _link(checkpoint, folder / checkpoint.name)
    found = sorted(p for p in folder.glob(f"{PREFIX}*") if p.is_dir()) if folder.is_dir() else []
    for old in found[: max(0, len(found) - rule.last)]:
        number = int(old.name.removeprefix(PREFIX))
        if not (rule.every and number % rule.every == 0):
            shutil.rmtree(old, ignore_errors=True)


def keep_best(root: Path, checkpoint: Path) -> Path:
    """Make ``kept/best`` the given checkpoint; returns it."""
    _link(checkpoint, root / "kept" / BEST)
    return root / "kept" / BEST


def hold_candidate(root: Path, checkpoint: Path) -> None:
    """Keep the checkpoint whose weights are being measured: by the time the figure is there, the trainer may have
    pruned it."""
    _link(checkpoint, root / "kept" / CANDIDATE)


def settle_candidate(root: Path, *, is_best: bool) -> None:
    """Make the held checkpoint the best one, or let it go."""
    held = root / "kept" / CANDIDATE
    if not held.is_dir():
        return
    if is_best:
        shutil.rmtree(root / "kept" / BEST, ignore_errors=True)
        held.replace(root / "kept" / BEST)
    else:
        shutil.rmtree(held, ignore_errors=True)


def _link(source: Path, target: Path) -> None:
    staging = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        shutil.rmtree(staging, ignore_errors=True)
        shutil.copytree(source, staging, copy_function=_one)
        shutil.rmtree(target, ignore_errors=True)
        staging.replace(target)
        sync_directory(target.parent)
    except OSError as error:
        shutil.rmtree(staging, ignore_errors=True)
        raise storage_error(target, error) from error


def _one(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(source, target)
