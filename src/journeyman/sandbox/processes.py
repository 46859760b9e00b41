"""The processes of one sandbox, seen from outside: whom to kill, whom to spare, what memory they hold."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping

from journeyman.deadline import Deadline
from journeyman.sandbox import proctree
from journeyman.sandbox.cgroup import Group
from journeyman.sandbox.protocol import KILL_GRACE_S
from journeyman.sandbox.watch import unwatch, watch


class Processes:
    """A tree that is a control group or, without one, what descends from the supervisor."""

    def __init__(
        self, process: subprocess.Popen[bytes], group: Group | None, *, is_wrapped: bool, poll_memory_mb: int | None
    ) -> None:
        """
        Args:
            process: the outermost one, a child of this program.
            group: its control group, None where the host has none.
            is_wrapped: the supervisor is the child of ``process``, else it is ``process``.
            poll_memory_mb: kill commands above this resident memory, where no group bounds it.
        """
        self.process, self.group = process, group
        self._is_wrapped, self._poll_memory_mb = is_wrapped, poll_memory_mb
        self._oom_seen = 0
        self._polled_kills = 0
        self._looking = threading.Lock()
        if self.are_polled:
            watch(self)

    @property
    def are_polled(self) -> bool:
        """Whether ``enforce_memory`` has to be called now and then."""
        return self._poll_memory_mb is not None

    def supervisor(self) -> int | None:
        """Host pid of the supervisor, None when it is gone."""
        if not self._is_wrapped:
            return self.process.pid
        children = proctree.children(self.process.pid)
        return children[0] if children else None

    def others(self) -> list[int] | None:
        """Host pids in the group besides the supervisor and what keeps it; None without a group that holds both."""
        own = {self.process.pid, self.supervisor()}
        found = set(self.group.processes()) if self.group is not None else set()
        return sorted(pid for pid in found if pid not in own) if own <= found else None

    def kill_commands(self) -> None:
        """Kill everything but the supervisor and what keeps it."""
        supervisor = self.supervisor()
        if supervisor is None:
            return
        deadline = Deadline.after(KILL_GRACE_S, "kill of a command")
        if self.group is not None:
            self.group.kill(frozenset({self.process.pid, supervisor}), deadline)
        else:
            proctree.kill_descendants(supervisor, deadline)

    def enforce_memory(self, table: Mapping[int, int] | None = None) -> None:
        """Kill the commands when they hold more resident memory than the limit; called from any thread.

        Args:
            table: processes and their parents a moment ago; None looks now.
        """
        limit_mb = self._poll_memory_mb
        if limit_mb is None or not self._looking.acquire(blocking=False):
            return  # another thread is looking
        try:
            supervisor = self.supervisor() if self.process.poll() is None else None
            if supervisor is not None and proctree.resident_bytes(supervisor, table) > limit_mb << 20:
                self._polled_kills += 1
                self.kill_commands()
        finally:
            self._looking.release()

    def oom_kills(self) -> int:
        """Kills by the memory limit since the last question.

        Waits for a kill that is under way: it goes on until nothing is left, so that a command which followed at once
        would be killed for what the one before it held.
        """
        with self._looking:
            total = self.group.oom_kills() if self.group is not None else 0
            new = total - self._oom_seen + self._polled_kills
            self._oom_seen, self._polled_kills = total, 0
            return new

    def end(self, deadline: Deadline) -> None:
        """Kill everything. The supervisor is pid 1 of its namespace: the kernel kills the rest before it is gone."""
        unwatch(self)
        if self.process.poll() is None:
            if not self._is_wrapped:
                self.kill_commands()  # without a pid namespace they would outlive the supervisor
            supervisor = self.supervisor()
            if supervisor is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(supervisor, signal.SIGKILL)
            if supervisor is None or not proctree.wait_for(self.process, min(deadline.remaining_s, 2.0)):
                self.process.kill()
                proctree.wait_for(self.process, deadline.remaining_s)
        if self.group is not None and self.group.processes():
            self.group.kill_all(deadline)
