"""Starts a supervisor with its descriptors and waits until it is ready; shared by the providers."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from journeyman.deadline import Deadline
from journeyman.sandbox import attach, shell
from journeyman.sandbox.capture import Captured
from journeyman.sandbox.cgroup import OWN_PROCESSES, Group
from journeyman.sandbox.channel import Channel
from journeyman.sandbox.launcher import launch
from journeyman.sandbox.processes import Processes
from journeyman.sandbox.protocol import SandboxSpec


def start(
    spec: SandboxSpec,
    argv: Sequence[str],
    *,
    executable: str,
    group: Group | None,
    is_wrapped: bool,
    data_fds: Sequence[int] = (),
    env: dict[str, str] | None = None,
    cwd: str | None = None,
) -> tuple[Channel, Processes]:
    """Start ``argv``, which becomes or contains a shell that reads its script from standard input.

    Args:
        spec: what is asked for.
        argv: ``argv[0]`` names the owner.
        executable: absolute path.
        group: that the processes are born in; None where the host has none.
        is_wrapped: the shell is the child of the started process.
        data_fds: descriptors that the process reads.
        env: of the started process.
        cwd: of the started process.

    Raises:
        OSError: it cannot be started; nothing is left of it.
    """
    entrance = group.entrance() if group is not None else ()

    def begin(stdin: int, stdout: int, stderr: int) -> subprocess.Popen[bytes]:
        return launch(
            [*entrance, executable, *argv[1:]] if entrance else argv,
            executable=entrance[0] if entrance else executable,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=data_fds,
            env=env,
            cwd=cwd,
            born_in=group.born_in if group is not None else (),
            return_to=group.return_to if group is not None else (),
            new_session=not is_wrapped,
        )

    ends = attach.attach(begin, serves_frames=spec.entry is not None)
    held = group.paths if group is not None else {}
    poll_memory_mb = None if "memory" in held else spec.memory_mb
    processes = Processes(ends.process, group, is_wrapped=is_wrapped, poll_memory_mb=poll_memory_mb)
    tick = processes.enforce_memory if processes.are_polled else None
    return Channel(ends.control, ends.stdout, ends.stderr, tick=tick), processes


def await_ready(
    spec: SandboxSpec, channel: Channel, processes: Processes, entry: Sequence[str] | None, deadline: Deadline
) -> Captured:
    """Send the opening lines and wait for the answer; returns what came on standard error meanwhile.

    Args:
        spec: what is asked for.
        channel: to the supervisor.
        processes: of the sandbox.
        entry: argv of the entry program as the shell is to run it, None to keep the shell.
        deadline: of the whole start.

    Raises:
        SandboxStartFailed: with what it said; its processes are dead and its descriptors closed.
    """
    held = processes.group.paths if processes.group is not None else {}
    opening = shell.opening(
        disk_mb=spec.disk_mb,
        pids=None if "pids" in held else spec.pids + OWN_PROCESSES,
        address_space_mb=None if "memory" in held else spec.memory_mb,
        entry=entry,
    )
    script = opening.encode(errors="surrogateescape")
    return attach.await_ready(spec.label, channel, script, deadline, end=processes.end)
