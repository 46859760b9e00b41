"""The three models that RL starts from: fresh, clean base, warm start. Each is a stage, resumable to the bit.

Fresh is an initialisation, or in a profile with a pretrained model that model as it was shipped.

The base is trained on clean demonstrations until its held-out loss says that the skill is there. The warm start then
sees an imperfect demonstrator: right format, wrong workflow in a share of the cases. That is where the low start of
RL comes from, and the report says so.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from journeyman.ladder.bench import Bench
from journeyman.ladder.demonstrations import Demonstrator
from journeyman.ladder.profiles import PROFILES
from journeyman.ladder.smollm2 import VOCABULARY, load_pretrained
from journeyman.train.criterion import FixedSteps, Progress, UntilLearned
from journeyman.train.model import CausalLM, ModelShape, build_model, load_model, save_model
from journeyman.train.optimizer import OptimizerSpec
from journeyman.train.sft import SftRecord, train_sft

RESTART_SEED = 1000
"""Added to the seed of a second attempt, should the first not reach the criterion in time. A pretrained start has no
seed, and so one attempt."""


def shape(bench: Bench, vocab_size: int) -> ModelShape:
    """The policy's shape under this recipe."""
    kind = "llama" if _is_pretrained(bench) else "qwen3"
    counts = bench.recipe.model.model_dump(exclude={"tokenizer_size"})
    return ModelShape(vocab_size=vocab_size, model_type=kind, **counts)


def _is_pretrained(bench: Bench) -> bool:
    return PROFILES[bench.recipe.profile].pretrained


def _new_rows(bench: Bench) -> int:
    """How many tokens were added to the vocabulary of a pretrained model."""
    return bench.workshop.tokenizer.vocab_size - VOCABULARY if _is_pretrained(bench) else 0


def fresh_model(bench: Bench, vocab_size: int) -> None:
    """What training starts from, kept so that the report can show it."""
    if bench.run.load("fresh") is None:
        wanted = shape(bench, vocab_size)
        model = load_pretrained(wanted) if _is_pretrained(bench) else build_model(wanted, bench.recipe.seed)
        save_model(model, bench.model_path("fresh"))
        bench.run.finish("fresh", {"parameters": sum(p.numel() for p in model.parameters())})


def base_sft(bench: Bench) -> dict[str, Any]:
    """Train the clean base; returns its record."""
    record = bench.run.load("base-sft")
    if record is not None:
        return record
    recipe, workshop = bench.recipe, bench.workshop
    sft = recipe.sft
    held_out_worlds = workshop.sft_worlds[-recipe.worlds.sft_heldout_worlds :]
    train_worlds = workshop.sft_worlds[: -recipe.worlds.sft_heldout_worlds]
    demonstrator = Demonstrator(workshop.tokenizer, train_worlds, workshop.tools_of_world, recipe.seed)
    judge = Demonstrator(workshop.tokenizer, held_out_worlds, workshop.tools_of_world, recipe.seed)
    vocab_size = workshop.tokenizer.vocab_size

    def build(attempt: int) -> CausalLM:
        if _is_pretrained(bench):
            return load_model(bench.model_path("fresh"))
        return build_model(shape(bench, vocab_size), recipe.seed + attempt * RESTART_SEED)

    result = train_sft(
        build,
        lambda step: demonstrator.batch("base", step, sft.batch_size),
        plan=UntilLearned(
            warmup=sft.warmup_steps,
            check_every=sft.check_every,
            threshold=sft.stop_loss,
            decay=sft.decay_steps,
            cap=sft.max_steps,
            restart_at=sft.restart_by,
            gate=sft.max_final_loss,
            attempts=1 if _is_pretrained(bench) else 2,
        ),
        optimizer=OptimizerSpec(lr=sft.adamw_lr, muon_lr=sft.muon_lr, new_rows=_new_rows(bench)),
        held_out=judge.batch("held-out", 0, sft.heldout_traces),
        checkpoints=bench.run.path("base-sft"),
        on_step=_reporter(bench, "base SFT"),
    )
    save_model(result.model, bench.model_path("clean_base"))
    facts = bench.run.finish("base-sft", _facts(result.record))
    bench.drop_checkpoints("base-sft")
    return facts


def warm_start(bench: Bench, good_share: float, attempt: int) -> dict[str, Any]:
    """Continue the clean base on the imperfect demonstrator; returns its record."""
    stage = f"warm-start-{attempt}"
    record = bench.run.load(stage)
    if record is not None:
        return record
    recipe, workshop = bench.recipe, bench.workshop
    settings = recipe.warm_start
    worlds = workshop.sft_worlds[: settings.worlds]
    demonstrator = Demonstrator(workshop.tokenizer, worlds, workshop.tools_of_world, recipe.seed, good_share)
    result = train_sft(
        lambda _: bench.load("clean_base"),
        lambda step: demonstrator.batch(stage, step, settings.batch_size),
        plan=FixedSteps(steps=settings.steps, constant=settings.steps // 2),
        optimizer=OptimizerSpec(lr=settings.lr),
        checkpoints=bench.run.path(stage),
        on_step=_reporter(bench, "warm start"),
    )
    save_model(result.model, bench.model_path("warm_start"))
    bench.forget()
    facts = bench.run.finish(stage, {**_facts(result.record), "good_share": good_share, "attempt": attempt})
    bench.drop_checkpoints(stage)
    return facts


def _reporter(bench: Bench, name: str) -> Any:
    def report(progress: Progress, record: SftRecord) -> None:
        if progress.check_is_due or progress.step % 50 == 0:
            held_out = f", held-out loss {record.held_out[-1][1]:.4f}" if record.held_out else ""
            bench.say(f"{name}: step {progress.step}, loss {float(np.mean(record.losses[-50:])):.4f}{held_out}")

    return report


def _facts(record: SftRecord) -> dict[str, Any]:
    """What the report needs, without the loss of every step."""
    final = record.held_out[-1][1] if record.held_out else None
    return {
        "n_steps": record.steps,
        "tokens": record.tokens,
        "attempts": record.attempts,
        "decay_began": record.decay_began,
        "heldout_losses": record.held_out,
        "final_loss": final,
        "last_train_loss": float(np.mean(record.losses[-min(25, record.steps) :])) if record.losses else math.inf,
    }
