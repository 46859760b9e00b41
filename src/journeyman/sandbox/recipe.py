"""bubblewrap's arguments for a sandbox (harness reference 2.3): what is mounted, in which namespaces, as whom.

Only what is needed is shown: programs and libraries of /usr, a Python installation without its packages, the agent
environment and the mounts of the spec. No host /etc, /proc, /home, /var or /run. The arguments travel through a file
descriptor, so no process inside or outside shows them on its command line.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from journeyman.errors import InputError
from journeyman.sandbox.interpreter import interpreter, system_masks
from journeyman.sandbox.protocol import AGENT_ROOT, Mount, SandboxSpec

#: Directories of programs and libraries; the links that merged-/usr systems keep at the root are copied as links.
_SYSTEM = ("/usr/bin", "/usr/lib", "/usr/lib64")
_ROOT_LINKS = ("/bin", "/lib", "/lib64")
#: User and group inside. Outside, files made inside belong to the caller.
USER_ID = 1000
#: The whole of /etc.
ETC: dict[str, bytes] = {
    "passwd": b"root:x:0:0::/:/bin/sh\nagent:x:1000:1000::/ws:/bin/sh\n",
    "group": b"root:x:0:\nagent:x:1000:\n",
    "hosts": b"127.0.0.1 localhost\n::1 localhost\n",
}


def encoded(words: Iterable[str]) -> bytes:
    """Arguments as ``--args`` takes them, each ended by NUL."""
    return b"".join(os.fsencode(word) + b"\0" for word in words)


@lru_cache(maxsize=1)
def _fixed() -> bytes:
    return encoded([*isolation(), *system()])


def prepare() -> None:
    """Work out what is the same for every sandbox, so that processes forked later need not."""
    _fixed()
    _python()


@lru_cache(maxsize=1)
def isolation() -> tuple[str, ...]:
    """Namespaces, identity and lifetime."""
    return (
        *("--unshare-all", "--unshare-user", "--disable-userns", "--uid", str(USER_ID), "--gid", str(USER_ID)),
        *("--cap-drop", "ALL", "--hostname", "sandbox"),
        *("--die-with-parent", "--new-session", "--as-pid-1", "--clearenv"),
    )


@lru_cache(maxsize=1)
def system() -> tuple[str, ...]:
    """/usr, the links at the root, /proc and /dev."""
    words: list[str] = []
    for path in _SYSTEM:
        if Path(path).is_symlink():
            words += ["--symlink", os.readlink(path), path]  # noqa: PTH115 - the link's own text
        elif Path(path).is_dir():
            words += ["--ro-bind", path, path]
    for path in _ROOT_LINKS:
        if Path(path).is_symlink():
            words += ["--symlink", os.readlink(path), path]  # noqa: PTH115
        elif Path(path).is_dir():
            words += ["--ro-bind", path, path]
    for path in system_masks():
        words += ["--tmpfs", path, "--remount-ro", path]
    words += ["--proc", "/proc", "--dev", "/dev"]  # with pseudo-terminals of its own
    # what bwrap makes has no bound, so only a file system of ours can be written there
    words += ["--size", str(16 << 20), "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    return tuple(words)


@lru_cache(maxsize=1)
def _python() -> bytes:
    python = interpreter()
    words: list[str] = []
    for source, target in python.mounts:
        words += ["--ro-bind", source, target]
    for path in python.masks:
        words += ["--tmpfs", path, "--remount-ro", path]
    return encoded(words)


def _mount(mount: Mount) -> Iterator[str]:
    source = str(mount.source)
    if not source.startswith("/"):
        source = str(mount.source.absolute())
    try:
        kind = os.stat(source).st_mode  # noqa: PTH116 - on the hot path
    except OSError:
        raise InputError(f"mount {mount.target}", f"{source} does not exist") from None
    if mount.overlay:
        if not stat.S_ISDIR(kind):
            raise InputError(f"mount {mount.target}", f"{source} is not a directory, so it cannot be an overlay")
        yield from ("--overlay-src", source, "--tmp-overlay", mount.target)
    else:
        yield from ("--bind" if mount.writable else "--ro-bind", source, mount.target)


def data_descriptor(data: bytes) -> int:
    """A descriptor from which ``data`` can be read once, for an option of bubblewrap that takes one."""
    descriptor = os.memfd_create("data")
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def environment_variables(spec: SandboxSpec) -> dict[str, str]:
    """The whole environment inside."""
    variables = {
        "PATH": "/usr/bin:/bin",
        "HOME": spec.cwd,
        "LANG": "C.UTF-8",
        "TMPDIR": "/tmp",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
    }
    if spec.environment is not None:
        variables["PATH"] = f"{AGENT_ROOT}/bin:/usr/bin:/bin"
        variables["PYTHONPATH"] = f"{AGENT_ROOT}/lib"
        library_path = interpreter().library_path
        if library_path is not None:
            variables["LD_LIBRARY_PATH"] = library_path
    variables.update(spec.env)
    return variables


def arguments(spec: SandboxSpec, *, seccomp_fd: int | None, etc_fds: dict[str, int]) -> bytes:
    """All of bubblewrap's options for ``spec`` as ``--args`` takes them, in order.

    ``--size`` and ``--perms`` belong to the next option. Raises InputError for a mount source that does not exist.
    """
    size = str(spec.disk_mb << 20)
    words: list[str] = []
    for name, descriptor in etc_fds.items():
        words += ["--perms", "0644", "--file", str(descriptor), f"/etc/{name}"]
    words += ["--size", size, "--perms", "1777", "--tmpfs", "/tmp"]
    python = b""
    if spec.environment is not None:
        python = _python()
        words += ["--ro-bind", str(spec.environment.path.absolute()), AGENT_ROOT]
    if not any(f"{spec.cwd}/".startswith(f"{mount.target.rstrip('/')}/") for mount in spec.mounts):
        words += ["--size", size, "--tmpfs", spec.cwd]
    for mount in spec.mounts:
        words += _mount(mount)
    words += ["--remount-ro", "/", "--chdir", spec.cwd]
    for name, value in environment_variables(spec).items():
        words += ["--setenv", name, value]
    if seccomp_fd is not None:
        words += ["--seccomp", str(seccomp_fd)]
    return _fixed() + python + encoded(words)
