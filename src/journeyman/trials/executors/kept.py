"""What the attempts of one task have in common, handed to a supervisor once: forked processes have it from there.

Unpickling a task takes a forked process longer than it takes the supervisor, and the trials of a group share it.
"""

from __future__ import annotations

import os
import pickle
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

from journeyman.tasks.task import Task
from journeyman.trials.executors.protocol import Ticket
from journeyman.trials.limits import Limits
from journeyman.trials.record import TrialRequest

Shared = tuple[Task, Any, Limits]
"""Task, harness and limits."""

LARGEST = 64
"""Kept by a supervisor; beyond that the one that was used longest ago is forgotten."""


@dataclass(frozen=True)
class Part:
    """What the start of an attempt says about it.

    Attributes:
        key: names it.
        descriptor: of its pickle, where the supervisor does not have it yet; the caller closes it.
        forget: keys that the supervisor drops.
    """

    key: int
    descriptor: int | None = None
    forget: tuple[int, ...] = ()


class Sent:
    """The owner's record of what one supervisor keeps. Keyed by identity: the objects are held, so no id is reused."""

    def __init__(self) -> None:
        self._keys: OrderedDict[tuple[int, int, Limits], tuple[int, Shared]] = OrderedDict()
        self._next = 0

    def part(self, ticket: Ticket) -> Part:
        """How to name what this ticket shares with others. Raises OSError."""
        shared = ticket.request.task, ticket.request.harness, ticket.limits
        place = id(shared[0]), id(shared[1]), shared[2]
        if place in self._keys:
            self._keys.move_to_end(place)
            return Part(self._keys[place][0])
        self._next += 1
        self._keys[place] = self._next, shared
        forget = [self._keys.popitem(last=False)[1][0] for _ in range(len(self._keys) - LARGEST)]
        descriptor = os.memfd_create("kept", os.MFD_CLOEXEC)
        with os.fdopen(os.dup(descriptor), "wb") as file:
            pickle.dump(shared, file, protocol=5)
        return Part(self._next, descriptor, tuple(forget))


def bare(ticket: Ticket) -> Ticket:
    """A ticket without what is kept."""
    request = replace(ticket.request, task=None, harness=None)  # type: ignore[arg-type]
    return replace(ticket, request=request, limits=None)  # type: ignore[arg-type]


def whole(ticket: Ticket, shared: Shared) -> Ticket:
    """A bare ticket with what is kept; without ``replace``, whose pages every attempt would have to copy."""
    task, harness, limits = shared
    bare = ticket.request
    request = TrialRequest(task, harness, bare.stream, bare.sample, bare.temperature)
    return Ticket(request, ticket.attempt, limits, ticket.retry)


def taken(descriptor: int) -> Shared:
    """What a descriptor of ``Part`` holds; closes it. From the owner, which made this process."""
    try:
        found: Shared = pickle.loads(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
        return found
    finally:
        os.close(descriptor)
