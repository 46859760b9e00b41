"""What a policy is offered besides its harness's own tools: tool servers, and faults on purpose around all tools.

An ``Offer`` is plain values, so that it travels to whichever process or node makes the tools of a trial. Variables in
the configuration of servers are filled in there, so that no credential travels with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from journeyman.errors import InputError
from journeyman.seeds import key64
from journeyman.tasks.counterparts import load_script
from journeyman.tasks.task import Task
from journeyman.tools.combined import CombinedTools
from journeyman.tools.counterparts import AnsweringTools
from journeyman.tools.fault_rules import FaultPlan, load_world_plans, plan_of
from journeyman.tools.faults import FaultyTools
from journeyman.tools.mcp.errors import McpConnectFailed
from journeyman.tools.mcp.servers import McpServer, servers_of
from journeyman.tools.toolset import Reconnecting, ToolSet
from journeyman.trials.record import TrialRequest

APPS = Path("environment") / "apps_data"
"""Below a task: the state of mail, chat and calendar; a server's folder may hold a file of faults."""

MAIL = "mail_send_mail"
"""By this tool people of a script answer."""


@dataclass(frozen=True)
class Offer:
    """What is offered in every trial of a run.

    Attributes:
        mcp, mcp_where: a configuration of servers as ``servers_of`` reads it, and the file it came from; None for none.
        faults, faults_where: a file of faults as ``plan_of`` reads it, and its name; None for none.
        has_task_servers: the servers that a task names are used too. Their programs run on this host, outside any
            sandbox, so they are only started for tasks that somebody trusts.
        seed: of the faults; each attempt draws its own.
    """

    mcp: Any = None
    mcp_where: str = "mcpServers"
    faults: Any = None
    faults_where: str = "faults"
    has_task_servers: bool = False
    seed: int = 0

    @classmethod
    def read(cls, *, mcp: str = "", faults: str = "", has_task_servers: bool = False, seed: int = 0) -> Offer:
        """Read the files ("" for none). Raises InputError for one that cannot be read or says something unknown."""
        servers = _document(mcp) if mcp else None
        rules = _document(faults) if faults else None
        offer = cls(servers, mcp or "mcpServers", rules, faults or "faults", has_task_servers, seed)
        if servers is not None:
            servers_of(servers, where=mcp)
        if rules is not None:
            plan_of(rules, where=faults)
        return offer

    def as_arguments(self) -> dict[str, Any]:
        """As JSON, for the arguments of a workplace; ``Offer(**arguments)`` is the inverse."""
        return asdict(self)

    @property
    def may_need_servers(self) -> bool:
        """Some trial may use a tool server."""
        return self.mcp is not None or self.has_task_servers

    def servers(self, task: Task) -> tuple[McpServer, ...]:
        """The servers of a task's trials, its own first.

        Raises:
            InputError: a configuration cannot be used, or two servers have one name.
        """
        own = task.config.environment.mcp_servers if self.has_task_servers else ()
        found = servers_of(list(own), where=f"{task.path / 'task.toml'}:environment.mcp_servers") if own else ()
        if self.mcp is not None:
            found = (*found, *servers_of(self.mcp, where=self.mcp_where))
        names = [server.name for server in found]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(self.mcp_where, f"names the server {twice!r}, and so does task {task.id}")
        return found

    def plans(self, task: Task, tools: Sequence[str]) -> tuple[FaultPlan, ...]:
        """The plans for a task's trials: the file that was given, then its world's for servers that are offered.

        Raises:
            InputError: a world's file cannot be used.
        """
        given = (plan_of(self.faults, where=self.faults_where),) if self.faults is not None else ()
        own = load_world_plans(task.path / APPS)
        return *given, *(plan for plan in own if any(map(plan.tool_names, tools)))

    def around(self, own: ToolSet, request: TrialRequest, attempt: int) -> ToolSet:
        """The tools of one attempt: its harness's own and the servers', with the people of the task's script who answer
        mails, and faults around all of them.

        Raises:
            InputError: see ``servers``, ``plans``, ``load_script``; two tools of one name, or a rule that matches none.
            McpConnectFailed: a server cannot be reached.
        """
        servers = self.servers(request.task)
        tools: ToolSet = own
        try:
            if servers:
                tools = _joined(own, servers)
            script = load_script(request.task.path)
            if script is not None:
                tools = AnsweringTools(tools, script)
            plans = self.plans(request.task, list(tools.schemas))
            if not plans:
                return tools
            return FaultyTools(tools, plans, seed=key64(self.seed, "faults", *request.stream, attempt))
        except BaseException:
            tools.close()
            raise

    def check(self, tasks: Sequence[Task], own: Sequence[str] | None, harness: str) -> None:
        """Find out before anything runs what would break every trial: each set of servers is started once.

        Args:
            own: names of the harness's own tools; None where the policy is offered no tools at all.
            harness: its name, for errors.

        Raises:
            InputError: names flag, file or task.
        """
        if own is None:
            for flag, given in (("--mcp", self.mcp), ("--faults", self.faults)):
                if given is not None:
                    hint = "take a model and react, toolbelt or code"
                    raise InputError(
                        flag, f"has no effect: {harness} offers no tools that could be added to", hint=hint
                    )
            return
        known: list[tuple[tuple[McpServer, ...], list[str]]] = []
        for task in tasks:
            if task.config.environment.mcp_servers and not self.has_task_servers:
                problem = "names tool servers, which this run would not offer"
                hint = "--task-servers starts them, outside any sandbox: only for tasks that you trust"
                raise InputError(str(task.path), problem, hint=hint)
            servers = self.servers(task)
            names = next((names for seen, names in known if seen == servers), None)
            if names is None:
                names = _names(servers, own, self.mcp_where if self.mcp is not None else str(task.path))
                known.append((servers, names))
            if load_script(task.path) is not None and MAIL not in names:
                problem = f"needs the tools of the mail server: people answer mails, and {harness} offers no {MAIL}"
                raise InputError(str(task.path), problem, hint="take react or toolbelt")
            for plan in self.plans(task, names):
                plan.check(names)


