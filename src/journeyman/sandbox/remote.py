"""A sandbox behind somebody else's client: what the adapters of Harbor and Modal share.

A client can start a command, move a file and end the sandbox; it cannot sweep a process tree. So a command that passes
its deadline ends the whole sandbox: nothing of it can go on beside a verifier. State: whether it has ended.
"""

from __future__ import annotations

import contextlib
import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol, TypeVar

from journeyman.deadline import Deadline
from journeyman.errors import DeadlinePassed, InputError
from journeyman.sandbox.bounded import bounded
from journeyman.sandbox.capture import Captured
from journeyman.sandbox.errors import ExecTimeout, LimitUnenforceable, SandboxLeak, SandboxLost, TransferFailed
from journeyman.sandbox.identity import Identity
from journeyman.sandbox.protocol import ExecResult, Mount, SandboxIds, SandboxInfo, SandboxInfos, SandboxSpec

T = TypeVar("T")

#: Seconds that the end of a sandbox may take before it is reported as a leak.
_STOP_S = 30.0


@dataclass(frozen=True)
class Ran:
    """A command as a client reports it: exit status and both outputs, whole."""

    return_code: int
    stdout: bytes
    stderr: bytes


class Client(Protocol):
    """One sandbox of a service. Every method may block for ever; what fails raises anything."""

    def run(self, command: str, cwd: str | None, env: Mapping[str, str], limit_s: float) -> Ran:
        """Run a shell line and wait for it."""
        ...

    def write(self, data: bytes, target: str) -> None:
        """Write a file whose parent exists."""
        ...

    def read(self, source: str) -> bytes:
        """Read a file."""
        ...

    def stop(self) -> None:
        """End the sandbox and delete it."""
        ...


class RemoteSandbox:
    """Implements ``Sandbox`` over a client; ``call`` needs an entry program, which no client can serve."""

    def __init__(self, sandbox_id: str, client: Client, on_end: Callable[[str], None]) -> None:
        self.id = sandbox_id
        self._client, self._on_end = client, on_end
        self._lock = threading.Lock()
        self._has_ended = False

    def exec(
        self,
        command: str | Sequence[str],
        *,
        deadline_s: float,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        max_output_bytes: int = 100_000,
    ) -> ExecResult:
        """See ``Sandbox.exec``. After an ``ExecTimeout`` the sandbox has ended."""
        line = command if isinstance(command, str) else shlex.join(command)
        if not line or "\0" in line:
            raise InputError("sandbox command", "is empty or holds a NUL byte")
        started = time.monotonic()
        deadline = Deadline.after(deadline_s, "command")
        quiet = f"sh -c {shlex.quote(line)} </dev/null"
        try:
            ran = self._do("exec", lambda: self._client.run(quiet, cwd, dict(env or {}), deadline_s), deadline)
        except DeadlinePassed:
            self._end_quietly()
            raise ExecTimeout(line, deadline_s, time.monotonic() - started, b"", b"", 0) from None
        stdout, stderr = Captured(max_output_bytes), Captured(max_output_bytes)
        stdout.add(ran.stdout)
        stderr.add(ran.stderr)
        (out, out_omitted), (err, err_omitted) = stdout.result(text=True), stderr.result(text=True)
        elapsed_s = time.monotonic() - started
        return ExecResult(ran.return_code, out, err, out_omitted + err_omitted, elapsed_s)

    def call(self, payload: bytes, *, deadline_s: float) -> bytes:
        """Refused: see the class."""
        raise ValueError(f"sandbox {self.id} serves exec, upload and download, not call")

    def upload(self, data: bytes, target: str, *, deadline_s: float) -> None:
        """See ``Sandbox.upload``."""
        deadline = Deadline.after(deadline_s, f"upload of {target}")
        parent = shlex.quote(str(PurePosixPath(target).parent))
        made = self.exec(f"mkdir -p {parent}", deadline_s=deadline_s)
        if made.return_code != 0:
            raise TransferFailed(target, made.stderr.decode(errors="replace").strip())
        self._transfer(target, lambda: self._client.write(data, target), deadline)

    def download(self, source: str, *, deadline_s: float, max_bytes: int = 16_000_000) -> bytes:
        """See ``Sandbox.download``. The size is asked for first, since a client reads a file as a whole."""
        deadline = Deadline.after(deadline_s, f"download of {source}")
        path = shlex.quote(source)
        asked = self.exec(f"[ -f {path} ] && wc -c <{path}", deadline_s=deadline_s)
        size = asked.stdout.decode(errors="replace").strip()
        if asked.return_code != 0 or not size.isdecimal():
            raise TransferFailed(source, "no such file")
        if int(size) > max_bytes:
            raise TransferFailed(source, f"is larger than {max_bytes} bytes")
        data = self._transfer(source, lambda: self._client.read(source), deadline)
        if len(data) > max_bytes:
            raise TransferFailed(source, f"is larger than {max_bytes} bytes")
        return data

    def alive(self, *, deadline_s: float) -> bool:
        """See ``Sandbox.alive``."""
        try:
            return self.exec("exit 0", deadline_s=deadline_s).return_code == 0
        except (SandboxLost, ExecTimeout):
            return False

    def strangers(self) -> Sequence[int] | None:
        """See ``Sandbox.strangers``."""
        return None

    def sweep(self, *, deadline_s: float) -> bool:
        """See ``Sandbox.sweep``."""
        return False

    def root(self) -> int | None:
        """See ``Sandbox.root``."""
        return None

    def destroy(self, *, deadline_s: float = _STOP_S) -> None:
        """See ``Sandbox.destroy``."""
        with self._lock:
            if self._has_ended:
                return
            self._has_ended = True
        try:
            bounded(self._client.stop, Deadline.after(deadline_s, f"removal of sandbox {self.id}"))
        except Exception as error:
            raise SandboxLeak(self.id, f"itself at its service: {type(error).__name__}: {error}") from error
        finally:
            self._on_end(self.id)

    def _do(self, operation: str, work: Callable[[], T], deadline: Deadline) -> T:
        """Raises DeadlinePassed, and SandboxLost for whatever the client raises."""
        if self._has_ended:
            raise SandboxLost(self.id, operation, "it was destroyed")
        try:
            return bounded(work, deadline)
        except DeadlinePassed:
            raise
        except Exception as error:
            raise SandboxLost(self.id, operation, f"{type(error).__name__}: {error}") from error

    def _transfer(self, path: str, work: Callable[[], T], deadline: Deadline) -> T:
        try:
            return self._do("transfer", work, deadline)
        except DeadlinePassed as passed:
            self._end_quietly()
            raise ExecTimeout(f"({deadline.what})", passed.limit_s, passed.limit_s, b"", b"", 0) from None
        except SandboxLost as lost:
            if self._has_ended:
                raise
            raise TransferFailed(path, lost.detail) from lost

    def _end_quietly(self) -> None:
        with contextlib.suppress(SandboxLeak):
            self.destroy()


