"""Where every Group is: the account that admission stands on. ``submitted = trained + filtered + dropped + in flight``.

A Group that was accepted and is dropped later leaves ``accepted`` again; without that each drop would shrink the
capacity for good, because the version advances on trained steps only (training.md 2.3).
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

Phase = Literal["running", "queued", "training"]


class WrongTransition(AssertionError):
    """A bug of the loop: a Group was moved from a phase it is not in, or the account does not add up."""


class Ledger:
    """Counts of Groups, and the phase of each one in flight. Every method checks the identity.

    Attributes:
        submitted, trained: Groups.
        filtered: Groups that had nothing to teach, by reason (``zero_variance``, ``too_few_valid``).
        dropped: Groups with something to teach that was not used, by reason (``stale``, ``requeued``, ``quarantined``).
        phase: of each Group in flight, by position.
    """

    def __init__(self) -> None:
        self.submitted = self.trained = 0
        self.filtered: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.phase: dict[int, Phase] = {}

    @property
    def running(self) -> int:
        """Groups whose trials have not all ended."""
        return sum(phase == "running" for phase in self.phase.values())

    @property
    def accepted(self) -> int:
        """Groups finished and counted for training: trained, in the step under way, or queued for one."""
        return self.trained + sum(phase != "running" for phase in self.phase.values())

    @property
    def in_flight(self) -> int:
        """Groups that are neither trained nor gone."""
        return len(self.phase)

    def submit(self, position: int) -> None:
        """A Group begins."""
        if position in self.phase:
            raise WrongTransition(f"group {position} is submitted twice")
        self.phase[position] = "running"
        self.submitted += 1
        self.check()

    def queue(self, position: int) -> None:
        """A Group finished and waits for a step."""
        self._move(position, "running", "queued")

    def take(self, position: int) -> None:
        """A Group enters the step under way."""
        self._move(position, "queued", "training")

    def train(self, position: int) -> None:
        """The step that held it is complete."""
        self._leave(position, ("training",))
        self.trained += 1
        self.check()

    def untake(self, position: int) -> None:
        """The step that held it was given up; it waits again."""
        self._move(position, "training", "queued")

    def filter(self, position: int, reason: str) -> None:
        """A Group finished and has nothing to teach."""
        self._leave(position, ("running",))
        self.filtered[reason] += 1
        self.check()

    def drop(self, position: int, reason: str) -> None:
        """A Group is given up, wherever it is."""
        self._leave(position, ("running", "queued", "training"))
        self.dropped[reason] += 1
        self.check()

    def check(self) -> None:
        """Raise WrongTransition unless the account adds up."""
        total = self.trained + self.filtered.total() + self.dropped.total() + self.in_flight
        if self.submitted != total:
            raise WrongTransition(f"submitted {self.submitted} is not the sum of its parts, {total}: {self.state()}")

    def counts(self) -> dict[str, int]:
        """The account as metrics."""
        named = {f"groups/filtered/{reason}": n for reason, n in sorted(self.filtered.items())}
        named |= {f"groups/dropped/{reason}": n for reason, n in sorted(self.dropped.items())}
        return {
            "groups/submitted": self.submitted,
            "groups/trained": self.trained,
            "groups/in_flight": self.in_flight,
            "groups/running": self.running,
            **named,
        }

    def state(self) -> dict[str, Any]:
        """Plain JSON that ``from_state`` takes back."""
        return {
            "submitted": self.submitted,
            "trained": self.trained,
            "filtered": dict(self.filtered),
            "dropped": dict(self.dropped),
            "phase": {str(position): phase for position, phase in self.phase.items()},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Ledger:
        """The account as it was saved. A Group in the step under way is queued again: its step was never complete."""
        ledger = cls()
        ledger.submitted, ledger.trained = int(state["submitted"]), int(state["trained"])
        ledger.filtered, ledger.dropped = Counter(state["filtered"]), Counter(state["dropped"])
        phases = {int(position): phase for position, phase in state["phase"].items()}
        ledger.phase = {p: "queued" if phase == "training" else phase for p, phase in phases.items()}
        ledger.check()
        return ledger

    def _move(self, position: int, source: Phase, target: Phase) -> None:
        self._leave(position, (source,))
        self.phase[position] = target
        self.check()

    def _leave(self, position: int, allowed: tuple[Phase, ...]) -> None:
        phase = self.phase.get(position)
        if phase not in allowed:
            raise WrongTransition(f"group {position} is {phase or 'not in flight'}, not {' or '.join(allowed)}")
        del self.phase[position]
