"""Provider over Modal's sandboxes. **Not run against the service**: its calls are checked against the real SDK's
signatures (``pip install modal``), no more.

Every request to the SDK is made from ``create_arguments``, ``exec_arguments`` and the few calls of ``ModalClient``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from journeyman.deadline import Deadline
from journeyman.errors import EnvironmentMissing
from journeyman.sandbox.bounded import bounded
from journeyman.sandbox.errors import SandboxStartFailed
from journeyman.sandbox.identity import Identity
from journeyman.sandbox.protocol import SandboxIds, SandboxInfo, SandboxInfos, SandboxSpec
from journeyman.sandbox.remote import Ran, Remotes, RemoteSandbox, refuse, send_mounts

MARK = "journeyman"
"""Tag of every sandbox, with its label; ``journeyman-owner`` names the owner."""

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def create_arguments(spec: SandboxSpec, identity: Identity, app: object, image: object, life_s: float) -> Arguments:
    """Arguments of ``modal.Sandbox.create``. Its default life is 300 s, so ``timeout`` is always given."""
    return ("sleep", "infinity"), {
        "app": app,
        "image": image,
        "env": dict(spec.env),
        "timeout": math.ceil(life_s),
        "workdir": spec.cwd,
        "memory": (spec.memory_mb, spec.memory_mb),
        "cpu": None if spec.cpus is None else (spec.cpus, spec.cpus),
        "block_network": True,
        "tags": {MARK: spec.label, f"{MARK}-owner": f"{identity.owner_pid}.{identity.owner_start}"},
    }


def exec_arguments(command: str, cwd: str | None, env: Mapping[str, str], limit_s: float) -> Arguments:
    """Arguments of ``modal.Sandbox.exec``."""
    options = {"timeout": math.ceil(limit_s) + 1, "workdir": cwd, "env": dict(env), "text": False}
    return ("sh", "-c", command), options


class ModalClient:
    """``remote.Client`` over one sandbox of Modal."""

    def __init__(self, sandbox: Any) -> None:
        self._sandbox = sandbox

    def run(self, command: str, cwd: str | None, env: Mapping[str, str], limit_s: float) -> Ran:
        """See ``remote.Client``."""
        words, options = exec_arguments(command, cwd, env, limit_s)
        process = self._sandbox.exec(*words, **options)
        stdout, stderr = process.stdout.read(), process.stderr.read()
        return Ran(process.wait(), stdout, stderr)

    def write(self, data: bytes, target: str) -> None:
        """See ``remote.Client``."""
        self._sandbox.filesystem.write_bytes(data, target)

    def read(self, source: str) -> bytes:
        """See ``remote.Client``."""
        data: bytes = self._sandbox.filesystem.read_bytes(source)
        return data

    def stop(self) -> None:
        """See ``remote.Client``."""
        self._sandbox.terminate(wait=True)


class Modal:
    """Sandboxes at Modal.

    Args:
        app_name: of the Modal app that they belong to; made when missing.
        image: ``modal.Image``; by default Debian slim.
        life_s: seconds after which the service ends a sandbox, whatever happens here.

    Raises:
        EnvironmentMissing: the SDK is not installed.
    """

    name = "modal"

    def __init__(self, app_name: str = MARK, image: object | None = None, *, life_s: float = 4 * 3600.0) -> None:
        try:
            import modal
        except ImportError as error:
            raise EnvironmentMissing("provider modal needs its SDK: pip install modal") from error
        self._modal: Any = modal
        self._app_name, self._image, self._life_s = app_name, image, life_s
        self._remotes = Remotes()

    @property
    def supports(self) -> frozenset[str]:
        """What the service documents; none of it was tried from here."""
        return frozenset({"memory", "cpus", "network", "files", "processes"})

    def create(self, spec: SandboxSpec, *, deadline_s: float = 600) -> RemoteSandbox:
        """See ``Provider.create``; the default deadline is that of a cold build."""
        refuse(self.name, spec, self.supports)
        deadline = Deadline.after(deadline_s, "start of a sandbox")
        identity = Identity.fresh(spec.label)
        try:
            client = ModalClient(bounded(lambda: self._start(spec, identity), deadline))
        except Exception as error:
            raise SandboxStartFailed(spec.label, f"{type(error).__name__}: {error}") from error
        sandbox = self._remotes.add(identity, client)
        try:
            send_mounts(sandbox, spec.mounts, deadline)
        except BaseException:
            sandbox.destroy()
            raise
        return sandbox

    def _start(self, spec: SandboxSpec, identity: Identity) -> Any:
        app = self._modal.App.lookup(self._app_name, create_if_missing=True)
        image = self._image if self._image is not None else self._modal.Image.debian_slim()
        words, options = create_arguments(spec, identity, app, image, self._life_s)
        return self._modal.Sandbox.create(*words, **options)

    def list(self, label: str | None = None) -> SandboxInfos:
        """All with our tag at the service; none is an orphan, for an owner on another machine cannot be looked at."""
        tags = {} if label is None else {MARK: label}
        found = []
        for sandbox in self._modal.Sandbox.list(tags=tags):
            given = sandbox.get_tags()
            if MARK in given:
                pid = given.get(f"{MARK}-owner", "0").partition(".")[0]
                found.append(SandboxInfo(sandbox.object_id, given[MARK], int(pid), False, 1))
        return found

    def reap(self, label: str | None = None) -> SandboxIds:
        """Nothing: whether an owner elsewhere lives is not known; the service ends each after ``life_s``."""
        return []
