"""Faults on purpose: rules in a file decide which calls of which tools misbehave, and how. Wraps any tool set.

The file is Archipelago's ``injected_errors.json``, extended (``fault_rules.py`` reads it). Rules are tried in order:
the first whose tool and paths match, and which is not used up, decides alone: it fires with its probability or lets the
call through. Each draw comes from a stream named by (seed, tool, number of the call of that tool), so that it depends
on neither the clock nor the calls of other tools. What was injected is said in ``Observation.injected``.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from journeyman.seeds import stream
from journeyman.tools.around import AroundTools
from journeyman.tools.fault_rules import FaultPlan, FaultRule
from journeyman.tools.protocol import Observation
from journeyman.tools.toolset import ToolSet

DEFAULT_RETRY_AFTER_S = 5.0
"""Of a rate limit whose rule says nothing else."""

_Key = tuple[int, int]  # (which plan, which of its rules)


@dataclass(frozen=True)
class Injected:
    """One fault that happened.

    Attributes:
        tool: name as it was called.
        call_index: number of that call among the calls of this tool, from 0.
        error_type: key of ``ERROR_TYPES``.
        rule: place of the rule, ``file:error_rules[2]``.
    """

    tool: str
    call_index: int
    error_type: str
    rule: str


@dataclass
class _Limit:
    """A rate limit that fired: callers before ``clears_at`` are refused, then ``passes`` calls go through undrawn."""

    clears_at: float
    passes: int


@dataclass(frozen=True)
class _Call:
    """What a behaviour works with: the rule that fired, its random numbers, and how to make the real call.

    Attributes:
        wait_s: what is left until a rate limit clears.
    """

    rule: FaultRule
    name: str
    deadline_s: float
    wait_s: float
    random: random.Random
    run: Callable[[float], Observation]
    sleep: Callable[[float], None]
    drop: Callable[[], None]

    def run_first(self) -> float:
        """Let the real call happen and forget its answer, where the fault comes after it; seconds that it took."""
        if not self.rule.is_after_side_effect(self.random):
            return 0.0
        started = time.perf_counter()
        self.run(self.deadline_s)
        return time.perf_counter() - started

    def error(self, default: str, note: str = "") -> Observation:
        text = self.rule.message or default
        return Observation(f"error: {text}{note}", is_error=True, injected=self.rule.error_type)


def _timeout(call: _Call) -> Observation:
    call.sleep(max(0.0, call.deadline_s - call.run_first()))
    return call.error(f"{call.name} did not answer within {call.deadline_s:g} s")


def _rate_limit(call: _Call) -> Observation:
    return call.error(f"rate limit reached for {call.name}", f"; retry after {math.ceil(call.wait_s * 10) / 10:g} s")


def _permission_denied(call: _Call) -> Observation:
    return call.error(f"permission denied for {call.name}")


def _server_error(call: _Call) -> Observation:
    call.run_first()
    return call.error(f"{call.name} failed with an internal server error (500)")


def _malformed_response(call: _Call) -> Observation:
    answer = call.run(call.deadline_s)
    keep = call.rule.number("keep_share", call.random.uniform(0.1, 0.9))
    return replace(answer, text=answer.text[: int(len(answer.text) * keep)], injected=call.rule.error_type)


def _dropped_connection(call: _Call) -> Observation:
    call.run_first()
    call.drop()
    return call.error(f"the connection to the server of {call.name} closed before it answered")


def _slow(call: _Call) -> Observation:
    delay_s = delay_of(call.rule, call.random)
    if delay_s >= call.deadline_s:
        return _timeout(call)
    call.sleep(delay_s)
    return replace(call.run(call.deadline_s - delay_s), injected=call.rule.error_type)


BEHAVIOURS: dict[str, Callable[[_Call], Observation]] = {
    "timeout": _timeout,
    "rate_limit": _rate_limit,
    "permission_denied": _permission_denied,
    "server_error": _server_error,
    "malformed_response": _malformed_response,
    "dropped_connection": _dropped_connection,
    "slow": _slow,
}
"""Error type -> what a call of that kind does. The keys are those of ``fault_rules.ERROR_TYPES``."""


class FaultyTools(AroundTools):
    """A ``ToolSet`` around another one that lets faults happen as its plans say.

    Args:
        tools: the real tools; closed with this set.
        plans: tried in this order; a plan of one server sees the calls of that server's tools only.
        seed: added to the seed of each plan, e.g. one per trial; None leaves the plans as they are, so that every trial
            of a task meets the same faults.
        is_strict: refuse a rule or a server that no tool of this set matches.
        sleep: waits that many seconds.
        clock: seconds, for limits that clear.

    Raises:
        InputError: strict, and a rule matches no tool; names file, field and nearest tool.
    """

    def __init__(
        self,
        tools: ToolSet,
        plans: Sequence[FaultPlan],
        *,
        seed: int | None = None,
        is_strict: bool = True,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(tools)
        self.plans, self.seed = tuple(plans), seed
        self.injected: list[Injected] = []
        self._sleep, self._clock = sleep, clock
        self._calls: Counter[str] = Counter()
        self._fired: Counter[_Key] = Counter()
        self._limits: dict[_Key, _Limit] = {}
        if is_strict:
            for plan in self.plans:
                plan.check(list(tools.schemas))

    def call(self, name: str, arguments: Mapping[str, Any], *, deadline_s: float = 60.0) -> Observation:
        """See ``ToolSet.call``. Nothing that is injected is an exception: the policy sees it and may recover."""
        index = self._calls[name]
        self._calls[name] += 1
        fired = self._decide(name, arguments, index) if name in self.tools.schemas else None
        if fired is None:
            return self.tools.call(name, arguments, deadline_s=deadline_s)
        rule, wait_s, numbers = fired
        self.injected.append(Injected(name, index, rule.error_type, rule.where))
        started = time.perf_counter()
        call = _Call(
            rule=rule,
            name=name,
            deadline_s=deadline_s,
            wait_s=wait_s,
            random=numbers,
            run=lambda limit_s: self.tools.call(name, arguments, deadline_s=limit_s),
            sleep=self._sleep,
            drop=lambda: self._drop(name),
        )
        return replace(BEHAVIOURS[rule.error_type](call), elapsed_s=time.perf_counter() - started)

    def _decide(
        self, name: str, arguments: Mapping[str, Any], index: int
    ) -> tuple[FaultRule, float, random.Random] | None:
        """The rule that fires on this call, the wait of a rate limit and the call's random numbers; None for none."""
        for which, plan in enumerate(self.plans):
            for number, rule in enumerate(plan.rules):
                if not rule.matches(plan.tool_names(name), arguments):
                    continue
                key, now = (which, number), self._clock()
                numbers = stream(plan.seed, "fault", self.seed or 0, name, index)
                limit = self._limits.get(key)
                if limit is not None and now < limit.clears_at:
                    return rule, limit.clears_at - now, numbers
                if limit is not None and limit.passes:
                    limit.passes -= 1
                    return None
                if rule.max_occurrences is not None and self._fired[key] >= rule.max_occurrences:
                    continue
                if numbers.random() >= rule.probability:
                    return None
                self._fired[key] += 1
                wait_s = rule.number("retry_after_s", DEFAULT_RETRY_AFTER_S)
                if rule.error_type == "rate_limit":
                    self._limits[key] = _Limit(now + wait_s, int(rule.number("passes", 1)))
                return rule, wait_s, numbers
        return None

    def _drop(self, name: str) -> None:
        """Close the connection behind a tool in earnest, where the real tools have one."""
        drop = getattr(self.tools, "drop_connection", None)
        if drop is not None:
            drop(name)


def delay_of(rule: FaultRule, numbers: random.Random) -> float:
    """A delay in seconds from the distribution that the rule names, at most its ``max_s``."""
    mean_s, kind = rule.number("mean_s", 2.0), rule.metadata.get("distribution", "lognormal")
    if kind == "constant":
        delay_s = rule.number("delay_s", mean_s)
    elif kind == "uniform":
        delay_s = numbers.uniform(rule.number("low_s", 0.0), rule.number("high_s", 2 * mean_s))
    elif kind == "exponential":
        delay_s = numbers.expovariate(1 / mean_s)
    else:
        delay_s = numbers.lognormvariate(math.log(rule.number("median_s", 2.0)), rule.number("sigma", 1.0))
    return min(delay_s, rule.number("max_s", math.inf))
