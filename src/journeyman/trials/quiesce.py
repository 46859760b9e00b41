"""QUIESCE: between the end of the agent and the first look at its deliverables, every process it left is killed.

Where the sandbox has a control group, the host's kernel says which processes are in it. Elsewhere a shell inside lists
the processes of its own namespace; it has to print exactly what an empty sandbox prints. A process that the agent left
can add to that text but take nothing from it, so the worst it can do is to be killed. The kill comes from outside: a
command that passes its deadline takes every process but the supervisor with it.
"""

from __future__ import annotations

import os
from typing import ClassVar

from journeyman.deadline import Deadline
from journeyman.sandbox.errors import CallTimedOut, ExecTimeout, SandboxFault
from journeyman.sandbox.protocol import Provider, Sandbox

_TRIES = 4
#: Prints its own pid and every process of the namespace. Builtins only: nothing may be started that would be listed.
_LIST = "cd /proc || exit 1; printf '%s %s' {nonce} $$; for p in [0-9]*; do printf ' %s' $p; done; echo"
_KILL_S = 0.01


class NotQuiet(SandboxFault):
    """Processes of the agent outlived every kill; nothing it delivered can be trusted.

    Args:
        sandbox_id: which sandbox.
        remains: what was still there.
    """

    cause: ClassVar[str] = "sandbox_failed"

    def __init__(self, sandbox_id: str, remains: str) -> None:
        self.sandbox_id, self.remains = sandbox_id, remains
        super().__init__(f"processes in sandbox {sandbox_id} could not be ended: {remains}")


def quiesce(
    sandbox: Sandbox, deadline_s: float, *, provider: Provider | None = None, serves_frames: bool = False
) -> bool:
    """Kill every process of a sandbox but its supervisor, and assert that none is left.

    Args:
        sandbox: where the agent worked.
        deadline_s: for all of it.
        provider: asked for the number of processes where no process namespace hides the others (``none``), and for
            sandboxes that serve frames.
        serves_frames: the sandbox has an entry program: it answers ``call``, not ``exec``.

    Returns:
        whether something had to be killed.

    Raises:
        NotQuiet: something is still alive. SandboxFault: the sandbox broke.
    """
    deadline = Deadline.after(deadline_s, f"quiescence of sandbox {sandbox.id}")
    if sandbox.strangers() == []:  # the kernel says so: nothing else has to be asked
        return False
    sees_inside = not serves_frames and (provider is None or "processes" in provider.supports)

    def look() -> str:
        found = sandbox.strangers()
        if found is not None:
            return f"{len(found)} processes" if found else ""
        return _listed(sandbox, deadline) if sees_inside else _counted(sandbox, provider)

    if sees_inside or sandbox.strangers() is not None:
        remains = look()
        if not remains:
            return False
    else:
        remains = "not looked at yet"
    for _ in range(_TRIES):
        if not sandbox.sweep(deadline_s=max(deadline.remaining_s, 0.1)):
            _kill(sandbox, serves_frames=serves_frames)
        remains = look()
        if not remains:
            return True
        if deadline.has_passed:
            break
    raise NotQuiet(sandbox.id, remains)


def _kill(sandbox: Sandbox, *, serves_frames: bool) -> None:
    """Let one command pass its deadline: the sandbox then kills everything but its supervisor."""
    try:
        if serves_frames:
            sandbox.call(b"", deadline_s=_KILL_S)
        else:
            sandbox.exec("sleep 600", deadline_s=_KILL_S)
    except (ExecTimeout, CallTimedOut):
        pass


def _listed(sandbox: Sandbox, deadline: Deadline) -> str:
    """What else runs inside, in words; "" when nothing does."""
    nonce = os.urandom(8).hex()
    result = sandbox.exec(_LIST.format(nonce=nonce), deadline_s=max(deadline.remaining_s, 0.1), cwd="/")
    words = result.stdout.decode(errors="replace").split()
    if result.return_code == 0 and len(words) >= 2 and words[0] == nonce and set(words[2:]) <= {"1", words[1]}:
        return ""
    return " ".join(words[2:])[:200] or "no list of processes"


def _counted(sandbox: Sandbox, provider: Provider | None) -> str:
    """The same from outside; the supervisor and bubblewrap's monitor, or a container's, are the two that may stay."""
    if provider is None:
        return ""
    found = [info for info in provider.list() if info.id == sandbox.id]
    count = max((info.num_processes for info in found), default=0)
    return f"{count} processes" if count > _SUPERVISORS.get(provider.name, 2) else ""


#: Processes of an idle sandbox as the host counts them.
_SUPERVISORS = {"none": 1, "bwrap": 2, "oci": 2}
