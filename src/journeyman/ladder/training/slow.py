"""Tools that are slow on purpose: seeded lognormal delays, for measuring a loop under a heavy-tailed workload."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from journeyman.engines.protocol import TurnResult
from journeyman.harness.protocol import Loop, LoopSampling, StopReason, TurnRecord
from journeyman.seeds import stream
from journeyman.tokens.context import Context
from journeyman.trials.executors.protocol import Desk, Ticket
from journeyman.trials.executors.workplaces import TaskPlace
from journeyman.trials.record import TrialRequest

Z99 = 2.3263478740408408
"""99 % quantile of the standard normal distribution."""


@dataclass(frozen=True)
class SlowTools:
    """A lognormal delay before each tool result.

    Attributes:
        median_s, p99_s: of the delay.
        seed: the delay is a function of it, the trial and the turn: the same in every loop that is compared.
        scale: on every delay, to shorten a measurement without changing its shape.
    """

    median_s: float = 1.0
    p99_s: float = 30.0
    seed: int = 0
    scale: float = 1.0


def delay_s(slow: SlowTools, request: TrialRequest, turn: int) -> float:
    """The delay of a trial's k-th turn, seconds."""
    sigma = math.log(slow.p99_s / slow.median_s) / Z99
    normal = stream(slow.seed, "slow tools", *request.stream, turn).gauss(0.0, 1.0)
    return slow.scale * slow.median_s * math.exp(sigma * normal)


class SlowLoop:
    """A loop whose tools take longer; everything else is the loop's own."""

    def __init__(self, loop: Loop, slow: SlowTools, request: TrialRequest) -> None:
        self._loop, self._slow, self._request = loop, slow, request
        self._turn = 0

    @property
    def context(self) -> Context:
        return self._loop.context

    @property
    def stop_reason(self) -> StopReason | None:
        return self._loop.stop_reason

    @property
    def answer(self) -> str | None:
        return self._loop.answer

    @property
    def epoch(self) -> int:
        return self._loop.epoch

    @property
    def turns(self) -> Sequence[TurnRecord]:
        return self._loop.turns

    @property
    def sampling(self) -> LoopSampling:
        return self._loop.sampling

    def open(self, instruction: str, files: Sequence[str]) -> list[int]:
        """As the loop's."""
        return self._loop.open(instruction, files)

    def respond(self, result: TurnResult) -> list[int] | None:
        """As the loop's, later."""
        ids = self._loop.respond(result)
        self._turn += 1
        if ids is not None:
            time.sleep(delay_s(self._slow, self._request, self._turn))
        return ids


class SlowPlace(TaskPlace):
    """``TaskPlace`` with slow tools.

    Args:
        slow: fields of ``SlowTools``.
        arguments: of ``TaskPlace``.
    """

    def __init__(self, *, slow: dict[str, Any], **arguments: Any) -> None:
        super().__init__(**arguments)
        self._slow = SlowTools(**slow)

    def open(self, ticket: Ticket) -> Desk:
        """See ``TaskPlace.open``."""
        desk = super().open(ticket)
        desk.loop = SlowLoop(desk.loop, self._slow, ticket.request)  # type: ignore[assignment]
        return desk
