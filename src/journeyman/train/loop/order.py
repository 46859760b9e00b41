"""Which task the next Group is of: epoch after epoch in a seeded order, without an end and without a border.

The order is a function of the seed and a count, so nothing but the count is saved. A requeued task comes next.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from journeyman.errors import InputError
from journeyman.seeds import stream


class TaskOrder:
    """An endless sampler.

    Args:
        tasks: how many there are.
        seed, name: of the order.

    Attributes:
        drawn: tasks drawn from the epochs so far; requeued ones do not count.
    """

    def __init__(self, tasks: int, seed: int, name: str) -> None:
        if tasks < 1:
            raise InputError("tasks", "there are none", allowed="at least one")
        self.tasks, self._seed, self._name = tasks, seed, name
        self.drawn = 0
        self._again: deque[int] = deque()
        self._epoch: tuple[int, list[int]] | None = None

    def next(self) -> int:
        """The index of the next task."""
        if self._again:
            return self._again.popleft()
        epoch, index = divmod(self.drawn, self.tasks)
        self.drawn += 1
        if self._epoch is None or self._epoch[0] != epoch:
            order = list(range(self.tasks))
            stream(self._seed, "task order", self._name, epoch).shuffle(order)
            self._epoch = epoch, order
        return self._epoch[1][index]

    def again(self, task: int) -> None:
        """Let a task come again before all others."""
        self._again.append(task)

    def state(self) -> dict[str, Any]:
        """Plain JSON that ``load`` takes back."""
        return {"drawn": self.drawn, "again": list(self._again)}

    def load(self, state: dict[str, Any]) -> None:
        """Go on where another run stood."""
        self.drawn, self._again, self._epoch = int(state["drawn"]), deque(state["again"]), None