class Remotes:
    """The sandboxes that one remote provider made and that have not ended: all that it can list."""

    def __init__(self) -> None:
        self._live: dict[str, tuple[Identity, RemoteSandbox]] = {}

    def add(self, identity: Identity, client: Client) -> RemoteSandbox:
        """A sandbox that is up."""
        sandbox = RemoteSandbox(identity.id, client, lambda sandbox_id: self._drop(sandbox_id))
        self._live[identity.id] = (identity, sandbox)
        return sandbox

    def _drop(self, sandbox_id: str) -> None:
        self._live.pop(sandbox_id, None)

    def list(self, label: str | None) -> SandboxInfos:
        """Those of this program; one process stands for "some"."""
        return [
            SandboxInfo(i.id, i.label, i.owner_pid, False, 1)
            for i, _ in tuple(self._live.values())
            if label in (None, i.label)
        ]

    def close(self) -> SandboxIds:
        """End them all, at exit; returns the ids of those that could not be."""
        left = []
        for identity, sandbox in tuple(self._live.values()):
            try:
                sandbox.destroy()
            except SandboxLeak:
                left.append(identity.id)
        return left


def refuse(provider: str, spec: SandboxSpec, supports: frozenset[str]) -> None:
    """Refuse what a remote provider cannot do, before anything is started.

    Raises:
        LimitUnenforceable: a limit that nobody vouches for and that is not waived.
        InputError: an entry program, or a mount that would write to this machine.
    """
    wanted = {"memory", "pids", "disk"} | ({"cpus"} if spec.cpus is not None else set())
    for limit in sorted(wanted - supports - spec.waive):
        raise LimitUnenforceable(provider, limit, "the service gives no such limit", "use a local provider")
    if spec.entry is not None:
        raise InputError("sandbox.entry", f"provider {provider} serves commands only, no entry program")
    if spec.environment is not None:
        raise InputError("sandbox.environment", f"provider {provider} takes its programs from its image")
    writable = [mount.target for mount in spec.mounts if mount.writable]
    if writable:
        raise InputError("sandbox.mounts", f"{', '.join(writable)} would write to this machine, which is elsewhere")


def send_mounts(sandbox: RemoteSandbox, mounts: Sequence[Mount], deadline: Deadline) -> None:
    """Copy what is mounted, file by file; the inside may change its copy. Links are left out."""
    for mount in mounts:
        if not mount.source.exists():
            raise InputError(f"mount {mount.target}", f"{mount.source} does not exist")
        files = [mount.source] if mount.source.is_file() else sorted(mount.source.rglob("*"))
        for file in files:
            if file.is_file() and not file.is_symlink():
                below = "" if file == mount.source else f"/{file.relative_to(mount.source).as_posix()}"
                sandbox.upload(file.read_bytes(), mount.target + below, deadline_s=max(0.1, deadline.remaining_s))