def facts_of(tools: ToolSet | None) -> dict[str, Any]:
    """What a trial's record says of its tools: every fault that was injected, and how often a server came back."""
    found: dict[str, Any] = {}
    if isinstance(tools, FaultyTools):
        found["faults"] = [asdict(fault) for fault in tools.injected]
        tools = tools.tools
    if isinstance(tools, AnsweringTools):
        tools = tools.tools
    if isinstance(tools, CombinedTools):
        for part in tools.sets:
            if isinstance(part, Reconnecting):
                found["server_reconnects"] = dict(part.num_reconnects)
    return found


def _joined(own: ToolSet, servers: Sequence[McpServer]) -> ToolSet:
    from journeyman.tools.mcp_client import McpTools  # with asyncio: only where there are servers

    reached = McpTools(tuple(servers))
    try:
        return CombinedTools(own, reached)
    except InputError:
        reached.close()
        raise


def _names(servers: tuple[McpServer, ...], own: Sequence[str], where: str) -> list[str]:
    """The names of all tools; the servers are started and ended for it."""
    if not servers:
        return list(own)
    from journeyman.tools.mcp_client import McpTools

    try:
        tools = McpTools(servers)
    except McpConnectFailed as error:
        raise InputError(where, str(error), hint="see docs/mcp.md") from error
    try:
        offered = list(tools.schemas)
    finally:
        tools.close()
    twice = sorted(set(offered) & set(own))
    if twice:
        hint = "set prefix = true for the server that offers it"
        raise InputError(where, f"offers a tool {twice[0]!r}, and so does the harness", hint=hint)
    return [*own, *offered]


def _document(path: str) -> Any:
    try:
        return json.loads(Path(path).read_bytes())
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(path, f"is no JSON: {error}") from error


def of_arguments(values: Mapping[str, Any] | None) -> Offer:
    """The offer in a workplace's arguments; the empty one for None."""
    return Offer(**(values or {}))
