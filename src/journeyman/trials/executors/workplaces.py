"""Workplaces by name: what attempts share below one supervisor, made there from plain arguments."""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from journeyman.digest import sha256
from journeyman.errors import InputError, JourneymanError
from journeyman.harness import LOOPS, Conversation, Harness
from journeyman.harness.code.toolset import CodeTools
from journeyman.harness.protocol import Loop
from journeyman.harness.spec import HarnessSpec
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.protocol import AgentEnvironment, Mount, Provider, Sandbox, SandboxSpec
from journeyman.tasks.task import Task
from journeyman.tokens.renderers import Renderer
from journeyman.tokens.renderers.detection import family_of
from journeyman.tokens.tokenizer import Tokenizer
from journeyman.tools import ReadCache, ToolContext, ToolSet
from journeyman.tools.fault_rules import CONFIG_FILE
from journeyman.tools.sandbox_tools import SandboxTools
from journeyman.tools.surface import INSIDE_SERVERS
from journeyman.trials.executors.kept import LARGEST
from journeyman.trials.executors.protocol import Desk, Ticket, WorkplaceRecipe
from journeyman.trials.executors.rehearsal import Stage, rehearse
from journeyman.trials.executors.unsampled import Scripted
from journeyman.trials.offer import APPS, facts_of, of_arguments
from journeyman.trials.record import TrialRequest

LOGS = "/tmp/logs"
"""Where an agent leaves deliverables: a writable place of its sandbox, named by ``$LOGS_DIR``."""
SOLUTION = "/solution"
SURFACE_LOOPS = frozenset({"react", "toolbelt"})
"""Loops that are offered the tool surface; the others act on the sandbox themselves."""


