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


HELD_OUT_FAMILIES: frozenset[str] = frozenset({"IB8", "CL8", "MC6", "S2", "C2"})
"""Families of office tasks that only ``test`` has: a score on them says what carried over to work never seen."""

OFFICE_TURN = ("train", "train", "train", "dev", "train", "train", "test")
"""Splits of office worlds in the order in which they are built, over and over."""


def office_worlds(count: int, split: str = "") -> list[tuple[str, int]]:
    """(split, index) of the first worlds of a build; more worlds only add to the end.

    Args:
        count: how many.
        split: all of this split; empty draws them in the proportion of ``OFFICE_TURN``.

    Raises:
        InputError: no such split.
    """
    if split and split not in SPLITS:
        raise InputError("split", f"{split!r} is unknown", allowed=", ".join(SPLITS))
    if split:
        return [(split, index) for index in range(count)]
    seen = dict.fromkeys(SPLITS, 0)
    found = []
    for number in range(count):
        name = OFFICE_TURN[number % len(OFFICE_TURN)]
        found.append((name, seen[name]))
        seen[name] += 1
    return found


def families_of(split: str, families: Iterable[str]) -> list[str]:
    """The families a split may have: those that are held out are the test's alone."""
    return [family for family in families if split == "test" or family not in HELD_OUT_FAMILIES]


def refuse_held_out(tasks: Iterable[Task]) -> None:
    """Make sure that no family that is held out for ``test`` is trained or tuned on.

    Raises:
        InputError: names the first task that breaks it.
    """
    for task in tasks:
        if task.family in HELD_OUT_FAMILIES and task.split != "test":
            raise InputError(task.id, f"family {task.family} is held out for test, the task is of {task.split!r}")
