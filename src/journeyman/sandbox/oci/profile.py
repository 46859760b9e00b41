"""The system-call profile of a container: podman's own allow list without what ``bwrap`` denies.

podman allows ``unshare``, ``mount`` and the like to every container, since they fail without a capability; but a new
user namespace gives capabilities. Here they are denied, as is ``clone`` with a flag of a namespace; ``clone3``, whose
flags no filter can read, is reported as missing, upon which the C library uses ``clone``.

Format: the seccomp profile of the container programs (JSON), the rules by name and argument.
"""

from __future__ import annotations

import errno
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from journeyman.sandbox.seccomp import DENIED

_DEFAULT = Path("/usr/share/containers/seccomp.json")
#: Flags of clone(2) that make a namespace: NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
_NAMESPACES = 0x7E020000
_ERRNO, _ALLOW = "SCMP_ACT_ERRNO", "SCMP_ACT_ALLOW"


@lru_cache(maxsize=1)
def profile(default: Path = _DEFAULT) -> bytes:
    """The profile; where podman's own list is not found, everything but the denied is allowed."""
    try:
        base: dict[str, Any] = json.loads(default.read_text())
    except (OSError, ValueError):
        base = {"defaultAction": _ALLOW, "archMap": [], "syscalls": []}
    ours = {*DENIED, "clone", "clone3"}
    rules = []
    for rule in base["syscalls"]:
        names = [name for name in rule["names"] if name not in ours]
        if names:
            rules.append({**rule, "names": names})
    rules.append({"names": sorted(DENIED), "action": _ERRNO, "errnoRet": errno.EPERM, "args": []})
    rules.append({"names": ["clone3"], "action": _ERRNO, "errnoRet": errno.ENOSYS, "args": []})
    if base["defaultAction"] == _ALLOW:
        for flag in (1 << bit for bit in range(32) if _NAMESPACES >> bit & 1):
            rules.append({"names": ["clone"], "action": _ERRNO, "errnoRet": errno.EPERM, "args": [_flags(flag, flag)]})
    else:
        rules.append({"names": ["clone"], "action": _ALLOW, "args": [_flags(_NAMESPACES, 0)]})
    return json.dumps({**base, "syscalls": rules}).encode()


def _flags(mask: int, value: int) -> dict[str, Any]:
    """The first argument, masked, equals the value."""
    return {"index": 0, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}
