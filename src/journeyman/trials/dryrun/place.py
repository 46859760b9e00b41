"""The workplace of a dry run: any policy in any harness, on task directories, made by name below a supervisor."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import date
from typing import Any

from journeyman.errors import InputError
from journeyman.harness.protocol import Loop
from journeyman.harness.registry import LOOPS, SPECS
from journeyman.sandbox.protocol import Sandbox
from journeyman.seeds import key64
from journeyman.tools import TOOLS, ToolContext, ToolSet
from journeyman.tools.calling import call
from journeyman.tools.protocol import Observation
from journeyman.tools.sandbox_tools import SandboxTools
from journeyman.trials.dryrun.actions import RandomActions, Solution
from journeyman.trials.executors.protocol import Ticket, WorkplaceRecipe
from journeyman.trials.executors.workplaces import SURFACE_LOOPS, TaskPlace, code_tools
from journeyman.trials.plan import fitted
from journeyman.trials.record import TrialRequest

QUICKSTART = "framing:"
"""Prefix of the two harnesses of the quickstart's own small models, e.g. ``framing:toolbelt``."""


class PureTools:
    """Implements ``ToolSet`` over the quickstart's three pure tools."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self.schemas: Mapping[str, Mapping[str, Any]] = {name: tool.schema for name, tool in TOOLS.items()}
        self.descriptions: Mapping[str, str] = {name: tool.description for name, tool in TOOLS.items()}

    def call(self, name: str, arguments: Mapping[str, Any], *, deadline_s: float = 60.0) -> Observation:
        """See ``ToolSet.call``."""
        return call(name, arguments, self._context)

    def close(self) -> None:
        """See ``ToolSet.close``."""


class DryPlace(TaskPlace):
    """Desks for a dry run.

    Args:
        harness: key of ``harness.registry.SPECS``, or ``framing:`` and a name of ``harness.HARNESSES``.
        today: the trial's date, ISO.
        context_tokens: what a model's context may hold; 0 leaves the harness's own budget.
        seed: of the random agent.
        arguments: of ``TaskPlace``; ``policy`` is one of ``classes.POLICIES``.
    """

    def __init__(
        self,
        *,
        harness: str,
        today: str = "2026-01-01",
        context_tokens: int = 0,
        seed: int = 0,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments, max_context=context_tokens or 640)
        self._harness, self._today = harness, date.fromisoformat(today)
        self._context_tokens, self._seed = context_tokens, seed

    def toolset(self, request: TrialRequest, sandbox: Sandbox) -> ToolSet | None:
        """The tools that the harness offers; random actions in a terminal's harness are those of ``code``."""
        if self.policy not in ("random", "model"):
            return None
        if self._harness.startswith(QUICKSTART):
            return PureTools(self.tools(request.task)) if self.policy == "random" else None
        spec = SPECS[self._harness]
        if spec.loop in SURFACE_LOOPS:
            return SandboxTools(sandbox)
        return code_tools(spec, sandbox) if spec.loop == "code" or self.policy == "random" else None

    def _loop(self, ticket: Ticket, sandbox: Sandbox, tools: ToolSet | None) -> Loop:
        request = ticket.request
        if self.policy == "oracle":
            return Solution(sandbox, ticket.limits.agent(request.task.agent_timeout_s))
        if self.policy == "random" and tools is not None:
            return RandomActions(tools, key64(self._seed, *request.stream, ticket.attempt))
        if self.policy == "noop" or self._harness.startswith(QUICKSTART):
            return super()._loop(ticket, sandbox, tools)
        if self._renderer is None:
            raise InputError("--policy", "has a chat format that no renderer knows", hint="take a framing: harness")
        spec = SPECS[self._harness]
        spec = fitted(spec, self._context_tokens or spec.budget.context_tokens, self._today)
        return LOOPS[spec.loop](spec, self._renderer, tools, sandbox, time.monotonic)


def dry_place(factory: str = "journeyman.trials.dryrun.place:DryPlace", **arguments: Any) -> WorkplaceRecipe:
    """The recipe of a ``DryPlace``, or of another factory that takes its arguments."""
    return WorkplaceRecipe(factory, arguments)
