"""Provider over any environment of Harbor (``BaseEnvironment``): its clouds as our sandboxes. Needs Python >= 3.12.

Run here against Harbor's interface with an environment of ours; **not run against any cloud**. The other direction,
our sandboxes as an environment of Harbor, is ``harbor_environment.py``.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from journeyman.deadline import Deadline
from journeyman.sandbox.bounded import bounded
from journeyman.sandbox.errors import SandboxStartFailed
from journeyman.sandbox.identity import Identity
from journeyman.sandbox.protocol import SandboxIds, SandboxInfos, SandboxSpec
from journeyman.sandbox.remote import Ran, Remotes, RemoteSandbox, refuse, send_mounts

T = TypeVar("T")


class HarborEnvironment(Protocol):
    """What is used of Harbor's ``BaseEnvironment``; it calls and is called by keyword."""

    async def start(self, force_build: bool) -> None: ...

    async def stop(self, delete: bool) -> None: ...

    async def exec(
        self, command: str, cwd: str | None = None, env: dict[str, str] | None = None, timeout_sec: int | None = None
    ) -> Any: ...

    async def upload_file(self, source_path: Path | str, target_path: str) -> None: ...

    async def download_file(self, source_path: str, target_path: Path | str) -> None: ...


class Loop:
    """One event loop in a thread of its own: the coroutines of a client belong to the loop it was made in."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="harbor-loop", daemon=True).start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for it, from any other thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


class HarborClient:
    """``remote.Client`` over an environment that was started."""

    def __init__(self, environment: HarborEnvironment, loop: Loop) -> None:
        self._environment, self._loop = environment, loop

    def run(self, command: str, cwd: str | None, env: Mapping[str, str], limit_s: float) -> Ran:
        """See ``remote.Client``."""
        work = self._environment.exec(
            command=command, cwd=cwd, env=dict(env) or None, timeout_sec=math.ceil(limit_s) + 1
        )
        result = self._loop.run(work)
        return Ran(result.return_code, (result.stdout or "").encode(), (result.stderr or "").encode())

    def write(self, data: bytes, target: str) -> None:
        """See ``remote.Client``."""
        with tempfile.TemporaryDirectory(prefix="journeyman-harbor") as place:
            file = Path(place, "file")
            file.write_bytes(data)
            self._loop.run(self._environment.upload_file(source_path=file, target_path=target))

    def read(self, source: str) -> bytes:
        """See ``remote.Client``."""
        with tempfile.TemporaryDirectory(prefix="journeyman-harbor") as place:
            file = Path(place, "file")
            self._loop.run(self._environment.download_file(source_path=source, target_path=file))
            return file.read_bytes()

    def stop(self) -> None:
        """See ``remote.Client``."""
        self._loop.run(self._environment.stop(delete=True))


class Harbor:
    """Sandboxes that are environments of Harbor.

    Args:
        make: makes an environment, not yet started, for a spec and a session id. Limits, image and network are its
            business: they are fixed when it is made.
        supports: keys of ``CAPABILITIES`` that the caller vouches for; Harbor promises none of them.
    """

    name = "harbor"

    def __init__(
        self, make: Callable[[SandboxSpec, str], HarborEnvironment], supports: frozenset[str] = frozenset()
    ) -> None:
        self._make, self._supports = make, supports
        self._loop = Loop()
        self._remotes = Remotes()

    @property
    def supports(self) -> frozenset[str]:
        """What the caller vouches for."""
        return self._supports

    def create(self, spec: SandboxSpec, *, deadline_s: float = 600) -> RemoteSandbox:
        """See ``Provider.create``; the default deadline is that of a cold build."""
        refuse(self.name, spec, self._supports)
        deadline = Deadline.after(deadline_s, "start of a sandbox")
        identity = Identity.fresh(spec.label)
        environment = self._make(spec, f"journeyman-{spec.label}-{identity.id}")
        client = HarborClient(environment, self._loop)
        try:
            bounded(lambda: self._loop.run(environment.start(force_build=False)), deadline)
        except Exception as error:
            sandbox = self._remotes.add(identity, client)
            sandbox.destroy()  # whatever came up
            raise SandboxStartFailed(spec.label, f"{type(error).__name__}: {error}") from error
        sandbox = self._remotes.add(identity, client)
        try:
            send_mounts(sandbox, spec.mounts, deadline)
        except BaseException:
            sandbox.destroy()
            raise
        return sandbox

    def list(self, label: str | None = None) -> SandboxInfos:
        """Those of this program: Harbor keeps no register."""
        return self._remotes.list(label)

    def reap(self, label: str | None = None) -> SandboxIds:
        """Nothing: what a killed program left at a service ends by that service's own time limit."""
        return []
