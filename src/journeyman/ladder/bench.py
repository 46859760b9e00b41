"""What the seven steps share: the workshop, the models by role, one engine, and a line of progress."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import shutil
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from journeyman.digest import directory_sha256
from journeyman.engines.embedded import EmbeddedEngine
from journeyman.engines.embedded.checkpoint import read_directory
from journeyman.ladder.evaluate import Evaluation, boundary, evaluate
from journeyman.ladder.profiles import PROFILES
from journeyman.ladder.report.sections import Scores
from journeyman.ladder.rollouts import Rollouts
from journeyman.ladder.summaries import Summary, scores
from journeyman.ladder.workshop import Workshop
from journeyman.tasks.task import Task
from journeyman.train.backends.torch import TorchTrainer
from journeyman.train.model import CausalLM, ModelShape, load_model
from journeyman.train.optimizer import OptimizerSpec

ROLES: dict[str, str] = {
    "fresh": PROFILES["tiny"].fresh_label,
    "clean_base": "base SFT on clean demonstrations",
    "warm_start": "clean base after the imperfect demonstrator",
    "trained": "warm start after RL",
}
"""The four models that every report shows side by side; ``Bench.labels`` has the words of the run's own profile."""

Say = Callable[[str], None]


class Bench:
    """The shared means of one run.

    Attributes:
        workshop: what the run works with.
        say: prints one line of progress.
    """

    def __init__(self, workshop: Workshop, say: Say) -> None:
        self.workshop, self.say = workshop, say
        self.recipe, self.run = workshop.recipe, workshop.run
        self._loaded: str | None = None
        import torch

        torch.set_num_threads(1)  # more help the RL update alone, which asks for them

    @property
    def labels(self) -> dict[str, str]:
        """How tables print each role."""
        return {**ROLES, "fresh": PROFILES[self.recipe.profile].fresh_label}

    def model_path(self, role: str) -> Path:
        return self.run.path("models", role)

    @cached_property
    def shape(self) -> ModelShape:
        """The policy's shape under this recipe and tokenizer: every model of the run has it."""
        counts = self.recipe.model.model_dump(exclude={"tokenizer_size"})
        kind = "llama" if PROFILES[self.recipe.profile].pretrained else "qwen3"
        return ModelShape(vocab_size=self.workshop.tokenizer.vocab_size, model_type=kind, **counts)

    @property
    def config_fields(self) -> dict[str, object]:
        """The same as ``config.json`` says it."""
        return {"model_type": self.shape.model_type, **self.shape.config_fields()}

    def load(self, role: str) -> CausalLM:
        """A role's model. Raises InputError for one of another shape."""
        return load_model(self.model_path(role), self.shape)

    @cached_property
    def engine(self) -> EmbeddedEngine:
        """The one rollout engine; ``hold`` decides whose weights act."""
        recipe = self.recipe.engine
        return EmbeddedEngine.from_directory(
            self.model_path("fresh"), expected=self.config_fields, rows=recipe.rows, max_len=recipe.max_context
        )

    @cached_property
    def rollouts(self) -> Rollouts:
        return Rollouts(self.workshop, self.engine)

    def hold(self, role: str) -> None:
        """Give the engine the weights of a role's model; their version is the number of RL updates behind them."""
        if self._loaded != role:
            _, state = read_directory(self.model_path(role), expected=self.config_fields)
            updates = self.recipe.rl.train_steps if role == "trained" else 0
            self.engine.update_weights(state, version=updates)
            self._loaded = role

    def forget(self) -> None:
        """The engine's weights were changed by training: no role is loaded any more."""
        self._loaded = None

    def rest(self) -> None:
        """Give the memory of a large model's engine and trainers back to the system; the next use makes them again."""
        if PROFILES[self.recipe.profile].pretrained:
            self.__dict__.pop("rollouts", None)
            self.__dict__.pop("engine", None)
            self.forget()
            gc.collect()
            with contextlib.suppress(OSError, AttributeError):  # a C library other than glibc
                ctypes.CDLL(None).malloc_trim(0)

    def drop_checkpoints(self, *place: str) -> None:
        """Remove the checkpoints below ``place``, whose stage is complete, unless the recipe keeps them."""
        if not self.recipe.rl.keep_checkpoints:
            shutil.rmtree(self.run.path(*place), ignore_errors=True)

    def trainer(self, role: str, threads: int | None = None) -> TorchTrainer:
        """A fresh RL trainer on a role's model."""
        rl = self.recipe.rl
        return TorchTrainer(
            self.load(role),
            OptimizerSpec(lr=rl.lr),
            train_threads=threads or rl.threads,
            tokens_per_micro_batch=rl.micro_batch_tokens,
        )

    def evaluate(
        self, what: Evaluation, tasks: Sequence[Task] | None = None, *, is_recorded: bool = False
    ) -> list[Summary]:
        """Measure a role's model, or read the measurement back; ``is_recorded`` as in ``evaluate.evaluate``."""
        if self.run.load(f"evaluation-{what.name}") is None:
            self.hold(what.role)
        return self.evaluate_current(what, tasks, is_recorded=is_recorded)

    def evaluate_current(
        self, what: Evaluation, tasks: Sequence[Task] | None = None, *, is_recorded: bool = False
    ) -> list[Summary]:
        """Measure the weights that the engine holds now, or read the measurement back."""
        chosen = self.workshop.tasks(what.split) if tasks is None else tasks
        model = self.labels.get(what.role, what.role)
        system = boundary(what, model, self.model_sha256(what.role), self.recipe.engine.max_context)
        return evaluate(self.run, what, chosen, self.rollouts, system, is_recorded=is_recorded)

    def scores(self, what: Evaluation, summaries: Sequence[Summary]) -> Scores:
        """Both score kinds of an evaluation."""
        return scores(summaries, what.boundary_name, self.recipe.evaluation.confidence)

    def model_sha256(self, role: str) -> str | None:
        path = self.model_path(role)
        return directory_sha256(path) if path.is_dir() else None
