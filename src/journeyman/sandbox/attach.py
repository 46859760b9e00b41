"""A started program and the host's ends of its three streams; shared by every provider that starts a supervisor."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from journeyman.deadline import Deadline
from journeyman.sandbox.capture import Captured
from journeyman.sandbox.channel import Channel, ChannelBroken
from journeyman.sandbox.errors import SandboxStartFailed
from journeyman.sandbox.protocol import KILL_GRACE_S
from journeyman.sandbox.shell import READY


@dataclass(frozen=True)
class Ends:
    """What the host holds of a program that it started.

    Attributes:
        process: the program.
        control: other end of its standard input; of its standard output too where that serves frames.
        stdout: read end of its standard output, None where that is the socket.
        stderr: read end of its standard error.
    """

    process: subprocess.Popen[bytes]
    control: socket.socket
    stdout: int | None
    stderr: int


def attach(begin: Callable[[int, int, int], subprocess.Popen[bytes]], *, serves_frames: bool) -> Ends:
    """Make the streams and start a program on them.

    Args:
        begin: starts it, given descriptors for its standard input, output and error.
        serves_frames: its output goes to the socket too, as frames do; else it has a pipe of its own.

    Raises:
        OSError: it cannot be started; nothing is left of it.
    """
    ours, theirs = socket.socketpair()
    stderr_read, stderr_write = os.pipe()
    child_ends, host_ends = [stderr_write], [stderr_read]
    stdout_read, stdout_write = None, theirs.fileno()
    if not serves_frames:
        stdout_read, stdout_write = os.pipe()
        child_ends.append(stdout_write)
        host_ends.append(stdout_read)
    try:
        process = begin(theirs.fileno(), stdout_write, stderr_write)
    except BaseException:
        ours.close()
        for descriptor in host_ends:
            os.close(descriptor)
        raise
    finally:
        theirs.close()
        for descriptor in child_ends:
            os.close(descriptor)
    return Ends(process, ours, stdout_read, stderr_read)


def await_ready(
    label: str,
    channel: Channel,
    opening: bytes,
    deadline: Deadline,
    *,
    end: Callable[[Deadline], None],
    look: Callable[[], None] = lambda: None,
) -> Captured:
    """Send the opening lines and wait for the answer; returns what came on standard error meanwhile.

    Args:
        label: of the sandbox.
        channel: to the supervisor.
        opening: the script whose last line answers ``ready``.
        deadline: of the whole start.
        end: kills the processes of a sandbox that did not start.
        look: done once it is ready, as part of the start.

    Raises:
        SandboxStartFailed: with what it said; its processes are dead and its descriptors closed.
    """
    words = Captured(4096)
    problem = f"not ready within {deadline.limit_s:g} s"
    is_ready = False
    try:
        channel.send(opening, deadline)
        if channel.ready(READY, deadline, words):
            look()
            is_ready = True
    except ChannelBroken as broken:
        channel.take_outputs(Captured(0), words)
        problem = str(broken)
    finally:
        if not is_ready:
            end(Deadline.after(KILL_GRACE_S, "end of a sandbox that did not start"))
            channel.close()
    if not is_ready:
        raise SandboxStartFailed(label, words.result()[0].decode(errors="replace").strip() or problem)
    return words
