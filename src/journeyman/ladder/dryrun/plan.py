"""What a dry run does, written before it starts: a resumed run does exactly that, and two runs can be paired."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

import journeyman.harness
import journeyman.tools
from journeyman import __version__
from journeyman.clock import now
from journeyman.digest import directory_sha256, sha256_file, sha256_json
from journeyman.durable import write_json
from journeyman.errors import InputError, nearest
from journeyman.harness import HARNESSES
from journeyman.harness.registry import SPECS
from journeyman.tasks.task import Task, load_task
from journeyman.tools import TOOLS
from journeyman.trials.dryrun.place import QUICKSTART
from journeyman.trials.offer import Offer
from journeyman.trials.plan import check_policy, own_tools
from journeyman.trials.rubric_judge import judge_settings

FILE = "dry-run.json"
PLACE = "journeyman.trials.dryrun.place:DryPlace"
POLICY_WORDS = ("oracle", "noop", "random")

HARNESS_NAMES: tuple[str, ...] = (*SPECS, *(f"{QUICKSTART}{name}" for name in HARNESSES))
"""What ``--harness`` may be."""


class PlannedTask(BaseModel):
    """One task: where it lies, and digests of what the policy sees, of its solution and of its verifier."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    path: str
    world_id: str
    seen_sha256: str
    solution_sha256: str
    tests_sha256: str


