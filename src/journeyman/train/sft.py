"""Supervised training from demonstrations, to a criterion or for a number of steps, resumable to the bit.

The data is a function of the step (``batch(data_step)``), so nothing about it needs to be stored: after ``kill -9`` the
same call continues from the last checkpoint and ends in the same bits as a run that was never interrupted (on the same
machine, with the same number of threads).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from journeyman.digest import sha256_json
from journeyman.errors import InputError
from journeyman.train.checkpoint import STATE_FILE, latest, load_checkpoint, save_checkpoint
from journeyman.train.criterion import FixedSteps, Progress, UntilLearned
from journeyman.train.layout import layout_of
from journeyman.train.model import CausalLM
from journeyman.train.optimizer import OptimizerSpec, PolicyOptimizer

if TYPE_CHECKING:
    from torch import Tensor

Example = tuple[NDArray[np.integer], NDArray[np.generic]]
"""ids [tokens] and mask [tokens], 1 where a token is learned; lists are taken too."""

CHECKPOINT_EVERY = 50
"""Steps between durable checkpoints: at most five seconds of work are redone after a kill."""

HELD_OUT_ROWS = 32
"""Rows per forward of the held-out check: what a core's cache holds."""

BASE_OPTIMIZER = OptimizerSpec(lr=3e-3, muon_lr=0.015)
"""Of base training from nothing."""
WARM_START_OPTIMIZER = OptimizerSpec(lr=1e-3)
"""Of the warm start on demonstrations."""
WARM_START_PLAN = FixedSteps(steps=36, constant=18)
"""Length and schedule of the warm start."""


@dataclass
class SftRecord:
    """What happened, in figures that do not measure time: equal after any interruption.

    Attributes:
        losses: of every step of the last attempt, nats per learned token.
        held_out: (steps done, held-out loss) of every check of the last attempt.
        tokens: of all rows of all attempts, prompts included.
        attempts: fresh starts, the first included.
        decay_began: step, or None.
        learned: whether the last held-out loss is below the plan's gate; None without a gate or held-out data.
    """

    losses: list[float] = field(default_factory=list)
    held_out: list[tuple[int, float]] = field(default_factory=list)
    tokens: int = 0
    attempts: int = 1
    decay_began: int | None = None
    learned: bool | None = None

    @property
    def steps(self) -> int:
        """Optimizer steps of the last attempt."""
        return len(self.losses)


@dataclass(frozen=True)
class SftResult:
    """The trained model and its record."""

    model: CausalLM
    record: SftRecord


def train_sft(
    build: Callable[[int], CausalLM],
    batch: Callable[[int], Sequence[Example]],
    *,
    plan: UntilLearned | FixedSteps,
    optimizer: OptimizerSpec,
    held_out: Sequence[Example] = (),
    checkpoints: Path | None = None,
    checkpoint_every: int = CHECKPOINT_EVERY,
    on_step: Callable[[Progress, SftRecord], None] | None = None,
) -> SftResult:
    """Train a model on demonstrations.

    Args:
        build: the model an attempt starts from, by attempt (0, then 1 after a restart: another seed).
        batch: the examples of a step, by steps over all attempts; must give the same ones each time it is asked.
        plan: when to stop.
        optimizer: what to step with; fresh at each attempt.
        held_out: examples of the check; needed by ``UntilLearned``.
        checkpoints: directory of this run's checkpoints; None keeps none.
        checkpoint_every: steps between them.
        on_step: told after each step, e.g. to print.

    Returns:
        The model of the last attempt and the record. A result that was not learned is returned, not raised.

    Raises:
        InputError: the directory holds a damaged checkpoint or one of other settings; ``held_out`` missing.
        StorageError: a checkpoint cannot be written.
    """
    if isinstance(plan, UntilLearned) and not held_out:
        raise InputError("held_out", "empty, but the plan stops on the held-out loss", allowed="at least one example")
    run = _Run(build, plan, optimizer, checkpoints, held_out)
    while not run.progress.is_over:
        run.step(batch(run.progress.data_step))
        if on_step is not None:
            on_step(run.progress, run.record)
        if run.progress.must_restart:
            run.restart()
        if run.progress.is_over or run.progress.step % checkpoint_every == 0:
            run.save()
    return SftResult(run.model, run.record)


