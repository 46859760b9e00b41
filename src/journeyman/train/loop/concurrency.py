"""How many trials run at once: grows with completed work, shrinks with KV-cache use, queues and preemptions (AIMD).

A pure state machine: ``observe`` takes one poll of the engines, ``completed`` one ended trial; ``cap`` is the answer.
The effective limit is the smaller of this cap and the staleness capacity. Constants and rules: training.md 2.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

GROWTH = 1.25
"""Factor on the cap per turnover of the pipeline: each completion multiplies by GROWTH ** (1 / in flight)."""
BINDING_SHARE = 0.9
"""The cap grows only while it binds: at least this share of it is in use."""
GROW_BELOW = 0.6
"""KV use below which the cap may grow."""
SOFT_CAP, HARD_CAP = 0.8, 0.9
"""KV use at which the cap is lowered, and at which the youngest trials are ended as well."""
TARGET = 0.7
"""KV use that a cut aims at: below the trigger, so that there is room after it."""
COOLDOWN_POLLS = 6
"""Polls after a cut before the next: let it take effect first."""
QUEUE_SHARE, QUEUE_POLLS = 0.5, 6
"""Turns waiting per trial running, and for how many polls in a row, that count as overload: agentic pools queue."""
QUEUE_CUT, PREEMPTION_CUT, ESCALATED_CUT = 0.9, 0.8, 0.5
"""Factors on what is in flight: overloaded queue, any preemption, overload again right after a drain."""
GATE_TTL_S = 15.0
"""Age of the last poll beyond which the cap does not grow: without metrics growth is blind."""

Signal = Literal["clear", "soft", "hard"]


@dataclass(frozen=True)
class EnginePoll:
    """One look at the engines that decode.

    Attributes:
        at_s: instant, any clock that does not go back.
        in_flight: trials begun and not ended.
        kv_share: highest share of keys and values held, over the engines.
        waiting: turns that wait for a place. running: turns that have one.
        preemptions: since the poll before.
    """

    at_s: float
    in_flight: int
    kv_share: float
    waiting: int = 0
    running: int = 0
    preemptions: int = 0


class Concurrency:
    """The cap on trials at once.

    Args:
        initial: the cap to start with, e.g. KV capacity in tokens / context length.
        lowest, highest: bounds of the cap.

    Attributes:
        signal: what the last poll said.
        excess: youngest trials to end now, after a hard signal; 0 otherwise.
        turnovers: completed pipelines so far.
    """

    def __init__(self, initial: int, *, lowest: int = 1, highest: int = 4096) -> None:
        self.lowest, self.highest = lowest, highest
        self._cap = float(min(max(initial, lowest), highest))
        self.signal: Signal = "clear"
        self.excess, self.turnovers = 0, 0.0
        self._polls_since_cut = COOLDOWN_POLLS
        self._queued_polls = 0
        self._draining = self._ended_youngest = False
        self._polls_since_drain = COOLDOWN_POLLS + 1
        self._last: EnginePoll | None = None

    @property
    def cap(self) -> int:
        """Trials that may run at once."""
        return max(self.lowest, min(self.highest, int(self._cap + 1e-9)))  # 4 * 1.25 in quarters is 5

    def observe(self, poll: EnginePoll) -> int:
        """Take one poll in; the cap after it."""
        self._last, self.excess = poll, 0
        self._polls_since_cut += 1
        self._polls_since_drain += 1
        crowded = poll.waiting > QUEUE_SHARE * max(1, poll.running)
        self._queued_polls = self._queued_polls + 1 if crowded else 0
        self.signal = "hard" if poll.kv_share >= HARD_CAP else "soft" if poll.kv_share >= SOFT_CAP else "clear"
        if self._draining:
            settled = self.signal == "clear" and not poll.preemptions and not crowded
            if poll.in_flight <= self.cap and settled:
                self._draining, self._polls_since_drain = False, 0
            elif self._polls_since_cut <= COOLDOWN_POLLS or poll.in_flight > self.cap:
                self._end_youngest(poll)
                return self.cap  # a cut is at work: one cut per drain, or the cap halves with every poll
        self._cut_if_needed(poll)
        return self.cap

    def completed(self, *, tokens: int, in_flight: int, at_s: float) -> int:
        """One trial ended; the cap after it.

        Args:
            tokens: it sampled; 0 marks an error, which never grows the cap: an error storm empties the engines.
            in_flight: trials at once, the ended one not counted.
            at_s: instant, on the clock of the polls.
        """
        busy = in_flight + 1  # the unit that just completed was in use; without it small caps never bind
        self.turnovers += 1 / busy
        last = self._last
        may_grow = (
            tokens > 0
            and last is not None
            and at_s - last.at_s <= GATE_TTL_S
            and last.kv_share < GROW_BELOW
            and last.waiting == 0
            and not self._draining
            and busy >= BINDING_SHARE * self.cap
        )
        if may_grow:
            self._cap = min(float(self.highest), self._cap * GROWTH ** (1 / busy))
        return self.cap

    def state(self) -> dict[str, Any]:
        """Plain JSON that ``load`` takes back."""
        return {"cap": self._cap, "turnovers": self.turnovers}

    def load(self, state: dict[str, Any]) -> None:
        """Start from another run's cap; what it had observed does not hold any more."""
        self._cap = float(min(max(state["cap"], self.lowest), self.highest))
        self.turnovers = float(state["turnovers"])

    def _cut_if_needed(self, poll: EnginePoll) -> None:
        if self.signal != "clear":
            if self._polls_since_cut > COOLDOWN_POLLS:
                target = poll.in_flight * TARGET / poll.kv_share
                self._cut(target)
                self._end_youngest(poll)
            return
        overloaded = self._queued_polls >= QUEUE_POLLS
        if (poll.preemptions or overloaded) and self._polls_since_cut > COOLDOWN_POLLS:
            again = self._polls_since_drain <= COOLDOWN_POLLS
            factor = ESCALATED_CUT if again else PREEMPTION_CUT if poll.preemptions else QUEUE_CUT
            self._cut(poll.in_flight * factor)
            self._queued_polls = 0

    def _cut(self, target: float) -> None:
        self._cap = min(self._cap, max(float(self.lowest), target))  # a cut never raises the cap
        self._polls_since_cut, self._draining, self._ended_youngest = 0, True, False

    def _end_youngest(self, poll: EnginePoll) -> None:
        """Once per cut, where the caches are nearly full: what is above the cap has no time to end by itself."""
        if self.signal == "hard" and not self._ended_youngest:
            self.excess, self._ended_youngest = max(0, poll.in_flight - self.cap), True
