"""One run of task directories from plain words: what ``journeyman trials run`` does."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from journeyman.digest import sha256
from journeyman.engines.protocol import Engine
from journeyman.engines.scripted import ScriptedEngine
from journeyman.engines.spec import locate, open_engine, parse_model
from journeyman.errors import InputError, nearest
from journeyman.harness import HARNESSES, SPECS
from journeyman.harness.spec import HarnessSpec
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.environment import build_environment
from journeyman.sandbox.protocol import AgentEnvironment, Provider
from journeyman.tasks.task import Task, load_task
from journeyman.tasks.verify import BatchVerifier
from journeyman.tokens.renderers.detection import family_of
from journeyman.tools import ReadCache
from journeyman.tools.agent_environment import AGENT_DISTRIBUTIONS, AGENT_PACKAGES, AGENT_PROGRAMS
from journeyman.tools.workbench import tools_environment
from journeyman.trials.detached import RunState
from journeyman.trials.executors import EXECUTORS
from journeyman.trials.executors.workplaces import task_place
from journeyman.trials.groups import DropReport, drop_report
from journeyman.trials.limits import Limits
from journeyman.trials.record import Trial, TrialRequest
from journeyman.trials.resume import final_rows
from journeyman.trials.store import Owner, open_run

SCRIPTED = ("oracle", "noop")
FRAMING = "framing:"
DETACHABLE = ("process", "ray")


@dataclass(frozen=True)
class RunPlan:
    """What to run.

    Attributes:
        tasks: task directories, one path each.
        policy: a model as ``engines.spec`` reads it, or ``oracle`` (each task's own solution) or ``noop``.
        harness: key of ``harness.SPECS``, or ``framing:NAME`` for one of the quickstart's.
        executor: ``process`` or ``ray``.
        concurrency: attempts alive at once.
        out: the run directory; one that exists is resumed.
        samples: trials per task.
        seed: root of the sampling noise.
        attempts: per trial, when the error table says retry.
        temperature: 0 is greedy.
        provider: key of ``sandbox.PROVIDERS``.
        waive: sandbox limits that may stay unenforced.
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


@dataclass(frozen=True)
class RunResult:
    """How a run ended.

    Attributes:
        outcomes: trials by outcome class, each counted once.
        mean_reward: over valid rewards; None when there is none.
        drops: what is missing, per task.
        is_cancelled: it was stopped before all trials had ended.
    """

    outcomes: dict[str, int]
    mean_reward: float | None
    drops: DropReport
    is_cancelled: bool


def run_plan(plan: RunPlan, on_closed: Callable[[Trial], None] = lambda trial: None) -> RunResult:
    """Run or resume; SIGTERM cancels: what runs is killed and recorded as ``cancelled``.

    Raises:
        InputError: something in the plan does not exist, or another process owns the run.
        EnvironmentMissing: no sandbox, model or Ray here.
    """
    if plan.executor not in DETACHABLE:
        raise InputError("--executor", f"{plan.executor!r} runs no task directories", allowed=", ".join(DETACHABLE))
    harness = harness_named(plan.harness)
    if isinstance(harness, HarnessSpec) and plan.policy not in SCRIPTED:
        family_of(locate(parse_model(plan.policy)))  # said before anything runs, not by every trial
    tasks = [load_task(Path(path)) for path in plan.tasks]
    out = Path(plan.out).absolute()
    provider = PROVIDERS[plan.provider]()
    stopped: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    try:
        with ExitStack() as stack:
            engine = stack.enter_context(closing(_engine(plan)))
            owner = stack.enter_context(Owner(out))
            state = stack.enter_context(RunState.begin(out, asdict(plan)))
            provider.reap(state.label)
            environment, place = _place(plan, tasks, out, state.label, provider)
            log = stack.enter_context((out / "attempts.log").open("ab"))
            verifier = BatchVerifier(provider, environment, state.label, waive=frozenset(plan.waive), one_batch=True)
            executor = EXECUTORS[plan.executor]()(
                engine,
                task_place(**place),
                seed=plan.seed,
                limits=Limits(),
                concurrency=plan.concurrency,
                max_attempts=plan.attempts,
                owner=owner,
                log=log.fileno(),
                is_cancelled=lambda: bool(stopped),
                on_closed=on_closed,
            )
            with stack.enter_context(executor), verifier:
                executor.run(_requests(plan, tasks, harness), verifier)
            provider.reap(state.label)
            if stopped:
                state.note("cancelled")
    finally:
        signal.signal(signal.SIGTERM, before)
    return result_of(out, is_cancelled=bool(stopped))


def harness_named(name: str) -> Any:
    """The harness of a word. Raises InputError and names the nearest."""
    known = {**SPECS, **{FRAMING + key: harness for key, harness in HARNESSES.items()}}
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean {near}?" if near else None
        raise InputError("--harness", f"{name!r} is no harness", allowed=", ".join(known), hint=hint)
    return known[name]


def result_of(out: Path, *, is_cancelled: bool = False) -> RunResult:
    """The figures of a run directory."""
    with open_run(out) as run:
        rows = run.trials()
    last = final_rows(rows)
    rewards = [row.reward for row in last.values() if row.reward is not None]
    mean = sum(rewards) / len(rewards) if rewards else None
    return RunResult(dict(Counter(row.outcome for row in last.values())), mean, drop_report(rows), is_cancelled)


def _engine(plan: RunPlan) -> Engine:
    return ScriptedEngine({}) if plan.policy in SCRIPTED else open_engine(plan.policy)


def _requests(plan: RunPlan, tasks: Sequence[Task], harness: Any) -> list[TrialRequest]:
    return [
        TrialRequest(task, harness, ("trial", task.id, sample), sample, plan.temperature)
        for task in tasks
        for sample in range(plan.samples)
    ]


def _place(
    plan: RunPlan, tasks: Sequence[Task], out: Path, label: str, provider: Provider
) -> tuple[AgentEnvironment, dict[str, Any]]:
    """The agent environment, and the arguments of ``TaskPlace``."""
    is_own = plan.harness.startswith(FRAMING) or plan.policy in SCRIPTED
    if is_own:
        environment = build_environment(
            out / "environment",
            distributions=AGENT_DISTRIBUTIONS,
            packages=AGENT_PACKAGES,
            programs=AGENT_PROGRAMS,
        )
    else:
        environment = tools_environment(out / "environment")
    place: dict[str, Any] = {
        "label": label,
        "provider": plan.provider,
        "environment": str(environment.path),
        "digest": environment.digest,
        "policy": plan.policy if plan.policy in SCRIPTED else "model",
        "waive": sorted(plan.waive),
    }
    if is_own and plan.policy != "noop":
        place["reads"] = str(_fill_reads(plan, tasks, out, label, provider, environment))
    if plan.policy not in SCRIPTED:
        place["tokenizer"] = str(locate(parse_model(plan.policy)))
    return environment, place


def _fill_reads(
    plan: RunPlan, tasks: Sequence[Task], out: Path, label: str, provider: Provider, environment: AgentEnvironment
) -> Path:
    """Read every document of worlds of ours once, in a sandbox, for tools and solutions that look things up."""
    directory = out / "reads"
    cache = ReadCache(directory, provider, environment, label, waive=frozenset(plan.waive))
    files: dict[str, tuple[str, bytes]] = {}
    for task in tasks:
        if task.world_digest and task.world.is_dir():
            for path in sorted(task.world.iterdir()):
                data = path.read_bytes()
                files[sha256(data)] = (str(path), data)
    cache.fill(files)
    return directory


def plan_from(state: dict[str, Any]) -> RunPlan:
    """The plan that a run directory remembers."""
    plan = RunPlan(**{**state, "tasks": tuple(state["tasks"]), "waive": tuple(state["waive"])})
    return replace(plan, out=os.fspath(plan.out))