class _Run:
    """Owns model, optimizer, progress and record of one training run."""

    def __init__(
        self,
        build: Callable[[int], CausalLM],
        plan: UntilLearned | FixedSteps,
        optimizer: OptimizerSpec,
        root: Path | None,
        held_out: Sequence[Example],
    ) -> None:
        from journeyman.train.backends.decoder import check_supported

        self._build, self._spec, self._root, self._held_out = build, optimizer, root, held_out
        self._settings = sha256_json({"plan": asdict(plan), "optimizer": asdict(optimizer)})
        self.progress, self.record = Progress(plan), SftRecord()
        found = latest(root) if root is not None else None
        checkpoint = load_checkpoint(found) if found else None
        if checkpoint is not None:
            if checkpoint.extra.get("settings") != self._settings:
                where = f"{checkpoint.path / STATE_FILE}:settings"
                hint = "choose another directory, or the settings it was begun with"
                raise InputError(where, "was written under another plan or optimizer", hint=hint)
            self.progress = Progress(plan, checkpoint.extra["progress"])
            saved = dict(checkpoint.extra["record"])
            self.record = SftRecord(**{**saved, "held_out": [(int(n), loss) for n, loss in saved["held_out"]]})
        self._begin()
        check_supported(self.model)
        if checkpoint is not None:
            checkpoint.restore(self.model, self._optimizer)

    def _begin(self) -> None:
        self.model = self._build(self.progress.attempt)
        self._optimizer = PolicyOptimizer(self.model, self._spec)

    def step(self, examples: Sequence[Example]) -> None:
        """One optimizer step, and the held-out check where it is due."""
        loss, tokens = mean_loss(self.model, examples)
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step(self.progress.scale)
        self.progress.advance()
        self.record.losses.append(float(loss.detach()))
        self.record.tokens += tokens
        if self._held_out and self.progress.check_is_due:
            value = held_out_loss(self.model, self._held_out)
            self.record.held_out.append((self.progress.step, value))
            self.progress.observe(value)
            if isinstance(self.progress.plan, UntilLearned):
                self.record.learned = value < self.progress.plan.gate
        self.record.decay_began = self.progress.decay_began

    def restart(self) -> None:
        """Give this attempt up for a fresh model and optimizer."""
        self.progress.restart()
        self.record = SftRecord(tokens=self.record.tokens, attempts=self.record.attempts + 1)
        self._begin()

    def save(self) -> None:
        """Write a checkpoint, where one is wanted."""
        if self._root is None:
            return
        extra = {"settings": self._settings, "progress": self.progress.state(), "record": asdict(self.record)}
        save_checkpoint(self._root, self.progress.data_step, self.model, self._optimizer, extra)


def mean_loss(model: CausalLM, examples: Sequence[Example]) -> tuple[Tensor, int]:
    """Mean of -log p over the learned tokens of some examples (nats, differentiable); the tokens of all their rows."""
    from journeyman.train.backends.decoder import token_logprobs

    layout = layout_of(*_arrays(examples), share_prefixes=False)
    if len(layout.targets) == 0:
        raise InputError("examples", "hold no token to learn", allowed="at least one mask value of 1")
    return -token_logprobs(model, layout).mean(), layout.num_tokens


def held_out_loss(model: CausalLM, examples: Sequence[Example]) -> float:
    """Mean of -log p over the learned tokens of held-out examples, nats."""
    import torch

    from journeyman.train.backends.decoder import token_logprobs

    ids, masks = _arrays(examples)
    total, count = 0.0, 0
    with torch.no_grad():
        for start in range(0, len(ids), HELD_OUT_ROWS):
            part = slice(start, start + HELD_OUT_ROWS)
            logprobs = token_logprobs(model, layout_of(ids[part], masks[part], share_prefixes=True))
            total, count = total - float(logprobs.sum(dtype=torch.float64)), count + len(logprobs)
    return total / max(count, 1)


def _arrays(examples: Sequence[Example]) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    return [np.asarray(ids) for ids, _ in examples], [np.asarray(mask) for _, mask in examples]
