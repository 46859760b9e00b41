"""What a dry run works with: sandboxes, the agent's environment, documents read before, the policy's engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from journeyman.digest import sha256
from journeyman.engines.protocol import Engine
from journeyman.engines.scripted import ScriptedEngine
from journeyman.engines.spec import locate, open_engine, parse_model
from journeyman.errors import EnvironmentMissing
from journeyman.ladder.dryrun.plan import Plan
from journeyman.ladder.tier import Tier, strict_tier
from journeyman.sandbox.environment import build_environment
from journeyman.sandbox.protocol import AgentEnvironment
from journeyman.tasks.task import Task
from journeyman.tasks.verify import BatchVerifier
from journeyman.tokens.renderers.detection import family_of
from journeyman.tools import ReadCache
from journeyman.tools.agent_environment import AGENT_DISTRIBUTIONS, AGENT_PACKAGES, AGENT_PROGRAMS
from journeyman.tools.workbench import tools_environment, workbench_environment
from journeyman.trials.dryrun.place import QUICKSTART, dry_place
from journeyman.trials.executors.protocol import WorkplaceRecipe
from journeyman.trials.offer import Offer
from journeyman.trials.rubric_judge import open_judge
from journeyman.trials.world_documents import read_documents

MEMORY_MB, PIDS = 1_024, 256
"""Of each sandbox: the tools' program and what a policy starts beside it."""

Say = Callable[[str], None]


class Stage:
    """Made once per start of a run; ``close`` ends the engine.

    Args:
        plan: of the run.
        out: its directory; the documents that were read lie in it.
        offer: what the policy is offered besides the harness's tools.
        waive: sandbox limits that may stay unenforced.
        say: told what takes time or is missing.

    Raises:
        EnvironmentMissing: no sandbox works here, or a package of the agent's environment is not installed.
        InputError: the model cannot be used.
    """

    def __init__(self, plan: Plan, out: Path, offer: Offer, waive: frozenset[str], say: Say) -> None:
        self.plan, self.out, self.offer = plan, out, offer
        self.label = f"dry-run-{sha256(str(out.absolute()).encode())[:12]}"
        self.tier: Tier = strict_tier(waive)
        self.tier.provider.reap(self.label)
        self.environment = self._environment(say)
        self.reads = ReadCache(
            out / "cache" / "reads", self.tier.provider, self.environment, self.label, waive=self.tier.waive
        )
        self.empty = out / "cache" / "empty"
        self.empty.mkdir(parents=True, exist_ok=True)
        self.tokenizer = ""
        self.judge = open_judge(plan.judge, plan.judge_keys) if plan.judge else None
        self.engine: Engine = self._engine()

    def close(self) -> None:
        """Give the engine's memory back and remove what is left of the run's sandboxes."""
        self.engine.close()
        if self.judge is not None:
            self.judge.close()
        self.tier.provider.reap(self.label)

    def read_documents(self, tasks: Sequence[Task], say: Say) -> None:
        """Read the documents that are looked up, in a sandbox; one that cannot be read is said."""
        read_documents(self.reads, tasks, say)

    def verifier(self) -> BatchVerifier:
        """What grades; each portion gets its own fresh sandbox."""
        tier = self.tier
        return BatchVerifier(tier.provider, self.environment, self.label, waive=tier.waive, judge=self.judge)

    def workplace(self) -> WorkplaceRecipe:
        """What supervisors make."""
        arguments: dict[str, Any] = {
            "label": self.label,
            "provider": self.tier.provider.name,
            "environment": str(self.environment.path.absolute()),
            "digest": self.environment.digest,
            "policy": self.plan.kind,
            "harness": self.plan.harness,
            "tokenizer": self.tokenizer,
            "reads": str(self.reads.directory.absolute()),
            "memory_mb": MEMORY_MB,
            "pids": PIDS,
            "waive": sorted(self.tier.waive),
            "today": self.plan.today,
            "context_tokens": self.context_tokens,
            "seed": self.plan.seed,
            "offer": self.offer.as_arguments(),
            "empty": str(self.empty.absolute()),
        }
        return dry_place(self.plan.place, **arguments)

    @property
    def context_tokens(self) -> int:
        """What a trial's context may hold; 0 for policies without one."""
        if self.plan.kind != "model":
            return 0
        return min(self.plan.context_tokens or self.engine.max_len, self.engine.max_len)

    def _environment(self, say: Say) -> AgentEnvironment:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        root = Path(cache) / "journeyman" / "environments"  # by digest, and large: runs share them
        if self.plan.harness.startswith(QUICKSTART):
            return build_environment(
                root, distributions=AGENT_DISTRIBUTIONS, packages=AGENT_PACKAGES, programs=AGENT_PROGRAMS
            )
        try:
            return workbench_environment(root)
        except EnvironmentMissing as error:
            say(f"agents get the small environment, without the workbench: {error}")
            return tools_environment(root)

    def _engine(self) -> Engine:
        if self.plan.kind != "model":
            return ScriptedEngine({})
        directory = locate(parse_model(self.plan.policy))
        self.tokenizer = str(directory.absolute())
        if not self.plan.harness.startswith(QUICKSTART):
            family_of(directory)  # raises before anything starts when no renderer knows the model
        options: dict[str, Any] = {"max_len": self.plan.context_tokens} if self.plan.context_tokens else {}
        return open_engine(self.plan.policy, **options)
