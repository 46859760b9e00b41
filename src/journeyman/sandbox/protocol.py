"""The words of the room: what a sandbox is asked for, what it answers, and the two protocols behind them.

Every method takes a deadline and returns or raises by it (plus a grace of ``KILL_GRACE_S`` in which the process tree is
killed). Paths named ``target`` or ``source`` of a transfer are paths as seen inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from journeyman.errors import InputError
from journeyman.sandbox.identity import check_label

#: Where the agent environment is mounted.
AGENT_ROOT = "/opt/agent"
#: Seconds that a kill may take after a deadline has passed.
KILL_GRACE_S = 5.0
#: Largest frame that ``Sandbox.call`` sends or accepts: bounds the memory that a hostile answer can take here.
MAX_FRAME_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class AgentEnvironment:
    """A directory with what may be used inside: ``bin``, ``lib`` and the fork server. Built by ``environment.py``.

    Attributes:
        path: the directory on the host.
        digest: hex sha256 of everything that went into it.
    """

    path: Path
    digest: str


@dataclass(frozen=True)
class Mount:
    """A host directory or file shown inside.

    Attributes:
        source: path on the host.
        target: absolute path inside.
        writable: changes go through to the host.
        overlay: copy-on-write; the inside may change it, the changes vanish with the sandbox. Directories only.
    """

    source: Path
    target: str
    writable: bool = False
    overlay: bool = False


@dataclass(frozen=True)
class SandboxSpec:
    """What a sandbox holds and what it may use.

    Attributes:
        label: who owns it (a run id of ``[A-Za-z0-9._-]``, at most 64); ``list`` and ``reap`` select by it.
        mounts: shown in this order, so a later one may lie inside an earlier one.
        environment: mounted read-only at ``/opt/agent``; adds PATH, PYTHONPATH and a Python interpreter.
        entry: None: a POSIX shell serves ``exec``. Else the argv of a program that answers frames, served by ``call``.
        cwd: working directory; a fresh tmpfs of ``disk_mb`` unless a mount covers it.
        env: further environment variables.
        memory_mb: all processes and tmpfs pages together.
        pids: processes and threads besides the supervisor.
        disk_mb: size of each tmpfs (``cwd``, ``/tmp``) and the largest file; an overlay's changes count as memory.
        cpus: CPU quota in cores, None for no limit.
        waive: limits that may stay unenforced: ``memory``, ``pids``, ``disk``, ``cpus``.
    """

    label: str
    mounts: tuple[Mount, ...] = ()
    environment: AgentEnvironment | None = None
    entry: tuple[str, ...] | None = None
    cwd: str = "/ws"
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    memory_mb: int = 512
    pids: int = 64
    disk_mb: int = 64
    cpus: float | None = None
    waive: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        check_label(self.label)
        for name in ("memory_mb", "pids", "disk_mb"):
            if getattr(self, name) <= 0:
                raise InputError(f"sandbox.{name}", f"must be positive, got {getattr(self, name)}")
        if self.cpus is not None and not self.cpus > 0:
            raise InputError("sandbox.cpus", f"must be positive, got {self.cpus}")
        for path in (self.cwd, *(mount.target for mount in self.mounts)):
            if not path.startswith("/") or path == "/" or ".." in path.split("/"):
                raise InputError("sandbox.mounts", f"{path!r} is not an absolute path below /")


@dataclass(frozen=True)
class ExecResult:
    """One command that ended by itself.

    Attributes:
        return_code: exit status as the shell gives it (128 + signal for a killed process, 127 for "not found").
        stdout: at most ``max_output_bytes``, cut between UTF-8 characters.
        stderr: likewise.
        omitted_bytes: how much of both was dropped.
        elapsed_s: wall-clock.
        oom_kills: processes that the memory limit killed meanwhile; above 0 it is no result of the task.
    """

    return_code: int
    stdout: bytes
    stderr: bytes
    omitted_bytes: int
    elapsed_s: float
    oom_kills: int = 0


@dataclass(frozen=True)
class SandboxInfo:
    """One sandbox as the host sees it, also after its owner died.

    Attributes:
        id: as ``Sandbox.id``.
        label: as ``SandboxSpec.label``.
        owner_pid: process that made it.
        is_orphan: that process is gone.
        num_processes: processes of it that are alive, its supervisor included.
    """

    id: str
    label: str
    owner_pid: int
    is_orphan: bool
    num_processes: int


#: Names for the two lists, since ``Provider`` has a method ``list``.
SandboxInfos = list[SandboxInfo]
SandboxIds = list[str]


class Sandbox(Protocol):
    """A place where untrusted actions run. Not shared between threads for parallel work: calls queue up."""

    id: str

    def exec(
        self,
        command: str | Sequence[str],
        *,
        deadline_s: float,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        max_output_bytes: int = 100_000,
    ) -> ExecResult:
        """Run a shell command line or an argv with empty stdin and wait for it.

        A missing program or a non-zero status is a result. Processes that it leaves in the background live on until the
        sandbox ends or a later deadline passes.

        Raises:
            ExecTimeout: the deadline passed; every process of the sandbox but its supervisor is dead.
            SandboxLost: the sandbox is gone.
        """
        ...

    def call(self, payload: bytes, *, deadline_s: float) -> bytes:
        """Send one frame to the entry program and return its answer.

        Raises:
            CallRaised: the program's function raised.
            CallTimedOut: this deadline or the program's own passed.
            CallKilled: the function's process was killed, mostly for its memory.
            SandboxLost: the program is gone.
        """
        ...

    def upload(self, data: bytes, target: str, *, deadline_s: float) -> None:
        """Write a file inside, with its missing parent directories. Raises TransferFailed, ExecTimeout, SandboxLost."""
        ...

    def download(self, source: str, *, deadline_s: float, max_bytes: int = 16_000_000) -> bytes:
        """Read a file inside. Raises TransferFailed (missing, unreadable, larger than max_bytes) and as ``upload``."""
        ...

    def alive(self, *, deadline_s: float) -> bool:
        """Whether the supervisor still answers; for an entry program, whether it still runs."""
        ...

    def strangers(self) -> Sequence[int] | None:
        """Processes besides the sandbox's own, as the host's kernel counts them; None where it keeps no count.

        Nothing inside can hide from it or add to it. An empty answer stays true until the next call.
        """
        ...

    def sweep(self, *, deadline_s: float) -> bool:
        """Kill every process but the sandbox's own, between two operations.

        Returns:
            False where only a command that passes its deadline does that.

        Raises:
            SandboxLost: the sandbox is gone. ExecTimeout: another operation went on until the deadline.
        """
        ...

    def root(self) -> int | None:
        """A descriptor of its root directory, for reading from outside (``outside.py``); None where there is none.

        To be closed by the caller, and to be read from only while nothing runs inside but its supervisor.
        """
        ...

    def destroy(self, *, deadline_s: float = 30) -> None:
        """Kill everything inside and remove every trace; a second call does nothing. Raises SandboxLeak."""
        ...


class Provider(Protocol):
    """A way to make sandboxes.

    Attributes:
        name: key in ``PROVIDERS``.
    """

    name: str

    @property
    def supports(self) -> frozenset[str]:
        """Limits and promises that hold here, see ``CAPABILITIES``."""
        ...

    def create(self, spec: SandboxSpec, *, deadline_s: float = 30) -> Sandbox:
        """Start a sandbox and wait until it is ready.

        Raises:
            LimitUnenforceable: a requested limit cannot be kept here and is not waived.
            SandboxStartFailed: it did not come up; nothing of it remains.
        """
        ...

    def list(self, label: str | None = None) -> SandboxInfos:
        """Sandboxes of this machine's user that are alive or left traces, of every process."""
        ...

    def reap(self, label: str | None = None) -> SandboxIds:
        """Remove what dead owners left; returns the ids. Sandboxes with a living owner are not touched."""
        ...


#: What ``Provider.supports`` may name, and what it promises.
CAPABILITIES: Mapping[str, str] = {
    "memory": "memory_mb bounds all processes and tmpfs pages together",
    "pids": "pids bounds the number of processes",
    "disk": "disk_mb bounds what can be written",
    "cpus": "cpus bounds CPU use",
    "files": "the host's files cannot be seen",
    "network": "there is no network",
    "privileges": "no capabilities, no nested user namespace, dangerous system calls denied",
    "processes": "other processes cannot be seen or signalled",
    "overlay": "copy-on-write mounts",
    "dies_with_owner": "all processes end when the owner is killed",
}
