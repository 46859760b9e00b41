"""Every container of this program's kind on this machine, and the removal of those whose owner is gone."""

from __future__ import annotations

import contextlib
import shutil
import time
from dataclasses import dataclass

from journeyman.deadline import Deadline
from journeyman.sandbox import proctree
from journeyman.sandbox.identity import Identity
from journeyman.sandbox.oci import names
from journeyman.sandbox.oci.container import group_of, remove
from journeyman.sandbox.oci.engine import Engine, EngineFailed
from journeyman.sandbox.protocol import SandboxInfo

#: Seconds for one look at all containers, and for the removal of all orphans.
_LIST_S = 20.0
_REAP_S = 30.0


@dataclass(frozen=True)
class Found:
    """One container as the program lists it.

    Attributes:
        container: its id there.
        identity: whose it is.
        pid: host pid of its first process, 0 when it does not run or that is not known.
    """

    container: str
    identity: Identity
    pid: int


def containers(engine: Engine, label: str | None) -> list[Found]:
    """Those that exist, running or not. Raises EngineFailed."""
    deadline = Deadline.after(_LIST_S, "list of containers")
    filters = ["--filter", f"label={names.PLACE}={names.place()}"]
    if label is not None:
        filters += ["--filter", f"label={names.MARK}={label}"]
    pid = " {{.Pid}}" if engine.kind == "podman" else ""
    rows = engine.run("ps", "-a", "--no-trunc", *filters, "--format", "{{.ID}} {{.Names}}" + pid, deadline=deadline)
    found = []
    for row in rows.splitlines():
        container, name, *rest = row.split()
        identity = names.identity_of(name)
        if identity is None:
            continue
        number = int(rest[0]) if rest else 0
        if engine.kind == "docker" and engine.is_local:
            with contextlib.suppress(EngineFailed, ValueError):
                number = int(engine.run("inspect", "--format", "{{.State.Pid}}", container, deadline=deadline))
        found.append(Found(container, identity, number if engine.is_local else 0))
    return found


def list_sandboxes(engine: Engine, label: str | None) -> list[SandboxInfo]:
    """Sandboxes that are alive or left a container, by id. Raises EngineFailed."""
    infos = [
        SandboxInfo(i.id, i.label, i.owner_pid, i.is_orphan, _num_processes(engine, found))
        for found in containers(engine, label)
        if (i := found.identity).is_sandbox
    ]
    return sorted(infos, key=lambda info: info.id)


def _num_processes(engine: Engine, found: Found) -> int:
    """Processes of the container; 1 stands for "some" where they cannot be counted."""
    if not engine.is_local:
        return 1
    if not found.pid or proctree.is_zombie(found.pid):
        return 0
    group = group_of(found.pid)
    return len(group.processes()) if group is not None else 1 + len(proctree.descendants(found.pid))


def reap(engine: Engine, label: str | None) -> list[str]:
    """Remove the containers and directories of owners that are gone; returns the ids, sorted."""
    reaped: set[str] = set()
    deadline = Deadline.after(_REAP_S, "reaping of containers")
    while orphans := [found for found in containers(engine, label) if found.identity.is_orphan]:
        reaped.update(found.identity.id for found in orphans)
        remove(engine, [found.container for found in orphans], deadline)
        if deadline.has_passed:
            break
        time.sleep(0.05)  # a guard may be removing the same ones
    for path, identity in names.directories(label).items():
        if identity.is_orphan:
            reaped.add(identity.id)
            shutil.rmtree(path, ignore_errors=True)
    return sorted(reaped)
