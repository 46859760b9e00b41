"""Provider ``none``: the same protocol without isolation, for trusted tests and hosts that have nothing better.

Paths inside are translated to a temporary directory where the protocol names them (``cwd``, mounts, transfers, words of
an argv, values of variables); the text of a shell line or a program is not. Choosing it waives every limit that is not
listed in ``supports``, and it warns.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

from journeyman.deadline import Deadline
from journeyman.errors import InputError
from journeyman.sandbox import cgroup, hierarchy, proctree, reaper, supervisor
from journeyman.sandbox.errors import SandboxStartFailed
from journeyman.sandbox.identity import Identity
from journeyman.sandbox.protocol import AGENT_ROOT, KILL_GRACE_S, SandboxIds, SandboxInfos, SandboxSpec
from journeyman.sandbox.recipe import environment_variables
from journeyman.sandbox.session import Session

_PYTHON = (f"{AGENT_ROOT}/bin/python3", f"{AGENT_ROOT}/bin/python")


class NotIsolated(UserWarning):
    """Commands run as this user, on this host, with its files and network."""


class Plain:
    """A provider that isolates nothing. State: the sandboxes it made that were not destroyed."""

    name = "none"

    def __init__(self) -> None:
        warnings.warn(
            "sandbox provider 'none' ISOLATES NOTHING: commands see this host's files, processes and network. "
            "Use it for trusted tasks only.",
            NotIsolated,
            stacklevel=2,
        )
        self._owner_pid = os.getpid()
        self._live: dict[str, Session] = {}
        atexit.register(self._close)

    @property
    def supports(self) -> frozenset[str]:
        """Limits of the control group, where one can be made."""
        parents = hierarchy.bases().parents
        limits = (("memory", "memory"), ("pids", "pids"), ("cpus", "cpu"))
        return frozenset({limit for limit, controller in limits if controller in parents} | {"overlay"})

    def create(self, spec: SandboxSpec, *, deadline_s: float = 30) -> Session:
        """See ``Provider.create``."""
        deadline = Deadline.after(deadline_s, "start of a sandbox")
        identity = Identity.fresh(spec.label)
        root = Path(tempfile.gettempdir(), reaper.DIRECTORY_PREFIX + identity.name)
        group = None
        try:
            root.mkdir(mode=0o700)
            group = cgroup.make_group(identity.name, spec, hierarchy.bases())
            session = self._start(spec, identity, group, root, deadline)
        except BaseException as error:
            if group is not None:
                group.remove(Deadline.after(1.0, "removal of an unused group"))
            shutil.rmtree(root, ignore_errors=True)
            if isinstance(error, OSError):
                raise SandboxStartFailed(spec.label, str(error)) from error
            raise
        self._live[session.id] = session
        return session

    def _start(
        self, spec: SandboxSpec, identity: Identity, group: cgroup.Group | None, root: Path, deadline: Deadline
    ) -> Session:
        _lay_out(spec, root)

        def translate(path: str) -> str:
            if path in _PYTHON:
                return f"{root}/bin/python3"
            return str(root) + path if path.startswith("/") else path

        inside = (AGENT_ROOT, "/tmp", spec.cwd, *(mount.target for mount in spec.mounts))

        def translate_word(word: str) -> str:
            return translate(word) if _names_one_of(word, inside) else word

        env = {name: translate_word(value) for name, value in environment_variables(spec).items()}
        env["PATH"] = f"{root}/bin:/usr/bin:/bin"
        env.pop("LD_LIBRARY_PATH", None)
        channel, processes = supervisor.start(
            spec,
            [identity.argv0],
            executable="/bin/sh",
            group=group,
            is_wrapped=False,
            env=env,
            cwd=translate(spec.cwd),
        )
        entry = None if spec.entry is None else [translate_word(word) for word in spec.entry]
        said = supervisor.await_ready(spec, channel, processes, entry, deadline)

        def clean(sandbox_id: str) -> SandboxIds:
            self._live.pop(sandbox_id, None)
            if group is None:  # what a command left in the background is no descendant of the supervisor any more
                proctree.kill_at_home_in(root, Deadline.after(KILL_GRACE_S, "end of background processes"))
            shutil.rmtree(root, ignore_errors=True)
            return [str(root)] if root.exists() else []

        return Session(
            identity.id,
            channel,
            processes,
            serves_frames=spec.entry is not None,
            stderr=said,
            translate=translate,
            translate_word=translate_word,
            on_destroy=clean,
        )

    def list(self, label: str | None = None) -> SandboxInfos:
        """See ``Provider.list``."""
        return reaper.list_sandboxes(label)

    def reap(self, label: str | None = None) -> SandboxIds:
        """See ``Provider.reap``."""
        return reaper.reap(label)

    def _close(self) -> None:
        if os.getpid() == self._owner_pid:
            for session in tuple(self._live.values()):
                with contextlib.suppress(Exception):
                    session.destroy(deadline_s=5)
            hierarchy.remove_parents()


def _names_one_of(word: str, directories: tuple[str, ...]) -> bool:
    """Whether a word is the path of one of them, of something below one, or of a directory above one."""
    below = word.rstrip("/") + "/"
    return len(below) > 1 and any(below.startswith(f"{d}/") or f"{d}/".startswith(below) for d in directories)


def _lay_out(spec: SandboxSpec, root: Path) -> None:
    """Make the directory that stands for the file system inside: links for mounts, copies for overlays."""
    binaries = root / "bin"
    for directory in (binaries, root / "tmp"):
        directory.mkdir()
    (binaries / "python3").symlink_to(Path(getattr(sys, "_base_executable", sys.executable)).resolve())
    if spec.environment is not None:
        _place(root, AGENT_ROOT).symlink_to(spec.environment.path.absolute())
        (root / "lib").symlink_to(spec.environment.path.absolute() / "lib")  # programs look for it beside bin
        for program in (spec.environment.path / "bin").iterdir():
            if not program.is_symlink():
                copy = binaries / program.name
                copy.write_text(program.read_text().replace(_PYTHON[0], f"{binaries}/python3", 1))
                copy.chmod(0o755)
    for mount in spec.mounts:
        if not mount.source.exists():
            raise InputError(f"mount {mount.target}", f"{mount.source} does not exist")
        place = _place(root, mount.target)
        if place == root / "tmp":
            place.rmdir()
        if mount.overlay:
            shutil.copytree(mount.source, place, symlinks=True)
        else:
            place.symlink_to(mount.source.absolute())
    Path(str(root) + spec.cwd).mkdir(parents=True, exist_ok=True)


def _place(root: Path, target: str) -> Path:
    place = Path(str(root) + target)
    place.parent.mkdir(parents=True, exist_ok=True)
    return place
