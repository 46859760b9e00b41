"""From plain data to a site: engine, workplace, grader and tasks, opened in whichever process samples."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from journeyman.engines.spec import locate, parse_model
from journeyman.harness.spec import HarnessSpec
from journeyman.ladder.training.inline_work import InlineWork
from journeyman.ladder.training.process_work import ProcessWork
from journeyman.ladder.training.site import Naming, Site, Work
from journeyman.ladder.training.slow import SlowTools, delay_s
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.protocol import AgentEnvironment
from journeyman.tasks.task import load_task
from journeyman.tasks.verify import BatchVerifier
from journeyman.train.loop.reissue import Reissuing
from journeyman.train.switches import Switches, training_harness
from journeyman.trials.executors.protocol import WorkplaceRecipe
from journeyman.trials.executors.workplaces import TaskPlace
from journeyman.trials.inline import Grader
from journeyman.trials.limits import Limits
from journeyman.trials.plan import harness_named


@dataclass(frozen=True)
class SitePlan:
    """What a sampling process is told.

    Attributes:
        name: keys the noise of every trial.
        model: Hugging Face directory the engine opens; weights follow by push.
        tasks: directories, in the order of their indices.
        harness: word of ``trials run --harness``.
        place: arguments of ``TaskPlace``.
        executor: ``inline`` or ``process``.
        seed: root of the noise.
        temperature, rows, max_context, at_once, attempts, supervisors: as in the recipe.
        limits: fields of ``trials.limits.Limits`` that differ from the defaults.
        kv_on_update: what new weights do to keys and values of the old ones: ``keep`` or ``recompute``.
        partial: what turns under way do when weights arrive: ``continue`` in place, or ``reissue``.
        nudge_share: share of the context at which trials get a notice; None: never. For harnesses of real models.
        slow: makes tools slow on purpose, for measurements; None: they take what they take.
        grader: ``module:function`` that returns another grader than the tasks' own verifiers; for tests.
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

    def as_data(self) -> dict[str, Any]:
        """Plain data that ``open_site`` takes."""
        return asdict(self)


def open_site(data: dict[str, Any]) -> Site:
    """Open the site of a plan.

    Raises:
        InputError: model, harness or a task cannot be read. EnvironmentMissing: no sandbox here.
        SupervisorFailed: the workplace could not be made.
    """
    import torch

    from journeyman.engines.embedded import EmbeddedEngine

    plan = SitePlan(**data)
    torch.set_num_threads(int(torch.get_num_threads()))  # as the environment of this process says, from now on
    with ExitStack() as stack:
        engine: Any = EmbeddedEngine.from_directory(
            locate(parse_model(plan.model)),
            rows=plan.rows,
            max_len=plan.max_context,
            kv_on_update=plan.kv_on_update,
        )
        stack.callback(engine.close)
        if plan.partial == "reissue":
            engine = Reissuing(engine)
        grader = _grader(plan, stack)
        work = _work(plan, engine, grader)
        return Site(
            engine,
            work,
            [load_task(Path(path)) for path in plan.tasks],
            Naming(plan.name, _harness(plan), plan.temperature),
            rows=plan.rows,
            on_close=stack.pop_all().close,
        )


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
    return ProcessWork(
        engine,
        WorkplaceRecipe(factory, arguments),
        grader,
        plan.seed,
        limits,
        plan.attempts,
        plan.at_once,
        plan.supervisors,
    )


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
