"""What sandboxes left on this machine, of every provider, and its removal: behind ``journeyman sandbox list|reap``.

Nothing here needs a provider that works: the register is the kernel's and the container programs' own, so a machine on
which bubblewrap was just removed can still be cleaned. What a living owner holds is listed and never touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from journeyman.sandbox import reaper
from journeyman.sandbox.identity import METER_PREFIX, SCRATCH_PREFIX, Identity
from journeyman.sandbox.oci import names, register
from journeyman.sandbox.oci.engine import Engine, EngineFailed, engines

Kind = Literal["sandbox", "meter", "scratch"]


@dataclass(frozen=True)
class Trace:
    """One thing that carries a label.

    Attributes:
        provider: ``bwrap``, ``oci``, ``none``; of a meter or scratch directory "".
        kind: a sandbox, a CPU meter's group, or a directory that a program works in beside its sandboxes.
        id, label, owner_pid, is_orphan: as in ``SandboxInfo``.
        num_processes: that are alive.
        remains: groups, directories and containers, by path or name.
    """

    provider: str
    kind: Kind
    id: str
    label: str
    owner_pid: int
    is_orphan: bool
    num_processes: int
    remains: tuple[str, ...]


@dataclass(frozen=True)
class Sweep:
    """The end of a removal.

    Attributes:
        removed: orphans that are gone.
        leaks: orphans of which something is still there.
        living: what has a living owner.
        problems: container programs that did not answer, in words: their containers were not looked at.
    """

    removed: tuple[Trace, ...]
    leaks: tuple[Trace, ...]
    living: tuple[Trace, ...]
    problems: tuple[str, ...]


def survey(label: str | None = None) -> tuple[list[Trace], list[str]]:
    """Everything that carries a label (this label), by label and id; and which container programs did not answer."""
    found = list(_of_processes(label))
    problems = []
    contained: dict[str, Trace] = {}
    for engine in _working():
        try:
            contained |= {trace.id: trace for trace in _of_containers(engine, label)}
        except EngineFailed as error:
            problems.append(f"{engine.kind}: {error}")
    for path, identity in names.directories(label).items():
        if identity.id not in contained:
            contained[identity.id] = _trace(identity, "oci", 0, (str(path),))
    return sorted([*found, *contained.values()], key=lambda trace: (trace.label, trace.id)), problems


def sweep(label: str | None = None) -> Sweep:
    """Remove what dead owners left, with every provider's own means, and look again."""
    before, problems = survey(label)
    reaper.reap(label)
    for engine in _working():
        try:
            register.reap(engine, label)
        except EngineFailed as error:
            problems.append(f"{engine.kind}: {error}")
    after, _ = survey(label)
    still = {trace.id for trace in after}
    return Sweep(
        removed=tuple(trace for trace in before if trace.is_orphan and trace.id not in still),
        leaks=tuple(trace for trace in after if trace.is_orphan),
        living=tuple(trace for trace in after if not trace.is_orphan),
        problems=tuple(dict.fromkeys(problems)),
    )


def _working() -> list[Engine]:
    return [found for found in engines() if isinstance(found, Engine)]


def _of_processes(label: str | None) -> Iterator[Trace]:
    for trace in reaper.traces(label).values():
        identity = trace.identity
        provider = ("none" if trace.directories else "bwrap") if identity.is_sandbox else ""
        remains = (*map(str, trace.groups), *map(str, trace.directories))
        yield _trace(identity, provider, len(trace.processes()), remains)


def _of_containers(engine: Engine, label: str | None) -> Iterator[Trace]:
    containers = {found.identity.id: found for found in register.containers(engine, label)}
    for info in register.list_sandboxes(engine, label):
        if (found := containers.get(info.id)) is not None:
            yield _trace(found.identity, "oci", info.num_processes, (names.container_name(found.identity),))


def _trace(identity: Identity, provider: str, num_processes: int, remains: tuple[str, ...]) -> Trace:
    kind: Kind = "sandbox"
    if identity.id.startswith(METER_PREFIX):
        kind = "meter"
    elif identity.id.startswith(SCRATCH_PREFIX):
        kind = "scratch"
    return Trace(
        provider,
        kind,
        identity.id,
        identity.label,
        identity.owner_pid,
        identity.is_orphan,
        num_processes,
        remains,
    )
