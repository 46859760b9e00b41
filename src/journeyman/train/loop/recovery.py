"""From a checkpoint and the journal to the loop's state at the kill: nothing ended runs again or is counted twice.

Submissions, filters and drops since the checkpoint stand; steps since then do not (the step is the unit of redo), so
their Groups are queued again. Half-finished Groups go on with the trials they lack.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from journeyman.train.loop.gate import Gate
from journeyman.train.loop.journal import read, segments
from journeyman.train.loop.ledger import Ledger
from journeyman.train.loop.order import TaskOrder
from journeyman.train.loop.protocol import FinishedTrial, GroupOrder
from journeyman.train.loop.settling import GroupRule, settle


@dataclass
class Recovered:
    """What stands after a kill.

    Attributes:
        orders: of every Group in flight, by position.
        trials: finished trials of those Groups, by position and sample.
        next_position: of the next submission.
        segment: to write next.
    """

    orders: dict[int, GroupOrder] = field(default_factory=dict)
    trials: dict[int, dict[int, FinishedTrial]] = field(default_factory=dict)
    next_position: int = 0
    segment: int = 0

    def missing(self) -> list[GroupOrder]:
        """Groups that lack trials, with the samples to run; in order of position."""
        found = []
        for position, order in sorted(self.orders.items()):
            done = self.trials.get(position, {})
            lacking = tuple(sample for sample in range(order.trials) if sample not in done)
            if lacking:
                found.append(replace(order, samples=lacking))
        return found


def order_facts(order: GroupOrder) -> dict[str, int]:
    """A Group's order as the journal keeps it."""
    return {"position": order.position, "task": order.task, "trials": order.trials, "version": order.version}


def recover(root: Path, state: dict[str, Any] | None, gate: Gate, order: TaskOrder, rule: GroupRule) -> Recovered:
    """Put gate and task order where they stood, and say what must be run again.

    Args:
        root: directory of the journal.
        state: of the newest checkpoint (``gate``, ``order``, ``segment``, ``orders``), or None before the first.
        gate, order: freshly made; changed in place.
        rule: of Groups, as it was.
    """
    found = Recovered()
    ledger = Ledger.from_state(state["gate"]["ledger"]) if state else Ledger()
    first = int(state["segment"]) if state else 0
    if state:
        order.load(state["order"])
        found.orders = {int(o["position"]): GroupOrder(**o) for o in state["orders"]}
        found.next_position = ledger.submitted
    for number in segments(root):
        for record, _ in read(root, number):
            _replay(record, found, ledger, order, is_news=number >= first)
        found.segment = max(found.segment, number + 1)
    found.trials = {p: trials for p, trials in found.trials.items() if p in found.orders}
    queued, running = [], []
    for position, group in sorted(found.orders.items()):
        trials = found.trials.get(position, {})
        settled = settle(group, list(trials.values()), rule) if len(trials) == group.trials else None
        if settled is not None and settled.reason:  # it ended; the kill came before its filter was noted
            ledger.phase[position] = "running"
            ledger.filter(position, settled.reason)
            del found.orders[position]
        elif settled is not None:
            queued.append(settled)
        else:
            running.append(group)
    gate_state = state["gate"] if state else gate.state()
    gate.restore({**gate_state, "ledger": ledger.state()}, running, queued)
    return found


def _replay(record: dict[str, Any], found: Recovered, ledger: Ledger, order: TaskOrder, *, is_news: bool) -> None:
    kind, position = record["kind"], record["position"]
    if kind == "trial":
        found.trials.setdefault(position, {})[record["sample"]] = record["trial"]
        return
    if not is_news:
        return
    if kind == "submit":
        found.orders[position] = GroupOrder(position, record["task"], record["trials"], record["version"])
        found.next_position = max(found.next_position, position + 1)
        ledger.submit(position)
        order.load(record["order"])
    elif position in found.orders:
        del found.orders[position]
        if kind == "filter":
            ledger.phase[position] = "running"
            ledger.filter(position, record["reason"])
        else:
            ledger.drop(position, record["reason"])
            order.load(record["order"])


def orders_in_flight(gate: Gate) -> list[dict[str, int]]:
    """Orders of every Group in flight, for a checkpoint: taken when no step is under way."""
    queued = [group.order for group in gate.buffer.groups()]
    return [order_facts(order) for order in (*gate.running.values(), *queued)]