class TaskPlace:
    """Desks for task directories: a sandbox with the task's world, and the loop of the request's harness.

    Args:
        label: owner of every sandbox.
        provider: key of ``sandbox.PROVIDERS``.
        environment, digest: the agent environment, built before; "" for none.
        policy: ``model``, or ``oracle`` (the task's solution) or ``noop`` (nothing), which need no engine.
        tokenizer: of the model, with its chat template; "" where there is none.
        reads: the filled read cache's directory; "" where there is none.
        max_context: tokens a trial may hold.
        with_sandbox: False for trusted tasks whose tools are pure: then no attempt has a sandbox of its own.
        memory_mb, pids, waive: of each sandbox.
        offer: arguments of an ``Offer``: servers and faults; None for none.
        empty: an empty directory, shown where a world says which faults it has; needed for such worlds only.
    """

    def __init__(
        self,
        *,
        label: str,
        provider: str = "bwrap",
        environment: str = "",
        digest: str = "",
        policy: str = "model",
        tokenizer: str = "",
        reads: str = "",
        max_context: int = 640,
        with_sandbox: bool = True,
        memory_mb: int = 512,
        pids: int = 64,
        waive: Sequence[str] = (),
        offer: Mapping[str, Any] | None = None,
        empty: str = "",
    ) -> None:
        self._offer, self._empty = of_arguments(offer), empty
        if self._offer.may_need_servers:
            with contextlib.suppress(ImportError):  # said by the attempt that needs it
                for name in ("mcp", "journeyman.tools.mcp_client"):
                    importlib.import_module(name)  # seconds; the attempts that are forked later share it
        self.label, self.policy, self.max_context = label, policy, max_context
        self.provider: Provider = PROVIDERS[provider]()
        self.environment = AgentEnvironment(Path(environment), digest) if environment else None
        self.with_sandbox = with_sandbox or policy != "model"
        self._memory_mb, self._pids, self._waive = memory_mb, pids, frozenset(waive)
        self._tokenizer = Tokenizer(Path(tokenizer)) if tokenizer else None
        self._renderer = self._renderer_of(Path(tokenizer)) if tokenizer else None
        self._reads = self._read_cache(reads)
        self._files: dict[str, Mapping[str, str]] = {}
        self._prepared: dict[int, tuple[Task, SandboxSpec]] = {}

    def _renderer_of(self, directory: Path) -> Renderer | None:
        """How the model's family writes conversations; None for the quickstart's own tokenizer."""
        try:
            family = family_of(directory)
        except InputError:
            return None
        return Renderer(family, self._tokenizer) if self._tokenizer is not None else None

    def _read_cache(self, directory: str) -> ReadCache | None:
        if not directory or self.environment is None:
            return None
        cache = ReadCache(Path(directory), self.provider, self.environment, self.label, waive=self._waive)
        for path in sorted(Path(directory).glob("*.json")):
            if path.stem != "manifest":
                cache.tree(path.stem)  # read before the forks, so that attempts share it
        return cache

    def rehearse(self) -> None:
        """See ``Rehearsing.rehearse``."""
        if self.with_sandbox:
            rehearse(Stage(self.provider, self.label, LOGS, self._spec))

    def prepare(self, task: Task) -> None:
        """See ``Rehearsing.prepare``."""
        if self.with_sandbox:
            with contextlib.suppress(JourneymanError, OSError):  # said by the attempts
                self._prepared = {id(task): (task, self._spec_of(task)), **self._prepared}
                while len(self._prepared) > LARGEST:
                    self._prepared.popitem()

    def open(self, ticket: Ticket) -> Desk:
        """See ``Workplace.open``."""
        if not self.with_sandbox:
            return Desk(self._conversation(ticket), None, provider=self.provider)
        sandbox = self.provider.create(self._spec(ticket.request.task), deadline_s=ticket.limits.start_s)
        tools: ToolSet | None = None
        try:
            own = self.toolset(ticket.request, sandbox)
            tools = self._offer.around(own, ticket.request, ticket.attempt) if own is not None else None
            loop = self._loop(ticket, sandbox, tools)
            return Desk(
                loop, sandbox, False, self.provider, logs_of(ticket.request.task), tools, lambda: facts_of(tools)
            )
        except BaseException:
            if tools is not None:
                tools.close()
            sandbox.destroy(deadline_s=ticket.limits.stop_s)
            raise

    def toolset(self, request: TrialRequest, sandbox: Sandbox) -> ToolSet | None:
        """The tools of the request's harness, before anything is added; None where its loop takes none."""
        harness: Harness | HarnessSpec = request.harness
        if self.policy != "model" or not isinstance(harness, HarnessSpec):
            return None
        if harness.loop in SURFACE_LOOPS:
            return SandboxTools(sandbox, servers_named(harness))
        return code_tools(harness, sandbox) if harness.loop == "code" else None

    def _loop(self, ticket: Ticket, sandbox: Sandbox, tools: ToolSet | None) -> Loop:
        harness: Harness | HarnessSpec = ticket.request.harness
        if self.policy == "model" and isinstance(harness, HarnessSpec):
            return self._agent(harness, sandbox, tools)
        if self.policy == "model":
            return self._conversation(ticket)
        if self.policy == "noop":
            return Scripted(lambda: None)
        limit_s = ticket.limits.agent(ticket.request.task.agent_timeout_s)

        def solve() -> None:
            sandbox.exec(["sh", f"{SOLUTION}/solve.sh"], deadline_s=limit_s)

        return Scripted(solve)

    def _agent(self, spec: HarnessSpec, sandbox: Sandbox, tools: ToolSet | None) -> Loop:
        """A loop for real models over the tools it is offered."""
        if self._renderer is None:
            raise InputError("workplace", f"harness {spec.name} needs a model's tokenizer")
        return LOOPS[spec.loop](spec, self._renderer, tools, sandbox, time.monotonic)

    def _conversation(self, ticket: Ticket) -> Conversation:
        harness: Harness = ticket.request.harness
        if self._tokenizer is None:
            raise InputError("workplace", "a conversation needs a tokenizer")
        return Conversation(harness, self._tokenizer, self.tools(ticket.request.task), self.max_context)

    def tools(self, task: Task) -> ToolContext:
        """The pure tools of a task's world."""
        if self._reads is None:
            raise InputError("workplace", "the tools of this harness need a read cache")
        if task.world_digest not in self._files:
            files = {path.name: sha256(path.read_bytes()) for path in sorted(task.world.iterdir())}
            self._files[task.world_digest] = files
        return ToolContext(files=self._files[task.world_digest], reads=self._reads)

    def _apps(self, task: Task) -> list[Mount]:
        """The state of mail, chat and calendar, without the files that say what is going to fail."""
        apps = (task.path / APPS).absolute()
        if not apps.is_dir():
            return []
        hidden = dict.fromkeys(path.parent for path in sorted(apps.glob(f"*/{CONFIG_FILE.parent}/*")))
        if hidden and not self._empty:
            raise InputError("workplace.empty", "is missing", hint="a world has faults, which no agent may see")
        covered = [Mount(Path(self._empty), f"/apps_data/{path.relative_to(apps)}") for path in hidden]
        return [Mount(apps, "/apps_data", overlay=True), *covered]

    def _spec(self, task: Task) -> SandboxSpec:
        """The sandbox of an attempt at a task."""
        known = self._prepared.get(id(task))
        return known[1] if known is not None and known[0] is task else self._spec_of(task)

    def _spec_of(self, task: Task) -> SandboxSpec:
        mounts = [Mount(task.world.absolute(), "/ws", overlay=True)] if task.world.is_dir() else []
        mounts += self._apps(task)
        env = {"LOGS_DIR": logs_of(task)}
        if self._reads is not None:
            mounts.append(Mount(self._reads.directory, "/cache"))
            env["CACHE_DIR"] = "/cache"
        if self.policy == "oracle":
            mounts.append(Mount((task.path / "solution").absolute(), SOLUTION))
        return SandboxSpec(
            label=self.label,
            mounts=tuple(mounts),
            environment=self.environment,
            env=env,
            memory_mb=self._memory_mb,
            pids=self._pids,
            waive=self._waive,
        )


def servers_named(spec: HarnessSpec) -> tuple[str, ...]:
    """The servers whose tools a harness offers: ``options["servers"]``, all by default."""
    return tuple(spec.options.get("servers", INSIDE_SERVERS))


def code_tools(spec: HarnessSpec, sandbox: Sandbox) -> CodeTools:
    """The seven tools of a ``code`` harness, as its loop makes them itself."""
    return CodeTools(sandbox, root=str(spec.options.get("root", "/ws")), spill_directory=spec.spill_directory)


def logs_of(task: Task) -> str:
    """Directory above a task's deliverables: in the world where the task has them there, as tools write there."""
    return "/ws" if any(one.source.rstrip("/") == "/ws/artifacts" for one in task.config.artifacts) else LOGS


def task_place(**arguments: Any) -> WorkplaceRecipe:
    """The recipe of a ``TaskPlace``."""
    return WorkplaceRecipe("journeyman.trials.executors.workplaces:TaskPlace", arguments)
