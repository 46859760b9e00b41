"""Whether a bubblewrap isolates here, found out by starting something in it."""

from __future__ import annotations

import contextlib
import os
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from journeyman.sandbox import recipe
from journeyman.sandbox.bwrap_binary import BwrapProgram
from journeyman.sandbox.recipe import data_descriptor
from journeyman.sandbox.seccomp import deny_program

#: Seconds that one trial start may take.
_PROBE_S = 10.0


@dataclass(frozen=True)
class Lack:
    """Something this machine does not offer.

    Attributes:
        what: the capability.
        consequence: what cannot be promised without it.
        fix: what to do about it.
    """

    what: str
    consequence: str
    fix: str


@dataclass(frozen=True)
class Isolation:
    """What one bubblewrap gives here, found out by starting something in it.

    Attributes:
        has_user_namespaces, has_overlay, has_seccomp: as in ``HostReport``.
        lacks: those of the three that are missing.
    """

    has_user_namespaces: bool
    has_overlay: bool
    has_seccomp: bool
    lacks: tuple[Lack, ...]

    @property
    def is_usable(self) -> bool:
        return self.has_user_namespaces and self.has_overlay


@lru_cache(maxsize=4)
def isolation_of(program: BwrapProgram) -> Isolation:
    """Try a bubblewrap out; takes some tens of milliseconds, once for each program."""
    said, problem = _trial(program, "grep -c '^Seccomp:.*2$' /proc/self/status; echo ran")
    if not said.endswith("ran"):
        return Isolation(False, False, False, (_namespace_lack(problem),))
    has_seccomp = said.startswith("1")
    has_overlay = _trial(program, "touch /trial/x && echo ran", overlay=True)[0] == "ran"
    lacks = []
    if not has_seccomp:
        lacks.append(Lack("seccomp", "dangerous system calls are not denied inside", "use x86-64 or aarch64 hardware"))
    if not has_overlay:
        lacks.append(Lack("overlay", "copy-on-write mounts fail", "use Linux >= 5.11, and no overlay as file system"))
    return Isolation(True, has_overlay, has_seccomp, tuple(lacks))


def _trial(program: BwrapProgram, command: str, *, overlay: bool = False) -> tuple[str, str]:
    """Run a shell command in a sandbox of the recipe's isolation: (standard output, standard error or reason)."""
    words = [*recipe.isolation(), *recipe.system()]
    if overlay:
        words += ["--overlay-src", "/usr/bin", "--tmp-overlay", "/trial"]
    descriptors = []
    deny = deny_program()
    try:
        if deny is not None:
            descriptors.append(data_descriptor(deny))
            words += ["--seccomp", str(descriptors[0])]
        done = subprocess.run(
            [str(program.path), *words, "/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            pass_fds=descriptors,
            env={},
            timeout=_PROBE_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return "", str(error)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return done.stdout.strip(), done.stderr.strip() or f"status {done.returncode}"


def _namespace_lack(problem: str) -> Lack:
    settings = {
        "/proc/sys/kernel/unprivileged_userns_clone": ("0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        "/proc/sys/user/max_user_namespaces": ("0", "sysctl -w user.max_user_namespaces=15000"),
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": (
            "1",
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    }
    fixes = []
    for path, (bad, fix) in settings.items():
        with contextlib.suppress(OSError):
            if Path(path).read_text().strip() == bad:
                fixes.append(f"as root: {fix}")
    fallback = "in a container, allow user namespaces (docker run --security-opt seccomp=unconfined --privileged)"
    return Lack("user namespaces", f"commands are not isolated at all ({problem})", "; ".join(fixes) or fallback)
