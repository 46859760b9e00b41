"""How long each part of a trial may take: every external operation has one, and the supervisor has their sum."""

from __future__ import annotations

from dataclasses import dataclass, fields

from journeyman.errors import InputError


@dataclass(frozen=True)
class Limits:
    """Seconds, each enforced by whoever runs the operation.

    Only ``agent_s`` is declared to the policy: when it runs out, the trial is graded on what exists
    (``limit.time``). Every other one that passes is a system error.

    Attributes:
        start_s: start of a sandbox.
        setup_s: tools and loop, until the first model call.
        agent_s: working time of the policy where its task declares none: model calls and tool calls together.
        model_s: one model call, queueing included.
        quiesce_s: until every process of the agent is dead.
        collect_s: all deliverables together.
        transfer_s: one upload or download.
        stop_s: end of a sandbox; what is left then is reaped by the supervisor.
        slack_s: added to the sum that the supervisor enforces.
        retry_s: from the end of a trial's first attempt; no further one starts later.
    """

    start_s: float = 30.0
    setup_s: float = 60.0
    agent_s: float = 3600.0
    model_s: float = 600.0
    quiesce_s: float = 10.0
    collect_s: float = 60.0
    transfer_s: float = 120.0
    stop_s: float = 30.0
    slack_s: float = 30.0
    retry_s: float = 1800.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise InputError(f"limits.{field.name}", f"must be positive, got {value!r}")

    def agent(self, declared_s: float | None) -> float:
        """Working time of one trial: its task's, or the default."""
        return self.agent_s if declared_s is None else declared_s

    def whole(self, declared_s: float | None) -> float:
        """The hard wall clock of one trial: the sum of its parts and the slack. The supervisor enforces it."""
        rest = self.start_s + self.setup_s + self.quiesce_s + self.collect_s + self.stop_s + self.slack_s
        return self.agent(declared_s) + rest
