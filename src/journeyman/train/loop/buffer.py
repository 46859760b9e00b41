"""Finished Groups that wait for a step, and in which order a step takes them.

``finished`` ships what finished first: early steps then hold the tasks that end fast, the easy and short ones
(published runs saw pass@1 dip at the start for it). ``balanced`` ships in the order of submission within a window: a
Group that is still running lets at most ``window`` later ones overtake it. ``urgent`` takes the oldest weights first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from journeyman.train.loop.settling import SettledGroup

BufferOrder = Literal["finished", "urgent", "balanced"]

BUFFER_ORDERS: dict[BufferOrder, str] = {
    "finished": "what finished first",
    "urgent": "what is nearest to the bound",
    "balanced": "in the order of submission; a running group lets at most `window` later ones overtake it",
}
"""How a step chooses, by name."""


class Buffer:
    """Settled Groups by position, in the order in which they finished.

    Args:
        order: entry of ``BUFFER_ORDERS``.
        window: Groups, for ``balanced``.
    """

    def __init__(self, order: BufferOrder = "finished", window: int = 0) -> None:
        self.order, self.window = order, window
        self._groups: dict[int, SettledGroup] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def put(self, group: SettledGroup) -> None:
        """A Group finished."""
        self._groups[group.order.position] = group

    def pop(self, position: int) -> SettledGroup:
        """Take a Group out."""
        return self._groups.pop(position)

    def groups(self) -> list[SettledGroup]:
        """All of them, in the order in which they finished."""
        return list(self._groups.values())

    def candidates(self, running: Iterable[int]) -> list[SettledGroup]:
        """Those a step may take now, best first.

        Args:
            running: positions of the Groups that have not finished.
        """
        if self.order == "finished":
            return self.groups()
        if self.order == "urgent":
            return sorted(self._groups.values(), key=lambda group: (group.oldest, group.order.position))
        waiting = sorted(running)
        in_order = sorted(self._groups.values(), key=lambda group: group.order.position)
        if not waiting:
            return in_order
        return [group for group in in_order if group.order.position <= waiting[0] + self.window]
