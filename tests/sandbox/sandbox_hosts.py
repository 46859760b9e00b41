"""Hosts that offer less than this one, made with namespaces: another user, no user namespaces, no writable groups."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

NOBODY = 65534
#: A user namespace in which no further one can be made: what `sysctl user.max_user_namespaces=0` does to a machine.
NO_NAMESPACES = "echo 0 >/proc/sys/user/max_user_namespaces || exit 97; exec {command}"
#: Every control group is seen and none can be made or changed.
NO_GROUPS = (
    "grep cgroup /proc/self/mounts | while read device place rest; do mount -o remount,ro,bind $place || exit 97; done;"
    " exec {command}"
)


def without_namespaces(argv: list[str]) -> list[str]:
    """The command on a machine without user namespaces."""
    return ["unshare", "--user", "--map-root-user", "sh", "-c", NO_NAMESPACES.format(command=shlex.join(argv))]


def without_groups(argv: list[str]) -> list[str]:
    """The command, as root, where no control group can be made."""
    return ["unshare", "--mount", "sh", "-c", NO_GROUPS.format(command=shlex.join(argv))]


def as_nobody(argv: list[str]) -> list[str]:
    """The command as an ordinary user."""
    return ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", *argv]


def run(
    argv: list[str], *, env: dict[str, str] | None = None, limit_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run it, or skip where this host cannot play the other one."""
    if shutil.which(argv[0]) is None:
        pytest.skip(f"needs {argv[0]}")
    done = subprocess.run(
        argv, env=env or dict(os.environ), capture_output=True, text=True, timeout=limit_s, check=False, cwd="/"
    )
    if done.returncode == 97 or f"{argv[0]}: " in done.stderr:
        pytest.skip(f"this host cannot be made such a one: {done.stderr.strip()[:200]}")
    return done


def library_for_nobody(directory: Path, distributions: tuple[str, ...]) -> Path:
    """Copies of this package, its metadata and the distributions in a directory that every user can read."""
    library = directory / "library"
    shutil.copytree(Path(__file__).parents[2] / "src" / "journeyman", library / "journeyman")
    for name in distributions:
        for file in importlib.metadata.distribution(name).files or ():
            source = Path(str(file.locate()))
            if ".." not in file.parts and source.is_file():
                (library / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, library / file)
    metadata = Path(str(importlib.metadata.distribution("journeyman")._path))  # type: ignore[attr-defined]
    shutil.copytree(metadata, library / metadata.name, dirs_exist_ok=True)
    for path in [library, *library.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
    for parent in [directory, *directory.parents]:
        if parent != Path("/tmp") and parent.is_relative_to("/tmp"):
            parent.chmod(0o755)
    return library


def python_for_nobody() -> str:
    """An interpreter of at least 3.11 that another user can run, or a skip."""
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    for candidate in (os.path.realpath(sys.executable), "/usr/bin/python3"):
        if Path(candidate).exists() and shutil.which("setpriv"):
            done = subprocess.run(as_nobody([candidate, "-c", check]), capture_output=True, check=False)
            if done.returncode == 0:
                return candidate
    pytest.skip("no Python >= 3.11 that user 65534 can run")
