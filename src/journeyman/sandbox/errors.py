"""What can go wrong at the sandbox boundary. None of it is the policy's doing, none of it becomes a reward.

SandboxFault (cause sandbox_failed)
  SandboxStartFailed   it did not come up
  SandboxLost          it ended while it was needed
  SandboxLeak          something of it could not be removed
  TransferFailed       a file could not be read or written inside
  ExecTimeout          a command passed its deadline; its output so far is kept
  EngineFailed         a container program did not do what it was asked (oci/engine.py)
  CallRaised, CallTimedOut, CallKilled   the entry program's function failed
LimitUnenforceable     (exit 3) a requested limit cannot be kept on this machine
"""

from __future__ import annotations

from typing import ClassVar

from journeyman.errors import EnvironmentMissing, SystemFault


class SandboxFault(SystemFault):
    """Base of the room's errors."""

    cause: ClassVar[str] = "sandbox_failed"


class SandboxStartFailed(SandboxFault):
    """A sandbox did not come up; nothing of it remains.

    Args:
        label: of its spec.
        reason: what the provider said.
    """

    def __init__(self, label: str, reason: str) -> None:
        self.label, self.reason = label, reason
        super().__init__(f"sandbox for {label!r} did not start: {reason}")


class SandboxLost(SandboxFault):
    """A sandbox ended, or broke its protocol, while it was needed.

    Args:
        sandbox_id: which.
        operation: what was being done.
        detail: last words, e.g. its standard error.
        oom_kills: processes that its memory limit killed.
    """

    def __init__(self, sandbox_id: str, operation: str, detail: str = "", oom_kills: int = 0) -> None:
        self.sandbox_id, self.operation, self.detail, self.oom_kills = sandbox_id, operation, detail, oom_kills
        memory = f" (its memory limit killed {oom_kills})" if oom_kills else ""
        super().__init__(f"sandbox {sandbox_id} was lost during {operation}{memory}{': ' if detail else ''}{detail}")


class SandboxLeak(SandboxFault):
    """Something of a destroyed sandbox could not be removed.

    Args:
        sandbox_id: which.
        remains: processes, groups or directories, in words.
    """

    def __init__(self, sandbox_id: str, remains: str) -> None:
        self.sandbox_id, self.remains = sandbox_id, remains
        super().__init__(f"sandbox {sandbox_id} left {remains}")


class TransferFailed(SandboxFault):
    """A file could not be read or written inside.

    Args:
        path: as seen inside.
        reason: what the inside said.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path} in the sandbox: {reason}")


class ExecTimeout(SandboxFault):
    """A command passed its deadline. Every process of the sandbox but its supervisor was killed.

    Args:
        command: shell line or argv.
        limit_s: seconds it was allowed.
        elapsed_s: seconds until its tree was dead.
        stdout: what it had written, capped as in ExecResult.
        stderr: likewise.
        omitted_bytes: as in ExecResult.
    """

    def __init__(
        self, command: str, limit_s: float, elapsed_s: float, stdout: bytes, stderr: bytes, omitted_bytes: int
    ) -> None:
        self.command, self.limit_s, self.elapsed_s = command, limit_s, elapsed_s
        self.stdout, self.stderr, self.omitted_bytes = stdout, stderr, omitted_bytes
        super().__init__(f"{command[:200]!r} did not end within {limit_s:g} s; it was killed after {elapsed_s:.2f} s")


class CallRaised(SandboxFault):
    """The entry program's function raised.

    Args:
        type_name: class name of its exception.
        message: text of its exception.
    """

    def __init__(self, type_name: str, message: str) -> None:
        self.type_name, self.message = type_name, message
        super().__init__(f"{type_name}: {message}")


class CallTimedOut(SandboxFault):
    """A call passed its deadline and its process was killed.

    Args:
        limit_s: seconds allowed by the caller.
        by_program: the program's own, shorter deadline ended it.
    """

    def __init__(self, limit_s: float, *, by_program: bool = False) -> None:
        self.limit_s, self.by_program = limit_s, by_program
        super().__init__(
            "call passed the deadline of the program" if by_program else f"call did not end in {limit_s:g} s"
        )


class CallKilled(SandboxFault):
    """The process of a call was killed before it answered.

    Args:
        detail: signal or "out of memory".
        oom_kills: processes that the sandbox's memory limit killed.
    """

    def __init__(self, detail: str, oom_kills: int = 0) -> None:
        self.detail, self.oom_kills = detail, oom_kills
        super().__init__(f"call was killed: {detail}")


class LimitUnenforceable(EnvironmentMissing):
    """A requested limit cannot be kept on this machine and is not waived; nothing was started.

    Args:
        provider: its name.
        limit: key of CAPABILITIES.
        reason: what is missing.
        fix: what to do about it.
    """

    def __init__(self, provider: str, limit: str, reason: str, fix: str) -> None:
        self.provider, self.limit, self.reason, self.fix = provider, limit, reason, fix
        super().__init__(
            f"sandbox {provider!r} cannot enforce {limit}: {reason}\n  {fix}\n"
            f'  or accept it for trusted tasks only: sandbox.waive = ["{limit}"]'
        )
