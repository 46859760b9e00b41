"""What the host writes to the supervisor: a POSIX shell that reads its script from a socket on standard input.

One line per command. Each answers ``<token> <status>`` on the same socket. A command's own standard input is
/dev/null, so it cannot read the script; its output goes to the pipes the shell was started with. It needs
nothing that dash, bash and busybox do not share.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from journeyman.errors import InputError

READY = b"ready\n"
#: When memory runs out, the kernel is to take a command and not the supervisor.
_DIE_FIRST = "{ echo 800 >/proc/self/oom_score_adj || :; } 2>/dev/null"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quoted(text: str) -> str:
    """A word of a shell line. Raises InputError for NUL."""
    if "\0" in text:
        raise InputError("sandbox command", "holds a NUL byte")
    return shlex.quote(text)


def opening(*, disk_mb: int, pids: int | None, address_space_mb: int | None, entry: Sequence[str] | None) -> str:
    """The first lines: resource limits, then ``ready``, then the entry program if there is one.

    Args:
        disk_mb: largest file, MiB (``ulimit -f`` counts 512-byte blocks).
        pids: RLIMIT_NPROC where no pids group holds.
        address_space_mb: RLIMIT_AS where no memory group holds.
        entry: argv that replaces the shell.
    """
    parts = ["ulimit -c 0", f"ulimit -f {disk_mb * 2048}"]
    if pids is not None:
        parts.append(f"ulimit -p {pids} 2>/dev/null || ulimit -u {pids}")
    if address_space_mb is not None:
        parts.append(f"ulimit -v {address_space_mb * 1024}")
    parts.append("echo ready >&0")
    if entry is not None:
        parts.append("exec " + " ".join(quoted(word) for word in entry))
    return "\n".join(parts) + "\n"


def command_body(command: str | Sequence[str], cwd: str | None, env: Mapping[str, str] | None) -> tuple[str, str]:
    """What runs a command, without the answer, and the command as text. Raises InputError for NUL or bad names."""
    if isinstance(command, str):
        shown, program = command, f"/bin/sh -c {quoted(command)}"
    else:
        if not command:
            raise InputError("sandbox command", "is empty")
        shown = program = " ".join(quoted(word) for word in command)
    steps = [_DIE_FIRST]
    if cwd is not None:
        steps.append(f"cd {quoted(cwd)}")
    for name, value in (env or {}).items():
        if not _NAME.fullmatch(name):
            raise InputError("sandbox env", f"{name!r} is not the name of a variable")
        steps.append(f"export {name}={quoted(value)}")
    steps.append(f"exec {program}")
    return f"( {' && '.join(steps)} ) </dev/null", shown


def command_line(
    token: str, command: str | Sequence[str], cwd: str | None, env: Mapping[str, str] | None
) -> tuple[bytes, str]:
    """The line that runs a command, and the command as text for messages. Raises InputError for NUL or bad names."""
    body, shown = command_body(command, cwd, env)
    return f'{body}; echo "{token} $?" >&0\n'.encode(errors="surrogateescape"), shown


def upload_steps(size: int, target: str) -> tuple[str, str]:
    """(what looks whether the file can be written, what takes its bytes and writes them)."""
    path = quoted(target)
    folder = quoted(target.rpartition("/")[0] or "/")
    take = f"head -c {size} | {{ cat >{path}; s=$?; [ $s = 0 ] || cat >/dev/null; exit $s; }}"
    return f"( mkdir -p {folder} && : >{path} ) </dev/null", take


def upload_lines(token: str, size: int, target: str) -> bytes:
    """Answers ``<token> go``, then takes ``size`` bytes from the socket, then ``<token> <status>``.

    The host sends the bytes after ``go`` only, so the shell's read-ahead cannot swallow them. They are taken in full
    also when they cannot be written, else the rest would be read as script.
    """
    check, take = upload_steps(size, target)
    line = f'if {check}; then echo "{token} go" >&0; {take}; echo "{token} $?" >&0; else echo "{token} 1" >&0; fi\n'
    return line.encode(errors="surrogateescape")


def download_command(source: str, max_bytes: int) -> str:
    """Prints at most one byte more than ``max_bytes``, so that a larger file is noticed."""
    path = quoted(source)
    return f"[ -f {path} ] || {{ echo no such file >&2; exit 1; }}; exec head -c {max_bytes + 1} {path}"
