"""What the user sees when something breaks that nobody planned for: one line, and where the traceback lies."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from journeyman.durable import STORAGE_ERRNOS, storage_error
from journeyman.errors import EnvironmentMissing, JourneymanError, StorageError, SystemFault
from journeyman.redact import process_redactor

#: Top-level modules that only come with an extra of the package.
EXTRA_OF = {
    "torch": "train",
    "transformers": "train",
    "safetensors": "train",
    "gguf": "smollm2",
    "ray": "scale",
    "vllm": "scale",
}


FULL_BYTES = 1 << 20
"""Less free space than this, and whatever broke broke for want of it: libraries hide the system's own word for it."""


class Breakdown(JourneymanError):
    """An error of our own. ``kept_at`` is the file that holds its traceback, if there is one."""

    exit_code = 4

    def __init__(self, error: BaseException, kept_at: Path | None) -> None:
        self.kept_at = kept_at
        where = f"traceback: {kept_at}" if kept_at else "traceback: the same command with `journeyman --debug ...`"
        super().__init__(f"journeyman broke, which is a bug of its own: {type(error).__name__}: {error}\n{where}")


def missing_extra(error: ImportError) -> EnvironmentMissing | None:
    """The sentence for a module that an extra would have brought; None for any other failed import."""
    module = (error.name or "").partition(".")[0]
    if module not in EXTRA_OF:
        return None
    extra = EXTRA_OF[module]
    return EnvironmentMissing(f"this needs {module}, which is not installed: pip install 'journeyman[{extra}]'")


def storage_problem(error: BaseException, directory: Path) -> StorageError | None:
    """The sentence for a run that broke because its disk is full or has become read-only; None for anything else."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, OSError) and link.errno in STORAGE_ERRNOS:
            return storage_error(Path(link.filename) if isinstance(link.filename, str) else directory, link)
        link = link.__cause__ or link.__context__
    try:
        is_full = shutil.disk_usage(directory).free < FULL_BYTES
    except OSError:
        return None
    if not is_full:
        return None
    hint = "free some space or choose another --out; the run continues from its last complete step"
    return StorageError(str(directory), f"the disk is full ({type(error).__name__}: {error})", hint=hint)


@contextmanager
def traceback_kept_in(directory: Path) -> Iterator[None]:
    """Write the traceback of whatever breaks to ``directory/traceback.txt``, when the run got as far as making it.

    Mistakes of the user pass through: their message is all there is to say. A full disk becomes one of them.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, JourneymanError) and not isinstance(error, SystemFault):
            raise
        if isinstance(error, ImportError) and (missing := missing_extra(error)):
            raise missing from error
        if full := storage_problem(error, directory):
            raise full from error
        path = directory / "traceback.txt"
        kept_at = path if _is_written(path, traceback.format_exc()) else None
        if isinstance(error, SystemFault):
            raise
        raise Breakdown(error, kept_at) from error


def _is_written(path: Path, text: str) -> bool:
    try:
        path.write_text(process_redactor()(text), encoding="utf-8")
    except OSError:
        return False
    return True