class Plan(BaseModel):
    """A dry run as data.

    ``harness_sha256`` covers the sources of harnesses and tools: two runs whose digests differ ran two versions. Files
    of servers and faults are named with their digests, "" for none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    version: str = __version__
    policy: str
    harness: str
    harness_sha256: str
    place: str = PLACE
    tasks: tuple[PlannedTask, ...]
    samples: int = Field(ge=1)
    seed: int
    temperature: float = Field(ge=0)
    context_tokens: int = Field(ge=0)
    today: str
    mcp: str = ""
    mcp_sha256: str = ""
    faults: str = ""
    faults_sha256: str = ""
    task_servers: bool = False
    judge: str = ""
    judge_keys: tuple[str, ...] = ()

    @property
    def kind(self) -> Literal["oracle", "noop", "random", "model"]:
        """Who acts."""
        return self.policy if self.policy in POLICY_WORDS else "model"  # type: ignore[return-value]

    @property
    def num_trials(self) -> int:
        return len(self.tasks) * self.samples


def make_plan(
    tasks: Sequence[Task],
    *,
    policy: str,
    harness: str,
    samples: int = 1,
    seed: int = 0,
    temperature: float = 1.0,
    context_tokens: int = 0,
    place: str = PLACE,
    today: str | None = None,
    mcp: str = "",
    faults: str = "",
    task_servers: bool = False,
    judge: str = "",
    judge_keys: Sequence[str] = (),
) -> Plan:
    """The plan for some tasks.

    Args:
        tasks: at least one.
        policy: ``oracle``, ``noop``, ``random`` or a model (``engines.spec``).
        harness: one of ``HARNESS_NAMES``.
        samples: trials per task.
        seed: of sampling and of random actions.
        temperature: of a model; 0 is greedy.
        context_tokens: what a model's context may hold; 0 leaves what the harness or the model allows.
        place: workplace factory; another one than ``DryPlace`` takes its arguments.
        today: date of every trial, ISO; by default today's.
        mcp, faults, task_servers: what is offered besides the harness's tools, see ``RunPlan``.
        judge, judge_keys: who answers rubrics, see ``RunPlan``.

    Raises:
        InputError: no such harness, model or file, a service, no task, or two tasks of one name.
    """
    if harness not in HARNESS_NAMES:
        near = nearest(harness, HARNESS_NAMES)
        hint = f"did you mean {near}?" if near else None
        raise InputError("--harness", f"no harness {harness!r}", allowed=", ".join(HARNESS_NAMES), hint=hint)
    check_policy(policy, POLICY_WORDS)
    Offer.read(mcp=mcp, faults=faults)
    if judge:
        judge_settings(judge)
    planned = tuple(planned_task(task) for task in tasks)
    names = [task.id for task in planned]
    twice = sorted({name for name in names if names.count(name) > 1})
    if not planned or twice:
        problem = f"two tasks are called {twice[0]}" if twice else "there is no task"
        raise InputError("TASKS", problem, allowed="task directories of different names")
    return Plan(
        policy=policy,
        harness=harness,
        harness_sha256=code_sha256(),
        place=place,
        tasks=planned,
        samples=samples,
        seed=seed,
        temperature=temperature if policy not in POLICY_WORDS else 1.0,
        context_tokens=context_tokens,
        today=today or now()[:10],
        mcp=mcp,
        mcp_sha256=sha256_file(Path(mcp)) if mcp else "",
        faults=faults,
        faults_sha256=sha256_file(Path(faults)) if faults else "",
        task_servers=task_servers,
        judge=judge,
        judge_keys=tuple(judge_keys),
    )


def offer_of(plan: Plan) -> Offer:
    """What the plan offers, read again from its files.

    Raises:
        InputError: one is gone, says something unknown, or is no longer what the plan was made with.
    """
    for flag, path, digest in (("--mcp", plan.mcp, plan.mcp_sha256), ("--faults", plan.faults, plan.faults_sha256)):
        if path and Path(path).is_file() and sha256_file(Path(path)) != digest:
            raise InputError(flag, f"{path} has changed since the run began", hint="choose another --out")
    return Offer.read(mcp=plan.mcp, faults=plan.faults, has_task_servers=plan.task_servers, seed=plan.seed)


def check_offer(plan: Plan) -> None:
    """Start what the plan offers once. Raises InputError for what would break every trial; see ``Offer.check``."""
    tasks = [load_task(Path(task.path)) for task in plan.tasks]
    offer_of(plan).check(tasks, offered_names(plan), f"policy {plan.kind} in harness {plan.harness}")


def offered_names(plan: Plan) -> tuple[str, ...] | None:
    """Names of the tools that the policy is offered by its harness; None where nothing can be added to them."""
    if plan.kind == "random":
        if plan.harness.startswith(QUICKSTART):
            return tuple(TOOLS)
        return own_tools("a model", SPECS["code"] if SPECS[plan.harness].loop == "terminal" else SPECS[plan.harness])
    if plan.kind != "model" or plan.harness.startswith(QUICKSTART):
        return None
    return own_tools(plan.policy, SPECS[plan.harness])


def planned_task(task: Task) -> PlannedTask:
    """A task with its digests."""
    world = directory_sha256(task.world) if task.world.is_dir() else ""
    solution = task.path / "solution"
    return PlannedTask(
        id=task.id,
        path=str(task.path.absolute()),
        world_id=task.world_id,
        seen_sha256=sha256_json([hashlib.sha256(task.instruction.encode()).hexdigest(), list(task.inputs), world]),
        solution_sha256=directory_sha256(solution) if solution.is_dir() else "",
        tests_sha256=directory_sha256(task.tests) if task.tests.is_dir() else "",
    )


def code_sha256() -> str:
    """Digest of the sources that decide how a policy acts: harnesses and tools."""
    digests: dict[str, str] = {}
    for package in (journeyman.harness, journeyman.tools):
        root = Path(str(package.__file__)).parent
        digests |= {f"{root.name}/{p.relative_to(root).as_posix()}": sha256_file(p) for p in sorted(root.rglob("*.py"))}
    return sha256_json(digests)


def keep_plan(plan: Plan, out: Path) -> Plan:
    """Write the plan, or find the same one there; returns the one that holds.

    Raises:
        InputError: the directory holds another plan, or something else.
    """
    if not (out / FILE).exists():
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise InputError(str(out), "holds something else than a dry run", hint="choose another --out")
        write_json(out / FILE, plan.model_dump(mode="json"))
        return plan
    kept = read_plan(out)
    different = [name for name, value in _identity(plan).items() if _identity(kept)[name] != value]
    if different:
        hint = "choose another --out, or give the same arguments to go on"
        raise InputError(str(out), f"holds a dry run that differs in {', '.join(different)}", hint=hint)
    return kept


def read_plan(out: Path) -> Plan:
    """The plan of a run. Raises InputError where there is none that can be read."""
    try:
        return Plan.model_validate(json.loads((out / FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError) as error:
        raise InputError(str(out), f"is no dry run: {FILE} cannot be read ({type(error).__name__})") from error


def _identity(plan: Plan) -> dict[str, Any]:
    """What must be equal to go on; the date and the release are those of the first start."""
    return plan.model_dump(mode="json", exclude={"today", "version"})
