"""What a loop is told: the rules, the update, the deadlines, and what to keep."""

from __future__ import annotations

from dataclasses import dataclass, field

from journeyman.train.guards.table import GuardSpec
from journeyman.train.loop.gate import GateSpec
from journeyman.train.loop.settling import GroupRule
from journeyman.train.metrics.prices import Prices
from journeyman.train.switches import Switches
from journeyman.train.update import UpdateSpec


@dataclass(frozen=True)
class Deadlines:
    """How long anything may take that the loop waits for. Seconds.

    Attributes:
        stall_s: without a finished trial and without a finished step.
        step_s: one optimizer step with its push, or one checkpoint.
        evaluation_s: the evaluations still under way when training ends.
    """

    stall_s: float = 3600.0
    step_s: float = 3600.0
    evaluation_s: float = 3600.0


@dataclass(frozen=True)
class Retention:
    """Which checkpoints stay.

    Attributes:
        last: the newest so many.
        every: of steps whose number is a multiple of it, for good; 0 keeps none for that.
        best: the one with the best evaluation (or, without evaluations, the best train reward).
    """

    last: int = 2
    every: int = 0
    best: bool = True


@dataclass(frozen=True)
class LoopSpec:
    """One RL run.

    Attributes:
        name: keys the noise and the order of the tasks.
        seed: root of both.
        tasks: how many there are.
        trials_per_group: trials of one task.
        gate: admission, bound, buffer, steps.
        rule: when a Group counts.
        advantage: entry of ``advantages.ADVANTAGES``.
        update: loss and reduction.
        switches: overlong filter and length penalty.
        guards: what is watched.
        trials_at_once: bounds of the concurrency: start, lowest, highest.
        checkpoint_every: steps between checkpoints.
        evaluate_every: steps between evaluations; 0 evaluates never.
        prices: what sampling and machines cost.
        whole_trials: the gap is measured over trials sampled by one version alone; False: over every token of the
            present version, for engines that compute the keys and values of running trials anew.
        probe_wait_s: that a step waits at most for a probe where none of its own trials can tell the gap; 0 where the
            source sends none.
        refill_rounds: synchronous only: how often a step that lost Groups to the filter samples more of them.
    """

    name: str
    seed: int
    tasks: int
    trials_per_group: int
    gate: GateSpec
    rule: GroupRule = field(default_factory=GroupRule)
    advantage: str = "grpo"
    update: UpdateSpec = field(default_factory=UpdateSpec)
    switches: Switches = field(default_factory=Switches)
    guards: GuardSpec = field(default_factory=GuardSpec)
    trials_at_once: tuple[int, int, int] = (64, 1, 4096)
    checkpoint_every: int = 1
    evaluate_every: int = 0
    refill_rounds: int = 0
    prices: Prices = field(default_factory=Prices)
    whole_trials: bool = True
    probe_wait_s: float = 0.0
    deadlines: Deadlines = Deadlines()
    retention: Retention = Retention()

    @property
    def steps(self) -> int:
        """Optimizer steps of the run."""
        assert self.gate.steps is not None
        return self.gate.steps
