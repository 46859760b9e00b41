"""The rules together: ledger, admission, bound and buffer as one state machine without tasks, clients or clocks.

Whoever drives it tells what happened (``submit``, ``finish``, ``step_done``) and asks what may happen (``room``,
``take``). The same object runs a training and a simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from journeyman.train.loop.admission import AdmissionSpec, capacity
from journeyman.train.loop.bound import BoundPolicy, can_step, is_late, staleness
from journeyman.train.loop.buffer import Buffer, BufferOrder
from journeyman.train.loop.ledger import Ledger
from journeyman.train.loop.protocol import GroupOrder
from journeyman.train.loop.settling import SettledGroup

PATIENCE_STEPS = 8
"""Groups filtered in a row, in steps' worth, after which a step is taken with what there is, or the run says that
nothing is left to learn: a filter must never make the trainer wait for ever."""


@dataclass(frozen=True)
class GateSpec:
    """The rules of one run.

    Attributes:
        admission: sizes.
        policy: at the bound.
        order, window: of the buffer; ``hold`` always takes the most urgent first.
        steps: optimizer steps of the run; nothing is submitted that no step will consume. None: without end.
    """

    admission: AdmissionSpec
    policy: BoundPolicy = "hold"
    order: BufferOrder = "finished"
    window: int = 0
    steps: int | None = None


@dataclass(frozen=True)
class Take:
    """Whether a step may be taken.

    Attributes:
        groups: of the step; empty when the trainer must wait.
        waits_for: ``groups`` (too few are ready), ``hold`` (a live Group would pass the bound), ``end`` (the run is
            over), ``nothing`` (nothing is left to learn), or "" when there are Groups.
        is_partial: fewer than a step's worth, because the filter left no more.
    """

    groups: tuple[SettledGroup, ...] = ()
    waits_for: Literal["", "groups", "hold", "end", "nothing"] = ""
    is_partial: bool = False


@dataclass
class Late:
    """What the bound did, by position: ``cancelled`` ones are still running and must be ended."""

    dropped: list[SettledGroup] = field(default_factory=list)
    cancelled: list[GroupOrder] = field(default_factory=list)


class Gate:
    """State of the loop's rules.

    Args:
        spec: the rules.
        on_drop: told every Group given up: its order, the settled Group or None while it ran, and the reason.

    Attributes:
        version: completed optimizer steps.
        waived: Groups trained past the bound under ``accept``.
        filtered_in_a_row: Groups filtered since the last step.
    """

    def __init__(
        self,
        spec: GateSpec,
        on_drop: Callable[[GroupOrder, SettledGroup | None, str], None] = lambda order, group, reason: None,
    ) -> None:
        self.spec, self.version, self.waived, self.filtered_in_a_row = spec, 0, 0, 0
        self.ledger = Ledger()
        self.buffer = Buffer("urgent" if spec.policy == "hold" else spec.order, spec.window)
        if spec.policy == "hold" and spec.order == "balanced":
            self.buffer = Buffer("balanced", spec.window)
        self.running: dict[int, GroupOrder] = {}
        self._training: dict[int, SettledGroup] = {}
        self._on_drop = on_drop

    def room(self, max_running: int | None = None) -> int:
        """Groups that may be submitted now; ``max_running`` lowers the spec's limit, e.g. to what the engine holds."""
        spec = self.spec.admission
        if max_running is not None and max_running < spec.max_running:
            spec = AdmissionSpec(spec.groups_per_step, spec.staleness, max(1, max_running))
        accepted, running = self.ledger.accepted, self.ledger.running
        room = capacity(spec, version=self.version, accepted=accepted, running=running)
        if self.spec.steps is not None:
            behind = max(0, self.version * spec.groups_per_step - self.ledger.trained)  # of partial steps
            room = min(room, self.spec.steps * spec.groups_per_step - behind - accepted - running)
        return max(0, room)

    def submit(self, order: GroupOrder) -> None:
        """A Group begins."""
        self.ledger.submit(order.position)
        self.running[order.position] = order

    def finish(self, group: SettledGroup) -> None:
        """A Group's trials have all ended: it is queued, or filtered with its reason."""
        position = group.order.position
        del self.running[position]
        if group.reason:
            self.ledger.filter(position, group.reason)
            self.filtered_in_a_row += 1
            return
        self.ledger.queue(position)
        self.buffer.put(group)

    def sweep(self) -> Late:
        """Apply the bound to everything in flight; ``hold`` and ``accept`` drop nothing here."""
        late = Late()
        if self.spec.policy not in ("drop", "requeue"):
            return late
        reason = "stale" if self.spec.policy == "drop" else "requeued"
        limit = self.spec.admission.staleness
        for group in self.buffer.groups():
            if is_late(self.version, group.oldest, limit):
                self.drop(group.order.position, reason)
                late.dropped.append(group)
        for order in tuple(self.running.values()):
            if is_late(self.version, order.version, limit):
                self.drop(order.position, reason)
                late.cancelled.append(order)
        return late

    def take(self) -> Take:
        """Choose the Groups of the next step, or say what to wait for. Call ``sweep`` before."""
        wanted = self.spec.admission.groups_per_step
        if self.spec.steps is not None and self.version >= self.spec.steps:
            return Take(waits_for="end")
        ready = self.buffer.candidates(self.running)
        if self.spec.policy == "hold":
            ready = self._urgent_first(ready)
        is_starved = self.filtered_in_a_row >= PATIENCE_STEPS * wanted
        if len(ready) < wanted and not is_starved:
            return Take(waits_for="groups")
        chosen = ready[:wanted]
        if not chosen:
            return Take(waits_for="nothing")
        if not self._keeps_the_bound(chosen):
            return Take(waits_for="hold")
        for group in chosen:
            self.buffer.pop(group.order.position)
            self.ledger.take(group.order.position)
            self._training[group.order.position] = group
        limit = self.spec.admission.staleness
        self.waived += sum(is_late(self.version, group.oldest, limit) for group in chosen)
        return Take(tuple(chosen), is_partial=len(chosen) < wanted)

    def step_done(self) -> None:
        """The step under way is complete: its Groups are trained and the version is one higher."""
        for position in tuple(self._training):
            self.ledger.train(position)
        self._training.clear()
        self.version += 1
        self.filtered_in_a_row = 0

    def quarantine(self) -> None:
        """The step under way was given up with its batch: no version, its Groups are dropped."""
        for position in tuple(self._training):
            self.drop(position, "quarantined")

    def drop(self, position: int, reason: str) -> None:
        """Give a Group up, wherever it is."""
        settled: SettledGroup | None = None
        order = self.running.pop(position, None)
        if order is None:
            settled = self._training.pop(position, None) or self.buffer.pop(position)
            order = settled.order
        self.ledger.drop(position, reason)
        self._on_drop(order, settled, reason)

    def staleness_in_flight(self) -> list[int]:
        """Of each running Group, in steps, from its submission."""
        return [staleness(self.version, order.version) for order in self.running.values()]

    def staleness_in_queue(self) -> list[int]:
        """Of each queued Group, in steps, from its oldest token."""
        return [staleness(self.version, group.oldest) for group in self.buffer.groups()]

    def state(self) -> dict[str, Any]:
        """Plain JSON of the counts; the Groups themselves lie in the journal."""
        return {"version": self.version, "waived": self.waived, "ledger": self.ledger.state()}

    def restore(self, state: dict[str, Any], running: Sequence[GroupOrder], queued: Sequence[SettledGroup]) -> None:
        """Go on where another run stood, with its Groups in flight.

        Raises:
            WrongTransition: the Groups are not those that the account holds in flight.
        """
        self.version, self.waived = int(state["version"]), int(state["waived"])
        self.ledger = Ledger.from_state(state["ledger"])
        self.running = {order.position: order for order in running}
        for group in queued:
            self.buffer.put(group)
        phases = {order.position: "running" for order in running} | {g.order.position: "queued" for g in queued}
        self.ledger.phase = dict(phases)  # type: ignore[arg-type]
        self.ledger.check()

    def _urgent_first(self, ready: list[SettledGroup]) -> list[SettledGroup]:
        """Those that must go now to the front; the order of the rest is the buffer's."""
        if self.buffer.order != "balanced":
            return ready
        limit = self.spec.admission.staleness
        due = [g for g in self.buffer.groups() if g.oldest + limit <= self.version]
        return due + [group for group in ready if group not in due]

    def _keeps_the_bound(self, chosen: Sequence[SettledGroup]) -> bool:
        if self.spec.policy != "hold":
            return True
        taken = {group.order.position for group in chosen}
        rest = [order.version for order in self.running.values()]
        rest += [group.oldest for group in self.buffer.groups() if group.order.position not in taken]
        spec = self.spec.admission
        feasible = can_step(rest, version=self.version, limit=spec.staleness, groups_per_step=spec.groups_per_step)
        return feasible or not self.running
