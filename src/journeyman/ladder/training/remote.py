"""The trainer's end of a site in another process: orders go out, trials and gauges come back, weights go by memory.

A reader thread listens, so that nobody ever waits for a reply but who pushed weights. When the process dies it is made
again with the newest weights; what it had under way is reported as ``lost`` and everything else stands.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from journeyman.deadline import Deadline
from journeyman.errors import EnvironmentMissing, InputError, JourneymanError, SystemFault
from journeyman.ladder.training.weights import WeightBox
from journeyman.train.loop.protocol import Arrivals, FinishedTrial, GroupOrder, SourceGauges

PUSH_S = 300.0
"""Until the engine has taken new weights; it takes them between two tokens."""
MAX_RESTARTS = 5
"""Deaths in a row without a single finished trial, after which the source is beyond help."""
STOP_S = 20.0

_SUMMED = ("busy_s", "sampled_tokens", "prefilled_tokens", "cpu_s", "preemptions")
"""Gauges that count from the start of a process: those of processes that ended are added."""


class SourceFailed(SystemFault):
    """The process that samples cannot be kept alive. Its last words lie in its log."""

    cause = "engine_failed"


class RemoteSite:
    """A ``TrialSource`` in a process of its own.

    Args:
        plan: arguments of ``site_process.open_site``, plain data.
        log: file for what the process says.
        threads: torch threads of its engine.
    """

    def __init__(self, plan: Mapping[str, Any], log: Path, threads: int = 1) -> None:
        self._plan, self._log, self._threads = dict(plan), log, threads
        vllm = self._plan.get("vllm") or {}  # the first push waits for servers that are started, each for its proof
        self._push_s = PUSH_S + float(vllm.get("push_s", 0.0)) + (0.0 if vllm.get("urls") else vllm.get("start_s", 0.0))
        self._box = WeightBox(str(plan["name"]))
        self._lock = threading.RLock()
        self._acked = threading.Condition(self._lock)
        self._arrived: queue.Queue[Arrivals] = queue.Queue()
        self._in_flight: dict[int, set[int]] = {}
        self._weights: tuple[str, int] | None = None
        self._version, self._refused = -1, ""
        self._fruitless, self.restarts = 0, 0
        self._failed: JourneymanError | None = None
        self._is_closed = False
        self._gauges, self._before = SourceGauges(), SourceGauges()
        self._start()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def submit(self, orders: Sequence[GroupOrder]) -> None:
        """See ``TrialSource.submit``."""
        with self._lock:
            for order in orders:
                self._in_flight.setdefault(order.position, set()).update(order.wanted)
            self._send("submit", list(orders))

    def poll(self, wait_s: float) -> Arrivals:
        """See ``TrialSource.poll``."""
        found: list[FinishedTrial] = []
        lost: list[int] = []
        probes: list[FinishedTrial] = []
        try:
            one = self._arrived.get(timeout=wait_s)
            while True:
                found += one.trials
                lost += one.lost
                probes += one.probes
                one = self._arrived.get_nowait()
        except queue.Empty:
            pass
        if self._failed is not None and not found:
            raise self._failed
        return Arrivals(found, lost, self._gauges, probes)

    def cancel(self, position: int) -> None:
        """See ``TrialSource.cancel``."""
        with self._lock:
            self._in_flight.pop(position, None)
            self._send("cancel", position)

    def limit(self, trials: int) -> None:
        """See ``TrialSource.limit``."""
        with self._lock:
            self._plan["at_once"] = trials
            self._send("limit", trials)

    def update_weights(self, state: Any, version: int) -> None:
        """See ``TrialSource.update_weights``. Raises DeadlinePassed, SourceFailed, and what opening the site raised."""
        path = self._box.put(state, version)
        deadline = Deadline.after(self._push_s, f"the push of version {version}")
        with self._acked:
            self._weights, self._refused = (str(path), version), ""
            self._version = -1
            self._send("weights", self._weights)
            while self._version != version:
                if self._failed is not None:
                    raise self._failed
                if self._refused:
                    raise SourceFailed(self._refused)
                deadline.check()
                self._acked.wait(0.2)
        self._box.keep_only(path)

    def close(self) -> None:
        """See ``TrialSource.close``."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._send("close", None)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_S)
        self._connection.close()
        self._reader.join(STOP_S)
        self._box.close()

    def _start(self) -> None:
        ours, theirs = Pipe()
        self._log.parent.mkdir(parents=True, exist_ok=True)
        env = {**os.environ, "OMP_NUM_THREADS": str(self._threads), "OMP_WAIT_POLICY": "PASSIVE"}
        env["PYTHONPATH"] = os.pathsep.join(word for word in sys.path if word)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "journeyman.ladder.training.site_process", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
            )
        theirs.close()
        self._connection: Connection = ours
        self._send("open", self._plan)
        if self._weights is not None:
            self._send("weights", self._weights)
        self._reader = threading.Thread(target=self._listen, args=(ours,), name="site reader", daemon=True)
        self._reader.start()

    def _send(self, kind: str, value: Any) -> None:
        with contextlib.suppress(OSError):  # it is dead: the reader notices, and its successor gets everything
            self._connection.send((kind, value))

    def _listen(self, connection: Connection) -> None:
        while True:
            try:
                kind, value = connection.recv()
            except (EOFError, OSError):
                break
            if kind == "arrivals":
                self._take(value)
            elif kind == "version":
                with self._acked:
                    self._version = value
                    self._acked.notify_all()
            elif kind == "refused":
                with self._acked:
                    self._refused = str(value)
                    self._acked.notify_all()
            elif kind == "unusable":
                with self._acked:
                    self._failed = _unusable(*value)
                    self._acked.notify_all()
        with self._lock:
            if not self._is_closed and self._failed is None:
                self._died()

    def _take(self, arrivals: Arrivals) -> None:
        with self._lock:
            for trial in arrivals.trials:
                self._fruitless = 0
                wanted = self._in_flight.get(trial.position)
                if wanted is not None:
                    wanted.discard(trial.sample)
                    if not wanted:
                        del self._in_flight[trial.position]
            gauges = arrivals.gauges
            summed = {name: getattr(self._before, name) + getattr(gauges, name) for name in _SUMMED}
            self._gauges = replace(gauges, **summed)
        if arrivals.trials or arrivals.probes:
            self._arrived.put(arrivals)

    def _died(self) -> None:
        """The process is gone: make another, and say which Groups went with it."""
        status = self._process.wait(STOP_S)
        self._fruitless += 1
        if self._fruitless > MAX_RESTARTS:
            words = self._log.read_text(errors="replace").strip().splitlines()[-3:]
            self._failed = SourceFailed(f"the sampling process ended {self._fruitless} times in a row: {words}")
            self._acked.notify_all()
            return
        self.restarts += 1
        self._before = self._gauges
        lost = sorted(self._in_flight)
        self._in_flight.clear()
        self._connection.close()
        time.sleep(min(2.0, 0.1 * 2**self._fruitless))
        with self._log.open("a") as log:
            log.write(f"ended with status {status}; made again with {len(lost)} groups lost\n")
        self._start()
        self._arrived.put(Arrivals((), lost, self._gauges))


def _unusable(exit_code: int, text: str) -> JourneymanError:
    """What the process could not be opened for, as the same kind of error."""
    if exit_code == InputError.exit_code:
        where, _, problem = text.partition(": ")
        return InputError(where, problem)
    return EnvironmentMissing(text) if exit_code == EnvironmentMissing.exit_code else SourceFailed(text)
