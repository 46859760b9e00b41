"""From plain data to a site: engine, workplace, grader and tasks, opened in whichever process samples."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from journeyman.engines.protocol import KvMode
from journeyman.harness.spec import HarnessSpec
from journeyman.ladder.training.cluster import connect
from journeyman.ladder.training.engines import open_embedded, open_vllm
from journeyman.ladder.training.inline_work import InlineWork
from journeyman.ladder.training.process_work import ProcessWork
from journeyman.ladder.training.recording import Recorder, Wanted
from journeyman.ladder.training.shadow import ShadowGrader, shadows_of
from journeyman.ladder.training.site import Naming, PushPlan, Site, Work
from journeyman.ladder.training.slow import SlowTools, delay_s
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.protocol import AgentEnvironment
from journeyman.tasks.grading import Grader
from journeyman.tasks.task import Task, load_task
from journeyman.tasks.verify import BatchVerifier
from journeyman.train.loop.reissue import Reissuing
from journeyman.train.switches import Switches, training_harness
from journeyman.trials.executors.protocol import Launcher, WorkplaceRecipe
from journeyman.trials.executors.ray_tasks import Placement, RayLauncher
from journeyman.trials.executors.workplaces import TaskPlace
from journeyman.trials.limits import Limits
from journeyman.trials.plan import harness_named

USAGE_EVERY_S = 0.5
"""Between two questions to a server about its cache."""


@dataclass(frozen=True)
class SitePlan:
    """What a sampling process is told.

    Attributes:
        name: keys the noise of every trial.
        model: Hugging Face directory the engine opens; weights follow by push.
        tasks: directories, in the order of their indices.
        harness: word of ``trials run --harness``.
        place: arguments of ``TaskPlace``.
        executor: ``inline``, ``process`` or ``ray``.
        seed: root of the noise.
        temperature, rows, max_context, at_once, attempts, supervisors: as in the recipe.
        limits: fields of ``trials.limits.Limits`` that differ from the defaults.
        kv_on_update: what new weights do to keys and values of the old ones: ``keep`` or ``recompute``.
        partial: what turns under way do when weights arrive: ``continue`` in place, or ``reissue``.
        nudge_share: share of the context at which trials get a notice; None: never. For harnesses of real models.
        slow: makes tools slow on purpose, for measurements; None: they take what they take.
        grader: ``module:function`` that returns another grader than the tasks' own verifiers; for tests.
        vllm: fields of ``train.rollouts.VllmSection`` and ``out``, a folder for logs; None: the embedded engine.
        ray: fields of ``train.rollouts.RaySection``, for executor ray.
        topk, experts: what the engine tells of each token, see ``recording.Wanted``.
        probe: each push is followed by a short turn under its weights alone.
        shadow: task directories with held-back verifiers. shadow_share: of the trials they grade.
    """

    name: str
    model: str
    tasks: tuple[str, ...]
    harness: str
    place: dict[str, Any]
    executor: str = "process"
    seed: int = 0
    temperature: float = 1.0
    rows: int = 64
    max_context: int = 640
    at_once: int = 64
    attempts: int = 2
    supervisors: int = 1
    limits: dict[str, float] = field(default_factory=dict)
    kv_on_update: str = "keep"
    partial: str = "continue"
    nudge_share: float | None = None
    slow: dict[str, Any] | None = None
    grader: str | None = None
    vllm: dict[str, Any] | None = None
    ray: dict[str, Any] | None = None
    topk: int = 0
    experts: bool = False
    probe: bool = False
    shadow: tuple[str, ...] = ()
    shadow_share: float = 1.0

    def as_data(self) -> dict[str, Any]:
        """Plain data that ``open_site`` takes."""
        return asdict(self)


def open_site(data: dict[str, Any]) -> Site:
    """Open the site of a plan.

    Raises:
        InputError: model, harness or a task cannot be read. EnvironmentMissing: no sandbox, server or cluster here.
        SupervisorFailed: the workplace could not be made.
        EngineError: a server did not come up, or cannot tell what the plan wants of its tokens.
    """
    import torch

    plan = SitePlan(**data)
    torch.set_num_threads(int(torch.get_num_threads()))  # as the environment of this process says, from now on
    with ExitStack() as stack:
        tasks = [load_task(Path(path)) for path in plan.tasks]
        engine, alive = (open_embedded(plan, stack), None) if plan.vllm is None else open_vllm(plan, stack)
        recorder = None
        if plan.topk or plan.experts or plan.probe:
            probe_seed = plan.seed if plan.probe else None
            recorder = engine = Recorder(engine, Wanted(plan.topk, plan.experts, probe_seed, plan.temperature))
        if plan.partial == "reissue":
            engine = Reissuing(engine)
        shadow = _shadow(plan, tasks, _grader(plan, stack))
        work = _work(plan, engine, shadow)
        return Site(
            engine,
            work,
            tasks,
            Naming(plan.name, _harness(plan), plan.temperature),
            rows=plan.rows,
            recorder=recorder,
            shadow=shadow.reward_of,
            **({} if alive is None else _remote(plan, alive)),
            on_close=stack.pop_all().close,
        )


def _remote(plan: SitePlan, alive: Callable[[], None]) -> dict[str, Any]:
    """What a site does differently over an engine that is another program."""
    assert plan.vllm is not None
    kv: KvMode = "recompute" if plan.kv_on_update == "recompute" else "keep"
    return {"alive": alive, "usage_every_s": USAGE_EVERY_S, "push": PushPlan(kv, float(plan.vllm["push_s"]))}


def _shadow(plan: SitePlan, tasks: Sequence[Task], grader: Grader) -> ShadowGrader:
    return ShadowGrader(grader, shadows_of(tasks, [load_task(Path(path)) for path in plan.shadow]), plan.shadow_share)


def _harness(plan: SitePlan) -> Any:
    harness = harness_named(plan.harness)
    if plan.nudge_share is None or not isinstance(harness, HarnessSpec):
        return harness
    return training_harness(harness, Switches(context_nudge=True, nudge_share=plan.nudge_share))


def _work(plan: SitePlan, engine: Any, grader: Grader) -> Work:
    limits = Limits(**plan.limits)
    slow = SlowTools(**plan.slow) if plan.slow else None
    if plan.executor == "inline":
        return InlineWork(
            engine,
            TaskPlace(**plan.place),
            grader,
            plan.seed,
            limits,
            plan.attempts,
            plan.at_once,
            partial(delay_s, slow) if slow else None,
        )
    factory = "journeyman.trials.executors.workplaces:TaskPlace"
    arguments = dict(plan.place)
    if slow:
        factory, arguments = "journeyman.ladder.training.slow:SlowPlace", {**arguments, "slow": plan.slow}
    recipe = WorkplaceRecipe(factory, arguments)
    return ProcessWork(
        engine,
        recipe,
        grader,
        plan.seed,
        limits,
        plan.attempts,
        plan.at_once,
        plan.supervisors,
        launcher=_on_ray(plan, recipe) if plan.executor == "ray" else None,
    )


def _on_ray(plan: SitePlan, recipe: WorkplaceRecipe) -> Launcher:
    """Attempts as tasks of a Ray cluster. Raises EnvironmentMissing without Ray or where no cluster answers."""
    told = plan.ray or {}
    connect(told.get("address"))
    placement = Placement(told.get("cpus", 0.1), told.get("memory_mb", 0), told.get("resources", {}))
    return RayLauncher(recipe, lambda request: placement)


def _grader(plan: SitePlan, stack: ExitStack) -> Grader:
    if plan.grader is not None:
        module, _, name = plan.grader.partition(":")
        make: Callable[[], Grader] = getattr(importlib.import_module(module), name)
        return make()
    place = plan.place
    provider = PROVIDERS[place["provider"]]()
    environment = AgentEnvironment(Path(place["environment"]), place["digest"])
    waive = frozenset(place.get("waive", ()))
    return stack.enter_context(BatchVerifier(provider, environment, place["label"], waive=waive, one_batch=True))
