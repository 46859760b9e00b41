"""Splits stay apart: a world belongs to one split, and a score takes tasks of one split only."""

from __future__ import annotations

from collections.abc import Iterable

from journeyman.digest import directory_sha256
from journeyman.errors import InputError
from journeyman.tasks.task import Task

SPLITS: tuple[str, ...] = ("sft", "train", "dev", "test")
"""Disjoint streams of worlds; what each may be used for is the caller's promise, kept below."""


def split_of(world_id: str) -> str:
    """The split a world belongs to, by its id. Raises InputError for an id that is not ours."""
    split, dash, index = world_id.rpartition("-")
    if not (dash and split in SPLITS and index.isdigit()):
        raise InputError(world_id, "is no world id", allowed="<split>-<index>, split one of " + ", ".join(SPLITS))
    return split


def refuse_mixed(tasks: Iterable[Task], split: str) -> None:
    """Make sure that every task of a score belongs to ``split``, by its own word and by its world.

    Raises:
        InputError: names the first task that does not, and says why.
    """
    if split not in SPLITS:
        raise InputError("split", f"{split!r} is unknown", allowed=", ".join(SPLITS))
    for task in tasks:
        if task.split != split:
            raise InputError(task.id, f"is a task of split {task.split!r} in a score of {split!r}", allowed=split)
        if split_of(task.world_id) != split:
            raise InputError(task.id, f"says {split!r}, but its world {task.world_id} is of another split")


def refuse_shared_content(tasks: Iterable[Task]) -> None:
    """Make sure that no two splits show the same files: the digest is computed here, not taken from the task.

    Raises:
        InputError: a task's files are not those its ``world_digest`` names, or occur in another split as well.
    """
    seen: dict[str, Task] = {}
    for task in tasks:
        digest = directory_sha256(task.world)
        if task.world_digest and digest != task.world_digest:
            raise InputError(str(task.world), "the files are not those that world_digest in task.toml names")
        first = seen.setdefault(digest, task)
        if first.split != task.split:
            raise InputError(
                task.id,
                f"has the same world files as {first.id}, but {task.split!r} and {first.split!r} must not share",
            )
