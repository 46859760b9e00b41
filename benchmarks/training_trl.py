"""TRL's GRPO trainer on trials that are already there: its own batching, loss and optimizer step, nothing sampled.

The trainer asks a ``rollout_func`` for completions; ours hands out the trials, so that what is timed is the step alone.
TRL is installed for comparisons only (``pip install trl==1.16.0``).
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from training_batches import GROUP, AgentTrial

Rollouts = Callable[[list[str], Any], dict[str, Any]]


@dataclass
class StepLog:
    """What each optimizer step took and gave."""

    cpu_s: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)
    grad_norm: list[float] = field(default_factory=list)


def tokenizer_of(vocab: int) -> Any:
    """A tokenizer that TRL accepts: word n is id n; the last word pads, the one before ends."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {f"w{n}": n for n in range(vocab - 2)} | {"<end>": vocab - 2, "<pad>": vocab - 1}
    inner = Tokenizer(models.WordLevel(words, unk_token="w0"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="<end>")


def grpo_trainer(
    model: Any,
    vocab: int,
    rollouts: Rollouts,
    *,
    rows: int,
    micro_batch: int,
    steps: int,
    lr: float,
    longest: int,
    epsilon: float = 0.2,
    optimizer: Any = None,
) -> tuple[Any, StepLog]:
    """TRL's trainer set for one optimizer step for each batch of ``rows`` trials, and the log it fills.

    Token mean (``dapo``), no reference model, one update for each batch, no gradient checkpointing, float32. Prompts
    are the words "0", "1", ...; ``optimizer`` stands in for TRL's AdamW; ``rollouts`` returns prompt_ids,
    completion_ids, logprobs, env_mask and ``reward``.
    """
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    from datasets import Dataset
    from transformers import TrainerCallback
    from transformers.utils import logging
    from trl import GRPOConfig, GRPOTrainer

    logging.set_verbosity_error()
    log = StepLog()

    class Watch(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.began = time.process_time(), time.perf_counter()

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            log.cpu_s.append(time.process_time() - self.began[0])
            log.wall_s.append(time.perf_counter() - self.began[1])

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            if logs and "grad_norm" in logs:
                log.grad_norm.append(float(logs["grad_norm"]))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = GRPOConfig(
            output_dir=tempfile.mkdtemp(prefix="trl-"),
            per_device_train_batch_size=micro_batch,
            gradient_accumulation_steps=rows // micro_batch,
            num_generations=GROUP,
            max_steps=steps,
            learning_rate=lr,
            lr_scheduler_type="constant",
            adam_beta2=0.95,
            max_grad_norm=1.0,
            max_completion_length=longest,
            loss_type="dapo",
            epsilon=epsilon,
            beta=0.0,
            shuffle_dataset=False,
            gradient_checkpointing=False,
            bf16=False,
            use_cpu=True,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=lambda completions, reward, **_: list(reward),
            args=config,
            train_dataset=Dataset.from_list([{"prompt": str(n)} for n in range(rows // GROUP)]),
            processing_class=tokenizer_of(vocab),
            rollout_func=rollouts,
            optimizers=(optimizer, None),
            callbacks=[Watch()],
        )
    return trainer, log


def train_quietly(trainer: Any) -> None:
    """Run it without its prints and warnings."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        trainer.train()


def replayed(trials: Sequence[AgentTrial]) -> Rollouts:
    """Hands out the same trials at every step."""

    def rollouts(prompts: list[str], trainer: Any) -> dict[str, Any]:
        waiting = {str(g): [t for t in trials if t.group == g] for g in {t.group for t in trials}}
        chosen = [waiting[prompt].pop(0) for prompt in prompts]
        return columns_of(chosen)

    return rollouts


def columns_of(chosen: Sequence[AgentTrial], logprobs: Sequence[Any] | None = None) -> dict[str, Any]:
    """Trials as TRL wants them."""
    own = [t.ids[t.prompt_length :].tolist() for t in chosen]
    return {
        "prompt_ids": [t.ids[: t.prompt_length].tolist() for t in chosen],
        "completion_ids": own,
        "logprobs": [[-1.0] * len(ids) for ids in own] if logprobs is None else [list(p) for p in logprobs],
        "env_mask": [t.mask[t.prompt_length :].tolist() for t in chosen],
        "reward": [t.reward for t in chosen],
    }
