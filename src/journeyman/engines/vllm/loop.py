"""One background thread with an event loop: hundreds of requests wait there while the owner's thread goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from journeyman.engines.errors import EngineError

T = TypeVar("T")


class Loop:
    """Runs coroutines on its own thread. Every call that waits has a deadline."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run ``work`` in the background."""
        if not self._thread.is_alive():
            work.close()
            raise EngineError("this engine is closed")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, work: Coroutine[Any, Any, T], deadline_s: float, what: str) -> T:
        """Run ``work`` to its end.

        Raises:
            EngineError: it did not end within ``deadline_s`` seconds; it was cancelled then.
        """
        future = self.start(work)
        try:
            return future.result(deadline_s)
        except TimeoutError as error:
            if future.done():
                raise
            future.cancel()
            raise EngineError(f"{what} did not end within {deadline_s:g} s") from error

    def close(self) -> None:
        """Cancel what still runs and end the thread. Idempotent."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)
            self._loop.close()


async def _cancel_all() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
