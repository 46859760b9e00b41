"""Whose container it is, in its name and labels: what ``list``, ``reap`` and the guard find it by."""

from __future__ import annotations

import platform
import re
import tempfile
from functools import lru_cache
from pathlib import Path

from journeyman.sandbox.identity import Identity

#: First part of the name of every container.
_NAME = "journeyman."
#: Label that every container has.
MARK = "journeyman"
#: Label with the owning process.
OWNER = "journeyman.owner"
#: Label with the place where the owner's pid means something: a daemon may serve several.
PLACE = "journeyman.place"
#: Prefix of the directory that a sandbox has in the temporary directory.
DIRECTORY_PREFIX = "journeyman-oci~"


def container_name(identity: Identity) -> str:
    """The name of its container, which cannot hold a ``~``."""
    return _NAME + identity.name.replace("~", ".")


def identity_of(name: str) -> Identity | None:
    """Inverse of ``container_name``; None for anything else."""
    if not name.startswith(_NAME):
        return None
    return Identity.parse("~".join(name.removeprefix(_NAME).rsplit(".", 3)))


def owner_of(identity: Identity) -> str:
    """The process that owns it, as text without spaces."""
    return f"{identity.owner_pid}.{identity.owner_start}"


@lru_cache(maxsize=1)
def place() -> str:
    """This machine, or this container with pids of its own."""
    try:
        namespace = Path("/proc/self/ns/pid").readlink().name
    except OSError:
        namespace = ""
    return re.sub(r"[^A-Za-z0-9.-]", "", f"{platform.node()}.{namespace}")


def directory_of(identity: Identity) -> Path:
    """The directory with its root and its files for the container program."""
    return Path(tempfile.gettempdir(), DIRECTORY_PREFIX + identity.name)


def directories_of_owner(identity: Identity) -> str:
    """Pattern of a shell for the directories of an owner. The temporary directory may not hold blanks or patterns."""
    owner = f"{identity.owner_pid}~{identity.owner_start}"
    return f"{tempfile.gettempdir()}/{DIRECTORY_PREFIX}*~{owner}~*"


def directories(label: str | None) -> dict[Path, Identity]:
    """Every such directory of this machine (of one label)."""
    found = {}
    for path in Path(tempfile.gettempdir()).glob(DIRECTORY_PREFIX + "*"):
        identity = Identity.parse(path.name.removeprefix(DIRECTORY_PREFIX))
        if identity is not None and (label is None or identity.label == label):
            found[path] = identity
    return found
