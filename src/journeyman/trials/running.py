"""One run of task directories from plain words: what ``journeyman trials run`` does."""

from __future__ import annotations

import logging
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from journeyman.engines.protocol import Engine
from journeyman.engines.scripted import ScriptedEngine
from journeyman.engines.spec import locate, open_engine, parse_model
from journeyman.errors import InputError, nearest
from journeyman.harness.spec import HarnessSpec
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.environment import build_environment
from journeyman.sandbox.protocol import AgentEnvironment, Provider
from journeyman.tasks.task import Task, load_task
from journeyman.tasks.verify import BatchVerifier
from journeyman.tools import ReadCache
from journeyman.tools.agent_environment import AGENT_DISTRIBUTIONS, AGENT_PACKAGES, AGENT_PROGRAMS
from journeyman.tools.workbench import tools_environment
from journeyman.trials.detached import RunState, first_day
from journeyman.trials.executors import EXECUTORS
from journeyman.trials.executors.workplaces import task_place
from journeyman.trials.groups import DropReport, drop_report
from journeyman.trials.limits import Limits
from journeyman.trials.offer import Offer
from journeyman.trials.plan import (
    FRAMING,
    SCRIPTED,
    RunPlan,
    check_model,
    check_policy,
    fitted,
    harness_named,
    own_tools,
)
from journeyman.trials.record import Trial, TrialRequest
from journeyman.trials.resume import final_rows
from journeyman.trials.rubric_judge import RubricJudge, open_judge
from journeyman.trials.store import Owner, open_run
from journeyman.trials.world_documents import is_office, read_documents

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunResult:
    """How a run ended.

    Attributes:
        outcomes: trials by outcome class, each counted once.
        mean_reward: over valid rewards; None when there is none.
        drops: what is missing, per task.
        is_cancelled: it was stopped before all trials had ended.
        judge: what was asked of the judge and what failed (``JudgeTally``), None without one.
    """

    outcomes: dict[str, int]
    mean_reward: float | None
    drops: DropReport
    is_cancelled: bool
    judge: dict[str, Any] | None = None


def run_plan(plan: RunPlan, on_closed: Callable[[Trial], None] = lambda trial: None) -> RunResult:
    """Run or resume; SIGTERM cancels: what runs is killed and recorded as ``cancelled``.

    Raises:
        InputError: something in the plan does not exist, or another process owns the run.
        EnvironmentMissing: no sandbox, model or Ray here.
    """
    harness, tasks, offer = checked(plan)
    out = Path(plan.out).absolute()
    provider = PROVIDERS[plan.provider]()
    judge: RubricJudge | None = None
    stopped: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    try:
        with ExitStack() as stack:
            judge = stack.enter_context(open_judge(plan.judge, plan.judge_keys)) if plan.judge else None
            engine = stack.enter_context(closing(_engine(plan)))
            owner = stack.enter_context(Owner(out))
            plan = replace(plan, today=plan.today or first_day(out))
            if isinstance(harness, HarnessSpec) and plan.policy not in SCRIPTED:
                harness = fitted(harness, engine.max_len, date.fromisoformat(plan.today))
            state = stack.enter_context(RunState.begin(out, asdict(plan)))
            provider.reap(state.label)
            environment, place = _place(plan, tasks, out, state.label, provider)
            log = stack.enter_context((out / "attempts.log").open("ab"))
            verifier = BatchVerifier(
                provider, environment, state.label, waive=frozenset(plan.waive), one_batch=True, judge=judge
            )
            executor = EXECUTORS[plan.executor]()(
                engine,
                task_place(**place, offer=offer.as_arguments()),
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
    result = result_of(out, is_cancelled=bool(stopped))
    return replace(result, judge=judge.report() if judge is not None else None)


def checked(plan: RunPlan) -> tuple[Any, list[Task], Offer]:
    """Harness, tasks and offer of a plan; what would break every trial is refused here.

    Raises:
        InputError: something in the plan does not exist or does not fit the rest.
        EnvironmentMissing: a library for it is not installed.
    """
    if plan.executor not in EXECUTORS:
        near = nearest(plan.executor, EXECUTORS)
        hint = f"did you mean {near}?" if near else None
        raise InputError("--executor", f"{plan.executor!r} is none", allowed=", ".join(EXECUTORS), hint=hint)
    if plan.provider not in PROVIDERS:
        raise InputError("--sandbox", f"{plan.provider!r} is no provider", allowed=", ".join(PROVIDERS))
    harness = harness_named(plan.harness)
    check_policy(plan.policy, SCRIPTED)
    check_model(plan.policy, harness)
    tasks = [load_task(Path(path)) for path in plan.tasks]
    offer = Offer.read(mcp=plan.mcp, faults=plan.faults, has_task_servers=plan.task_servers, seed=plan.seed)
    name = f"policy {plan.policy}" if plan.policy in SCRIPTED else f"harness {plan.harness}"
    offer.check(tasks, own_tools(plan.policy, harness), name)
    return harness, tasks, offer


def result_of(out: Path, *, is_cancelled: bool = False) -> RunResult:
    """The figures of a run directory."""
    with open_run(out) as run:
        rows = run.trials()
    last = final_rows(rows)
    rewards = [row.reward for row in last.values() if row.reward is not None]
    mean = sum(rewards) / len(rewards) if rewards else None
    return RunResult(dict(Counter(row.outcome for row in last.values())), mean, drop_report(rows), is_cancelled)


def _engine(plan: RunPlan) -> Engine:
    if plan.policy in SCRIPTED:
        return ScriptedEngine({})
    options: dict[str, Any] = {"max_len": plan.context_tokens} if plan.context_tokens else {}
    return open_engine(plan.policy, **options)


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
    has_offices = any(map(is_office, tasks))  # their checks and tools need readers of office files
    is_own = not has_offices and (plan.harness.startswith(FRAMING) or plan.policy in SCRIPTED)
    empty = out / "empty"
    empty.mkdir(exist_ok=True)
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
        "empty": str(empty),
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
    read_documents(cache, tasks, LOG.warning)
    return directory
