"""The words between the loop and whoever runs trials for it. The unit of every count is the Group: one task, n trials.

A ``TrialSource`` is asked and never waited for: ``submit`` returns at once, ``poll`` returns what ended, and weights
pushed to it serve from the next sampled token on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class GroupOrder:
    """A Group to run.

    Attributes:
        position: how many Groups were submitted before it; unique in a run, and the key of its sampling noise.
        task: index of the task in the run's task list.
        trials: how many.
        version: weights serving when it was submitted; no token of it is older.
        samples: which of its trials are still wanted; all of them unless a half-finished Group is resumed.
    """

    position: int
    task: int
    trials: int
    version: int
    samples: tuple[int, ...] = ()

    @property
    def wanted(self) -> tuple[int, ...]:
        """Indices of the trials to run."""
        return self.samples or tuple(range(self.trials))


@dataclass(frozen=True)
class FinishedTrial:
    """One trial as the loop sees it; its last attempt where it was retried.

    Attributes:
        position, sample: its Group, and its index in it.
        ids: int32 [tokens]. mask: uint8 [tokens], 1 where sampled. logprobs: float32 [tokens], at sampling.
        versions: int32 [tokens], weights that sampled each token, -1 elsewhere.
        reward: None where there is no valid one: then ``cause`` says why, and it enters no baseline.
        passed: of the verdict.
        cause: row of the error table.
        facts: JSON about it: ``stop_reason``, ``calls``, ``errors``, ``malformed``, ``seconds``, ``usd``, ``explain``,
            ``shadow_reward``, and ``segments`` of a context that was edited, as ``tokens.segments`` writes them.
        topk_ids, topk_logprobs: [sampled tokens, k], the engine's likeliest tokens at each sampled one, in order, or
            None where the loss needs none.
        routed_experts: [tokens, layers, experts per token], where the engine recorded them, or None.
    """

    position: int
    sample: int
    ids: NDArray[np.int32]
    mask: NDArray[np.uint8]
    logprobs: NDArray[np.float32]
    versions: NDArray[np.int32]
    reward: float | None
    passed: bool | None
    cause: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    topk_ids: NDArray[np.int32] | None = None
    topk_logprobs: NDArray[np.float32] | None = None
    routed_experts: NDArray[np.integer[Any]] | None = None

    @property
    def num_sampled(self) -> int:
        """Tokens the policy sampled."""
        return int(np.count_nonzero(self.mask))

    def oldest(self, otherwise: int) -> int:
        """Oldest version among its sampled tokens; ``otherwise`` where nothing was sampled."""
        sampled = self.versions[self.mask.astype(bool)]
        return int(sampled.min()) if len(sampled) else otherwise


@dataclass(frozen=True)
class SourceGauges:
    """How the source stands.

    Attributes:
        trials_running: trials begun and not ended.
        turns_waiting: turns that wait for a place in the engine.
        kv_tokens, kv_capacity: held and holdable.
        preemptions: since the engine was made.
        busy_s, lived_s: seconds in which some turn was under way, of the seconds since the source was made.
        sampled_tokens: since the source was made.
        version: of the weights serving.
        prefilled_tokens: of context computed, since the source was made.
        cpu_s: seconds of cores that the source and its ended children used; 0 where it is no process of its own.
    """

    trials_running: int = 0
    turns_waiting: int = 0
    kv_tokens: int = 0
    kv_capacity: int = 0
    preemptions: int = 0
    busy_s: float = 0.0
    lived_s: float = 0.0
    sampled_tokens: int = 0
    version: int = 0
    prefilled_tokens: int = 0
    cpu_s: float = 0.0


@dataclass(frozen=True)
class Arrivals:
    """What one poll brought.

    Attributes:
        trials: that ended since the last poll.
        lost: positions of Groups whose trials are gone because the source was restarted; the loop orders what is
            missing of them again.
        gauges: the present ones.
        probes: short turns that one version of the weights sampled whole, to compare engine and trainer by; they belong
            to no Group.
    """

    trials: Sequence[FinishedTrial]
    lost: Sequence[int] = ()
    gauges: SourceGauges = SourceGauges()
    probes: Sequence[FinishedTrial] = ()


class TrialSource(Protocol):
    """Runs Groups on an engine of its own. Also a ``train.protocol.WeightReceiver``."""

    def submit(self, orders: Sequence[GroupOrder]) -> None:
        """Take Groups; returns at once. Groups that are submitted together begin together."""
        ...

    def poll(self, wait_s: float) -> Arrivals:
        """What ended; waits at most ``wait_s`` seconds for it. Raises SystemFault when the source is beyond help."""
        ...

    def cancel(self, position: int) -> None:
        """End a Group's trials now; they come back as ``cancelled`` or not at all."""
        ...

    def limit(self, trials: int) -> None:
        """Run at most that many trials at once from now on."""
        ...

    def update_weights(self, state: Any, version: int) -> None:
        """Serve new weights from the next sampled token on. Returns when the old ones are no longer read."""
        ...

    def close(self) -> None:
        """End everything. Idempotent."""
        ...


@dataclass(frozen=True)
class Measured:
    """One evaluation on frozen weights.

    Attributes:
        version: of the weights.
        mean_reward, pass_1, pass_k: over tasks; None where nothing was graded.
        k: of ``pass_k``.
        pass_k_error: standard error of ``pass_k`` over tasks.
        trials: graded.
    """

    version: int
    mean_reward: float | None
    pass_1: float | None
    pass_k: float | None
    k: int
    pass_k_error: float
    trials: int


class Evaluator(Protocol):
    """Measures frozen weights beside training. A ``train.protocol.WeightReceiver``: being given weights starts it."""

    @property
    def is_busy(self) -> bool:
        """An evaluation is under way; it is given no other weights meanwhile."""
        ...

    def update_weights(self, state: Any, version: int) -> None:
        """Copy the weights and begin to measure them; returns at once."""
        ...

    def poll(self) -> list[Measured]:
        """Evaluations that ended."""
        ...

    def finish(self, deadline_s: float) -> list[Measured]:
        """Wait for what is at work."""
        ...

    def close(self) -> None:
        """End it."""
        ...
