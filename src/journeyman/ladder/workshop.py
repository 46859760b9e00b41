"""What a run works with: sandbox provider, agent environment, read cache, tokenizer, worlds and tasks, made once.

Everything here is derived from the recipe and the run directory, so a resumed run and a worker process build the
same.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from journeyman.digest import sha256
from journeyman.ladder.recipe import QuickstartRecipe
from journeyman.ladder.rundir import RunDirectory
from journeyman.ladder.tier import Tier, choose_tier
from journeyman.sandbox.environment import build_environment
from journeyman.sandbox.protocol import AgentEnvironment, Provider
from journeyman.tasks.task import Task, load_task
from journeyman.tasks.verify import BatchVerifier
from journeyman.tokens.tokenizer import Tokenizer
from journeyman.tools import ReadCache, ToolContext
from journeyman.tools.agent_environment import AGENT_DISTRIBUTIONS, AGENT_PACKAGES, AGENT_PROGRAMS
from journeyman.worlds.mini.world import World, make_world


class Workshop:
    """Lazily built parts of one run.

    Attributes:
        run: the run directory.
        recipe: its recipe.
        label: owner of every sandbox this run starts.
    """

    def __init__(self, run: RunDirectory, tier: Tier | None = None, label: str | None = None) -> None:
        """
        Args:
            run: the run directory.
            tier: where untrusted actions run; by default what the recipe asks for.
            label: by default the run's.
        """
        self.run = run
        self.recipe: QuickstartRecipe = run.recipe
        self.label = label or run.label
        if tier is not None:
            self.tier = tier
        self._contexts: dict[str, ToolContext] = {}

    @cached_property
    def tier(self) -> Tier:
        """Where untrusted actions run; ``auto`` falls back to what this machine can do, and says so."""
        return choose_tier(self.recipe.sandbox.provider, frozenset(self.recipe.sandbox.waive))

    @property
    def provider(self) -> Provider:
        return self.tier.provider

    @property
    def warnings(self) -> tuple[str, ...]:
        """What this machine cannot enforce, in loud words; empty where everything holds."""
        return self.tier.warnings

    @cached_property
    def environment(self) -> AgentEnvironment:
        """The sandbox's Python environment, built apart and reused by digest."""
        return build_environment(
            self.run.path("environment"),
            distributions=AGENT_DISTRIBUTIONS,
            packages=AGENT_PACKAGES,
            programs=AGENT_PROGRAMS,
        )

    @cached_property
    def reads(self) -> ReadCache:
        """Document trees by content digest, filled by a sandboxed reader."""
        directory = self.run.path("cache", "reads")
        return ReadCache(directory, self.provider, self.environment, self.label, waive=self.tier.waive)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer(self.run.path("tokenizer"))

    @cached_property
    def sft_worlds(self) -> list[World]:
        """The worlds of the demonstrations; their last ``sft_heldout_worlds`` serve the held-out loss alone."""
        return [make_world(self.recipe.seed, "sft", index) for index in range(self.recipe.worlds.sft_worlds)]

    def tasks(self, split: str) -> list[Task]:
        """The published tasks of a split, in order of their ids."""
        return [load_task(path) for path in sorted(self.run.path("tasks", split).iterdir())]

    def world_directory(self, task: Task) -> Path:
        """The world files of a task."""
        return task.path / "environment" / "world"

    def tools_of_task(self, task: Task) -> ToolContext:
        """The tool context of a trial of ``task``."""
        if task.world_id not in self._contexts:
            root = self.world_directory(task)
            files = {path.name: sha256(path.read_bytes()) for path in sorted(root.iterdir())}
            self._contexts[task.world_id] = ToolContext(files=files, reads=self.reads)
        return self._contexts[task.world_id]

    def tools_of_world(self, world: World) -> ToolContext:
        """The tool context of a demonstration in ``world``."""
        if world.id not in self._contexts:
            files = {name: sha256(data) for name, data in sorted(world.files.items())}
            self._contexts[world.id] = ToolContext(files=files, reads=self.reads)
        return self._contexts[world.id]

    def verifier(self) -> BatchVerifier:
        """A fresh verifier for one batch."""
        return BatchVerifier(self.provider, self.environment, self.label, waive=self.tier.waive, one_batch=True)
