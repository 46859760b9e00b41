"""One thread owns the engine; whoever wants a turn leaves it here and waits."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future

from journeyman.engines.errors import EngineError
from journeyman.engines.protocol import Engine, TurnRequest, TurnResult

STEP_S = 0.05
"""How long a remote engine may wait for a turn's end before new requests are looked at."""


class Driver:
    """Turns for many waiting requests from one engine; closes the engine at its own end."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._waiting: dict[str, Future[TurnResult]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="journeyman-capture-engine", daemon=True)
        self._thread.start()

    def ask(self, request: TurnRequest) -> Future[TurnResult]:
        """The turn, some time. Its exception is the engine's."""
        future: Future[TurnResult] = Future()

        def submit() -> None:
            try:
                self._engine.submit(request)
                self._waiting[request.trial] = future
            except Exception as error:
                future.set_exception(error)

        self._inbox.put(submit)
        return future

    def forget(self, trial: str) -> None:
        """End a trial and its turn, wherever it is."""

        def release() -> None:
            self._waiting.pop(trial, None)
            self._engine.release(trial)

        self._inbox.put(release)

    def close(self) -> None:
        """End the thread and the engine. Idempotent."""
        self._stop.set()
        self._inbox.put(lambda: None)
        self._thread.join(60)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                work = self._inbox.get(block=not self._waiting)
                work()
                continue
            except queue.Empty:
                pass
            try:
                ended = self._engine.step(STEP_S)
            except Exception as error:
                self._fail(error)
                continue
            for result in ended:
                future = self._waiting.pop(result.trial, None)
                if future is not None and not future.cancelled():
                    future.set_result(result)
        self._fail(EngineError("the endpoint is closing"))
        self._engine.close()

    def _fail(self, error: Exception) -> None:
        """A step that failed does not say whose turn it was: all that wait are told, and their trials end."""
        for trial, future in self._waiting.items():
            self._engine.release(trial)
            if not future.cancelled():
                future.set_exception(error)
        self._waiting.clear()
