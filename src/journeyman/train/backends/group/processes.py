"""The processes of a group: started by torchrun here, or awaited from Ray or a cluster's job; ended with the front.

Every rank opens a connection to the front and says who it is. A rank whose connection ends leaves; so does torchrun
when a rank fails. The front's own end closes all connections: nothing is orphaned, whoever is killed first.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from journeyman.deadline import Deadline
from journeyman.errors import DeadlinePassed, InputError
from journeyman.train.backends.group.wire import GroupLost, Message, receive
from journeyman.train.backends.spec import BackendSpec

ADDRESS, TOKEN = "TRAINER_GROUP_ADDRESS", "TRAINER_GROUP_TOKEN"
"""Environment of a rank: ``unix:PATH`` or ``tcp:HOST:PORT``, and the secret it has to say."""
GRACE_S = 1.0
"""What ranks may take to leave by themselves before they are killed."""
POLL_S = 0.2
TAIL_BYTES = 4000


class Processes:
    """The ranks of one group, from the first call to ``close``.

    Args:
        spec: ``layout.ranks`` and ``layout.start``, ``python``, ``deadline_s``.

    Attributes:
        connections: one per rank, in their order.
    """

    def __init__(self, spec: BackendSpec) -> None:
        self._spec = spec
        self._folder = Path(tempfile.mkdtemp(prefix="journeyman-group-"))
        self._log = self._folder / "ranks.log"
        self._token = os.environ.get(TOKEN) if spec.layout.start == "attach" else None
        self._token = self._token or secrets.token_hex(16)
        self._listener, self.address = self._listen()
        self._process: subprocess.Popen[bytes] | None = None
        self._placed: Callable[[], None] | None = None
        self.connections: list[socket.socket] = []

    def start(self) -> None:
        """Start what is to be started, and wait for every rank. Raises GroupLost, DeadlinePassed."""
        deadline = Deadline.after(self._spec.deadline_s, f"the start of {self._spec.layout.ranks} trainer ranks")
        try:
            STARTS[self._spec.layout.start](self)
            self.connections = self._await_ranks(deadline)
        except BaseException:
            self.close()
            raise

    def environment(self) -> dict[str, str]:
        """What a rank needs to find the front, beside what torchrun or the cluster sets."""
        return {ADDRESS: self.address, TOKEN: self._token or ""}

    def torchrun(self) -> None:
        """Start all ranks on this machine."""
        layout = self._spec.layout
        if layout.nodes > 1:
            raise InputError("backend.layout.nodes", f"{layout.nodes} with start = torchrun", allowed="ray or attach")
        python = str(self._spec.python or sys.executable)
        words = [python, "-m", "torch.distributed.run", "--nnodes=1", f"--nproc-per-node={layout.ranks}"]
        words += ["--master-addr=127.0.0.1", f"--master-port={_free_port()}", "-m", RANK_MODULE]
        threads = str(self._spec.train_threads or 1)
        env = os.environ | self.environment() | {"OMP_NUM_THREADS": threads, "PYTHONUNBUFFERED": "1"}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                words, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def ray(self) -> None:
        """Start the ranks in a placement group over the nodes of a Ray cluster."""
        from journeyman.train.backends.group.placement import place

        self._placed = place(self._spec, self.environment())

    def attach(self) -> None:
        """Start nothing: a cluster's job starts the ranks with ``environment`` (docs/cluster.md)."""

    def is_alive(self) -> bool:
        """Whether what was started here still runs."""
        return self._process is None or self._process.poll() is None

    def tail(self) -> str:
        """The last words of the ranks."""
        with contextlib.suppress(OSError):
            return self._log.read_bytes()[-TAIL_BYTES:].decode(errors="replace").strip()
        return ""

    def close(self) -> None:
        """Close the connections, at which ranks leave, and end whoever has not left a moment later. Idempotent.

        Nothing is lost by it: what a rank acknowledged is on disk.
        """
        for connection in self.connections:
            connection.close()
        self._listener.close()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE_S)
            for pid in _children(self._process.pid):  # torchrun gives each rank a session of its own
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._placed is not None:
            self._placed()
            self._placed = None
        self.connections = []
        shutil.rmtree(self._folder, ignore_errors=True)

    def _listen(self) -> tuple[socket.socket, str]:
        if self._spec.layout.start == "torchrun":
            path = self._folder / "front"  # the folder is ours alone: mode 0700
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(path))
            address = f"unix:{path}"
        else:
            host = os.environ.get("TRAINER_GROUP_HOST") or socket.gethostbyname(socket.gethostname())
            listener = socket.create_server((host, int(os.environ.get("TRAINER_GROUP_PORT", "0"))))
            address = f"tcp:{host}:{listener.getsockname()[1]}"
        listener.listen(self._spec.layout.ranks)
        return listener, address

    def _await_ranks(self, deadline: Deadline) -> list[socket.socket]:
        found: dict[int, socket.socket] = {}
        while len(found) < self._spec.layout.ranks:
            if not self.is_alive():
                raise GroupLost(f"the trainer's processes ended before they were ready:\n{self.tail()}")
            if deadline.has_passed:
                missing = sorted(set(range(self._spec.layout.ranks)) - found.keys())
                raise DeadlinePassed(f"{deadline.what} (still missing: {missing})", deadline.limit_s)
            if not select.select([self._listener], [], [], POLL_S)[0]:
                continue
            connection, _ = self._listener.accept()
            rank = self._introduced(connection, deadline)
            if rank is None or rank in found:
                connection.close()
            else:
                found[rank] = connection
        return [found[rank] for rank in range(self._spec.layout.ranks)]

    def _introduced(self, connection: socket.socket, deadline: Deadline) -> int | None:
        try:
            hello: Message = receive(connection, deadline)
        except GroupLost:  # somebody who only looked in
            return None
        given, rank = str(hello.data.get("token", "")), hello.data.get("rank")
        known = hmac.compare_digest(given.encode(), (self._token or "").encode())
        return rank if known and isinstance(rank, int) and 0 <= rank < self._spec.layout.ranks else None


RANK_MODULE = "journeyman.train.backends.group.rank"
STARTS: dict[str, Callable[[Processes], None]] = {
    "torchrun": Processes.torchrun,
    "ray": Processes.ray,
    "attach": Processes.attach,
}
"""Who starts the ranks, by ``layout.start``."""


def connect(address: str, limit_s: float = 600.0) -> socket.socket:
    """A rank's way to the front; a front that is not there yet is waited for. Raises DeadlinePassed."""
    deadline = Deadline.after(limit_s, f"the connection to {address}")
    kind, _, rest = address.partition(":")
    while True:
        try:
            if kind == "unix":
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(rest)
                return connection
            host, _, port = rest.rpartition(":")
            return socket.create_connection((host, int(port)), timeout=10)
        except OSError:
            deadline.check()
            time.sleep(min(1.0, deadline.remaining_s))


def _children(pid: int) -> list[int]:
    """The processes that a live process of ours started; none where the system does not tell."""
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
