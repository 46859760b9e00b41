"""Provider ``oci``: one container of podman or docker per sandbox.

A start costs some hundred milliseconds, a command in a living one some milliseconds: it goes through the program that
stays attached. State: the sandboxes made here that were not destroyed, the guard, and agent environments built for an
image. What it keeps on disk lies in one directory per sandbox in the temporary directory, named as its container.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import subprocess
import threading
from pathlib import Path

from journeyman.deadline import Deadline
from journeyman.sandbox import attach, reaper
from journeyman.sandbox.channel import Channel
from journeyman.sandbox.errors import LimitUnenforceable, SandboxStartFailed
from journeyman.sandbox.identity import Identity
from journeyman.sandbox.launcher import launch
from journeyman.sandbox.oci import arguments, guest, names, register, root
from journeyman.sandbox.oci.container import Container
from journeyman.sandbox.oci.engine import Engine, EngineFailed, find_engine
from journeyman.sandbox.oci.guard import Guard
from journeyman.sandbox.oci.profile import profile
from journeyman.sandbox.oci.streams import Streams
from journeyman.sandbox.protocol import KILL_GRACE_S, SandboxIds, SandboxInfos, SandboxSpec
from journeyman.sandbox.session import Session

_FIX = "run on cgroup v2 (rootless containers get no limits on v1), or as root (docs/sandbox.md, containers)"


class Oci:
    """Containers as sandboxes."""

    name = "oci"

    def __init__(self, engine: Engine | None = None, image: str | None = None) -> None:
        """
        Args:
            engine: the container program, by default the first one that works.
            image: with Python, instead of the host's own programs; by default JOURNEYMAN_OCI_IMAGE.

        Raises:
            EnvironmentMissing: none works here, or the image is not here and cannot be pulled.
        """
        self._engine = engine or find_engine()
        self._image = image or root.chosen_image(self._engine)
        if self._image is not None:
            root.ensure_image(self._engine, self._image)
        self._owner_pid = os.getpid()
        self._live: dict[str, Session] = {}
        self._lock = threading.Lock()
        self._guard: Guard | None = None
        atexit.register(self._close)

    @property
    def supports(self) -> frozenset[str]:
        """What it keeps here: the limits that the container program can set, and what containers always give."""
        always = {"disk", "files", "network", "processes", "overlay", "dies_with_owner"}
        # a virtual machine cannot read our profile and podman's own lets namespaces nest; docker keeps the caller's id
        if self._engine.is_local and self._engine.kind == "podman":
            always.add("privileges")
        return frozenset(always | self._engine.limits)

    def create(self, spec: SandboxSpec, *, deadline_s: float = 30) -> Session:
        """See ``Provider.create``."""
        wanted = {"memory", "pids", "disk"} | ({"cpus"} if spec.cpus is not None else set())
        for limit in sorted(wanted - self.supports - spec.waive):
            raise LimitUnenforceable(self.name, limit, f"{self._engine.kind} cannot set it here", _FIX)
        deadline = Deadline.after(deadline_s, "start of a sandbox")
        if self._image is not None and spec.environment is not None:
            spec = guest.with_guest_environment(spec, self._engine, self._image)
            deadline = Deadline.after(deadline_s, "start of a sandbox")  # the first one builds it, which takes minutes
        identity = Identity.fresh(spec.label)
        directory = names.directory_of(identity)
        try:
            self._post_guard(identity)
            (directory / "empty").mkdir(parents=True)
            directory.chmod(0o700)
            (directory / "seccomp.json").write_bytes(profile())
            words = self._words(spec, identity, directory, deadline)
            session = self._start(spec, identity, words, deadline)
        except BaseException as error:
            shutil.rmtree(directory, ignore_errors=True)
            if isinstance(error, OSError | EngineFailed):
                raise SandboxStartFailed(spec.label, str(error)) from error
            raise
        self._live[session.id] = session
        return session

    def _words(self, spec: SandboxSpec, identity: Identity, directory: Path, deadline: Deadline) -> list[str]:
        is_guest = self._image is not None
        if self._image is not None:
            base: tuple[str, ...] = (self._image,)
        elif self._engine.kind == "podman":
            root.lay_out(directory / "root", spec)
            base = ("--rootfs", str(directory / "root"))
        else:
            base = (root.skeleton_image(self._engine, deadline),)
        words = arguments.run_words(spec, self._engine, identity, base, is_guest=is_guest)
        return self._engine.words(*words)

    def _start(self, spec: SandboxSpec, identity: Identity, words: list[str], deadline: Deadline) -> Session:
        channel, container = _attach(spec, words, self._engine, names.container_name(identity))
        script = arguments.boot_script(spec, self._engine, is_guest=self._image is not None)
        pidfile = names.directory_of(identity) / "pid"
        said = attach.await_ready(
            spec.label, channel, script, deadline, end=container.end, look=lambda: container.find(pidfile, deadline)
        )
        return Session(
            identity.id,
            channel,
            container,
            serves_frames=spec.entry is not None,
            stderr=said,
            on_destroy=lambda sandbox_id: self._forget(sandbox_id, identity, container),
        )

    def list(self, label: str | None = None) -> SandboxInfos:
        """See ``Provider.list``."""
        return register.list_sandboxes(self._engine, label)

    def reap(self, label: str | None = None) -> SandboxIds:
        """See ``Provider.reap``."""
        reaped = register.reap(self._engine, label)
        return sorted({*reaped, *reaper.reap(label)})  # meters and scratch directories are no containers

    def _post_guard(self, identity: Identity) -> None:
        with self._lock:
            if self._owner_pid != os.getpid():  # forked: what the parent made is the parent's
                self._owner_pid, self._guard, self._live = os.getpid(), None, {}
            if self._guard is None:
                self._guard = Guard(self._engine, identity)

    def _forget(self, sandbox_id: str, identity: Identity, container: Container) -> SandboxIds:
        self._live.pop(sandbox_id, None)
        remains = container.remains(Deadline.after(KILL_GRACE_S, "look at a removed container"))
        directory = names.directory_of(identity)
        shutil.rmtree(directory, ignore_errors=True)
        return [*remains, str(directory)] if directory.exists() else remains

    def _close(self) -> None:
        """At exit: end what is still alive."""
        if os.getpid() != self._owner_pid:
            return
        for session in tuple(self._live.values()):
            with contextlib.suppress(Exception):
                session.destroy(deadline_s=10)
        if self._guard is not None and not self._live:
            self._guard.dismiss()


def _attach(spec: SandboxSpec, words: list[str], engine: Engine, name: str) -> tuple[Channel, Container]:
    """Start the program that runs the container and stays attached to its three streams. Raises OSError."""

    def begin(stdin: int, stdout: int, stderr: int) -> subprocess.Popen[bytes]:
        return launch(
            words,
            executable=words[0],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=dict(os.environ),
            cwd="/",
            new_session=True,
        )

    ends = attach.attach(begin, serves_frames=spec.entry is not None)
    container = Container(ends.process, engine, name)
    if ends.stdout is None:
        return Channel(ends.control, None, ends.stderr), container
    return Streams(ends.control, ends.stdout, ends.stderr), container
