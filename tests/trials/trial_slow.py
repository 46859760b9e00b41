"""A workplace whose turns take a while and say so: a file named after the worker's process lies there meanwhile."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from journeyman.engines.protocol import TurnResult
from journeyman.trials.executors.protocol import Desk, Ticket
from journeyman.trials.executors.workplaces import TaskPlace

TURN_S = 1.0


class SlowPlace(TaskPlace):
    """``TaskPlace`` with turns of at least ``TURN_S`` seconds, marked in the folder ``marks``."""

    def __init__(self, *, marks: str, **arguments: Any) -> None:
        self._marks = Path(marks)
        super().__init__(**arguments)

    def open(self, ticket: Ticket) -> Desk:
        desk = super().open(ticket)
        respond = desk.loop.respond

        def slow(result: TurnResult) -> list[int] | None:
            mark = self._marks / str(os.getpid())
            mark.touch()
            time.sleep(TURN_S)
            mark.unlink()
            return respond(result)

        desk.loop.respond = slow  # type: ignore[method-assign]
        return desk
