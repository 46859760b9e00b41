"""What ``journeyman trials run`` is asked to do, as data, and what of it can be refused before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from journeyman.engines.spec import FORMS, locate, parse_model
from journeyman.errors import InputError, nearest
from journeyman.harness import HARNESSES, SPECS
from journeyman.harness.code.schemas import SCHEMAS
from journeyman.harness.spec import HarnessSpec
from journeyman.tokens.renderers.detection import family_of
from journeyman.tools.surface import specs_of
from journeyman.trials.executors.workplaces import servers_named

SCRIPTED = ("oracle", "noop")
FRAMING = "framing:"


@dataclass(frozen=True)
class RunPlan:
    """What to run.

    Attributes:
        tasks: task directories, one path each.
        policy: a model as ``engines.spec`` reads it, or ``oracle`` (each task's own solution) or ``noop``.
        harness: key of ``harness.SPECS``, or ``framing:NAME`` for one of the quickstart's.
        executor: key of ``executors.EXECUTORS``.
        concurrency: attempts alive at once.
        out: the run directory; one that exists is resumed.
        samples: trials per task.
        seed: root of the sampling noise, of injected faults and of the waits before retries.
        attempts: per trial, when the error table says retry.
        temperature: 0 is greedy.
        provider: key of ``sandbox.PROVIDERS``.
        waive: sandbox limits that may stay unenforced.
        mcp: file with the configuration of tool servers, "" for none.
        faults: file with faults to inject, "" for none.
        task_servers: servers that tasks name are started, outside any sandbox.
        judge: service that grades rubric tasks, "" for none; ``judge_keys`` are the variables that hold its keys.
        context_tokens: what a model's context may hold; 0: the engine's default.
        today: the date of every trial, ISO; "" for that of the run's first start.
    """

    tasks: tuple[str, ...]
    policy: str
    harness: str
    executor: str
    concurrency: int
    out: str
    samples: int = 1
    seed: int = 0
    attempts: int = 2
    temperature: float = 1.0
    provider: str = "bwrap"
    waive: tuple[str, ...] = ()
    mcp: str = ""
    faults: str = ""
    task_servers: bool = False
    judge: str = ""
    judge_keys: tuple[str, ...] = ()
    context_tokens: int = 0
    today: str = ""


def fitted(spec: HarnessSpec, context_tokens: int, today: date) -> HarnessSpec:
    """A harness for a model that holds so many tokens, on a trial's date; a turn may take a quarter of them."""
    turn = min(spec.budget.max_new_tokens, context_tokens // 4)
    budget = replace(spec.budget, context_tokens=context_tokens, max_new_tokens=turn)
    return replace(spec, budget=budget, today=spec.today or today)


def check_policy(policy: str, words: Sequence[str]) -> None:
    """Refuse what is neither one of ``words`` nor a model that can act in a trial; a hub's is looked for later.

    Raises:
        InputError: names what is allowed, and the nearest word.
    """
    if policy in words:
        return
    spec = parse_model(policy)
    allowed = ", ".join((*words, *FORMS.split(", ")[:2]))
    if spec.kind == "service":
        raise InputError("--policy", f"{policy!r} returns text only; a trial keeps token ids", allowed=allowed)
    if spec.kind == "directory" and not Path(spec.place).is_dir():
        near = nearest(policy, words)
        raise InputError(policy, "is no directory", allowed=allowed, hint=f"did you mean {near}?" if near else None)


def check_model(policy: str, harness: Any) -> None:
    """Refuse a model that no renderer can write for, before every trial does. Raises InputError, EnvironmentMissing."""
    if isinstance(harness, HarnessSpec) and policy not in SCRIPTED:
        family_of(locate(parse_model(policy)))


def harness_named(name: str) -> Any:
    """The harness of a word. Raises InputError and names the nearest."""
    known = {**SPECS, **{FRAMING + key: harness for key, harness in HARNESSES.items()}}
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean {near}?" if near else None
        raise InputError("--harness", f"{name!r} is no harness", allowed=", ".join(known), hint=hint)
    return known[name]


def own_tools(policy: str, harness: Any) -> tuple[str, ...] | None:
    """Names of the tools that a policy is offered by its harness; None where nothing can be added to them."""
    if policy in SCRIPTED or not isinstance(harness, HarnessSpec) or harness.loop == "terminal":
        return None
    return tuple(SCHEMAS) if harness.loop == "code" else tuple(specs_of(servers_named(harness)))
