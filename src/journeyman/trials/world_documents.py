"""Documents of the quickstart's worlds, read once for all trials: tools and solutions look things up in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from journeyman.digest import sha256
from journeyman.errors import InputError
from journeyman.tasks.task import Task
from journeyman.tools import ReadCache
from journeyman.worlds.verify.program import ARCHIVE


def is_office(task: Task) -> bool:
    """A task of an office world: its tools, checks and solution read its files themselves."""
    return is_office_directory(task.path)


def is_office_directory(directory: Path) -> bool:
    """The same of a task directory."""
    return (directory / "tests" / ARCHIVE).is_file()


def documents_of(tasks: Sequence[Task]) -> dict[str, tuple[str, bytes]]:
    """Hex sha256 -> (path, bytes) of every file in the worlds of tasks, those of offices left out."""
    files: dict[str, tuple[str, bytes]] = {}
    for task in tasks:
        if task.world_digest and task.world.is_dir() and not is_office(task):
            for path in sorted(path for path in task.world.rglob("*") if path.is_file()):
                data = path.read_bytes()
                files.setdefault(sha256(data), (str(path), data))
    return files


def read_documents(cache: ReadCache, tasks: Sequence[Task], say: Callable[[str], None]) -> None:
    """Fill ``cache`` with the worlds of tasks; a document that cannot be read is said and stays unreadable.

    Raises:
        ReaderBroke, SandboxFault, StorageError: as ``ReadCache.fill``.
    """
    try:
        cache.fill(documents_of(tasks))
    except InputError as error:  # a tool says so too, to whoever asks for it
        say(str(error))
