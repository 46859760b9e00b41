"""Step 2, tokens: what was sampled is what is trained on, and engine and trainer hold the same model.

Two checks on the dry run's own trials: the sampled ids reach the trainer unchanged, and both sides give the same
logprobs for them. Then the alarm is tried out: one weight of the trainer is moved, and the gate must notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.ladder import judgement
from journeyman.ladder.bench import Bench
from journeyman.ladder.report.model import Step
from journeyman.tokens.audit import retokenised
from journeyman.tokens.context import Columns
from journeyman.tokens.gap import Gap, logprob_gap
from journeyman.train.backends.torch import TorchTrainer
from journeyman.train.protocol import TrainRow
from journeyman.trials.store import read_tokens

ROWS = 256
PERTURBATION = 0.05
"""Relative change of the one weight."""


def run_step(bench: Bench) -> Step:
    """Audit the dry run's tokens and measure the logprob gap on them."""
    contexts = _dry_run_contexts(bench)[:ROWS]
    audit = retokenised(contexts, bench.workshop.tokenizer)
    rows = [TrainRow(c.ids, c.mask, c.logprob, 0.0, 0) for c in contexts]
    changed = sum(_differs(row, context) for row, context in zip(rows, contexts, strict=True))
    trainer = bench.trainer("warm_start")
    gap = _gap(contexts, trainer.forward_logprobs(rows))
    tripped = _gap(contexts, _moved(trainer).forward_logprobs(rows))
    judged = judgement.tokens(bench.recipe.gates, gap, tripped, len(rows), changed)
    bench.say(f"logprob gap {gap.mean:.1e} over {gap.n} tokens; perturbed {tripped.mean:.1e}")
    return Step(
        number=2,
        name="tokens",
        status=judged.status,
        gate=judged.gate,
        checks=judged.checks,
        summary=(
            f"{audit.turns} sampled turns kept as ids; re-tokenising their text would have changed "
            f"{len(audit.changed)} of them ({audit.changed_share:.1%})"
        ),
        evidence={
            "turns": audit.turns,
            "sampled_tokens": audit.tokens,
            "turns_retokenising_would_change": len(audit.changed),
            "gap": {"mean": gap.mean, "q99": gap.q99, "max": gap.max, "n": gap.n},
            "gap_with_one_weight_moved": tripped.mean,
        },
        look_at=("dry-run",),
    )


def _dry_run_contexts(bench: Bench) -> list[Columns]:
    """The stored contexts of the dry run that counts: the last warm start's first pool."""
    folders: list[Path] = sorted(p for p in bench.run.path("dry-run").iterdir() if p.name.startswith("dry-run-"))
    last = folders[-1].name.split("-")[2]
    return list(read_tokens(next(p for p in folders if p.name.split("-")[2] == last)))


def _gap(contexts: Sequence[Columns], trainer_logprobs: Sequence[np.ndarray]) -> Gap:
    return logprob_gap(
        np.concatenate([c.logprob for c in contexts]),
        np.concatenate(list(trainer_logprobs)),
        np.concatenate([c.mask for c in contexts]),
    )


def _moved(trainer: TorchTrainer) -> TorchTrainer:
    """The trainer with one weight of its final norm moved: what a push that lost a tensor would look like."""
    weight = dict(trainer.model.named_parameters())["model.norm.weight"]
    weight.data[0] *= 1 + PERTURBATION
    return trainer


def _differs(row: Any, context: Columns) -> bool:
    return not np.array_equal(row.ids, context.ids)
