"""Starts a supervisor with its descriptors and waits until it is ready; shared by the providers."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence

from journeyman.deadline import Deadline
from journeyman.sandbox import shell
from journeyman.sandbox.capture import Captured
from journeyman.sandbox.cgroup import OWN_PROCESSES, Group
from journeyman.sandbox.channel import Channel, ChannelBroken
from journeyman.sandbox.errors import SandboxStartFailed
from journeyman.sandbox.launcher import launch
from journeyman.sandbox.processes import Processes
from journeyman.sandbox.protocol import KILL_GRACE_S, SandboxSpec


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
    ours, theirs = socket.socketpair()
    stderr_read, stderr_write = os.pipe()
    child_ends = [stderr_write]
    host_ends = [stderr_read]
    stdout_read, stdout_write = None, theirs.fileno()
    if spec.entry is None:
        stdout_read, stdout_write = os.pipe()
        child_ends.append(stdout_write)
        host_ends.append(stdout_read)
    entrance = group.entrance() if group is not None else ()
    try:
        process = launch(
            [*entrance, executable, *argv[1:]] if entrance else argv,
            executable=entrance[0] if entrance else executable,
            stdin=theirs.fileno(),
            stdout=stdout_write,
            stderr=stderr_write,
            pass_fds=data_fds,
            env=env,
            cwd=cwd,
            born_in=group.born_in if group is not None else (),
            return_to=group.return_to if group is not None else (),
            new_session=not is_wrapped,
        )
    except BaseException:
        ours.close()
        for descriptor in host_ends:
            os.close(descriptor)
        raise
    finally:
        theirs.close()
        for descriptor in child_ends:
            os.close(descriptor)
    held = group.paths if group is not None else {}
    poll_memory_mb = None if "memory" in held else spec.memory_mb
    processes = Processes(process, group, is_wrapped=is_wrapped, poll_memory_mb=poll_memory_mb)
    tick = processes.enforce_memory if processes.are_polled else None
    return Channel(ours, stdout_read, stderr_read, tick=tick), processes


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
    words = Captured(4096)
    problem = f"not ready within {deadline.limit_s:g} s"
    is_ready = False
    try:
        channel.send(opening.encode(errors="surrogateescape"), deadline)
        is_ready = channel.ready(shell.READY, deadline, words)
    except ChannelBroken as broken:
        channel.take_outputs(Captured(0), words)
        problem = str(broken)
    finally:
        if not is_ready:
            processes.end(Deadline.after(KILL_GRACE_S, "end of a sandbox that did not start"))
            channel.close()
    if not is_ready:
        raise SandboxStartFailed(spec.label, words.result()[0].decode(errors="replace").strip() or problem)
    return words
