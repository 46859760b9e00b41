"""Who owns a sandbox, written so that the kernel keeps the register.

The same name is the directory of the sandbox's control groups and part of ``argv[0]`` of its outermost process, so a
stranger can find and remove what a killed owner left, without a file that could go stale.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from journeyman.errors import InputError
from journeyman.sandbox.kernel_files import read

#: First part of ``argv[0]`` of the outermost process.
ARGV0_PREFIX = "journeyman-sandbox~"
#: First part of the id of a CPU meter, whose groups carry the same kind of name.
METER_PREFIX = "meter-"
#: First part of the id of a directory that a program works in beside its sandboxes (``scratch.py``).
SCRATCH_PREFIX = "scratch-"


_LABEL = re.compile(r"[A-Za-z0-9._-]{1,64}")


def check_label(label: str) -> None:
    """Raise InputError for what cannot be part of a name."""
    if not _LABEL.fullmatch(label):
        raise InputError("sandbox.label", f"{label!r} is not a label", allowed="1 to 64 of A-Z a-z 0-9 . _ -")


def start_ticks(pid: int) -> int | None:
    """When a process started (clock ticks since boot, field 22 of ``/proc/<pid>/stat``), None if it is gone."""
    try:
        text = read(f"/proc/{pid}/stat")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    if fields[0] in ("Z", "X"):
        return None
    return int(fields[19])


@lru_cache(maxsize=1)
def _own_start_ticks(pid: int) -> int:
    return start_ticks(pid) or 0


@dataclass(frozen=True)
class Identity:
    """One sandbox or meter: label, owner (pid and its start, so that a reused pid is not taken for it), and id."""

    label: str
    owner_pid: int
    owner_start: int
    id: str

    @classmethod
    def fresh(cls, label: str) -> Identity:
        """A new one owned by this process. Raises InputError for a bad label."""
        check_label(label)
        pid = os.getpid()
        return cls(label, pid, _own_start_ticks(pid), os.urandom(6).hex())

    @classmethod
    def parse(cls, name: str) -> Identity | None:
        """Inverse of ``name``; None for anything else."""
        parts = name.split("~")
        if len(parts) != 4 or not (parts[1].isdigit() and parts[2].isdigit()):
            return None
        return cls(parts[0], int(parts[1]), int(parts[2]), parts[3])

    def as_meter(self) -> Identity:
        """The same for a CPU meter."""
        return replace(self, id=METER_PREFIX + self.id)

    def as_scratch(self) -> Identity:
        """The same for a scratch directory."""
        return replace(self, id=SCRATCH_PREFIX + self.id)

    @property
    def is_sandbox(self) -> bool:
        """And no meter or scratch directory."""
        return not self.id.startswith((METER_PREFIX, SCRATCH_PREFIX))

    @property
    def name(self) -> str:
        return f"{self.label}~{self.owner_pid}~{self.owner_start}~{self.id}"

    @property
    def argv0(self) -> str:
        return ARGV0_PREFIX + self.name

    @property
    def is_orphan(self) -> bool:
        """Whether the owner is gone."""
        if Path("/proc/self").exists():
            return start_ticks(self.owner_pid) != self.owner_start
        try:
            os.kill(self.owner_pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return False
