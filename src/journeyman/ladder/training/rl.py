"""``journeyman train rl``: from a recipe to a loop over real trials, and its report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from journeyman.durable import write_json, write_text
from journeyman.ladder.training.evaluating import SideEvaluator
from journeyman.ladder.training.home import TrainingHome
from journeyman.ladder.training.open_site import SitePlan, open_site
from journeyman.ladder.training.place import find_tasks, make_place
from journeyman.ladder.training.remote import RemoteSite
from journeyman.sandbox import PROVIDERS
from journeyman.train.backends.table import make_trainer
from journeyman.train.loop.admission import AdmissionSpec
from journeyman.train.loop.asynchronous import AsyncLoop, idle_share
from journeyman.train.loop.books import LoopResult
from journeyman.train.loop.gate import GateSpec
from journeyman.train.loop.protocol import TrialSource
from journeyman.train.loop.settling import GroupRule
from journeyman.train.loop.spec import Deadlines, LoopSpec, Retention
from journeyman.train.loop.synchronous import SyncLoop
from journeyman.train.metrics.prices import Prices
from journeyman.train.metrics.sinks import Sinks
from journeyman.train.protocol import Trainer
from journeyman.train.recipe import RlRecipe
from journeyman.train.update import UpdateSpec

MAY_CHANGE = ("backend.layout", "backend.train_threads", "keep", "metrics", "loop.steps", "loop.stall_s", "loop.step_s")
"""What a resumed run may set differently: the trainer's processes, what is kept, and how long it goes on."""

NAME = "rl"


@dataclass(frozen=True)
class RlReport:
    """How a training ended, for people and machines.

    Attributes:
        result: of the loop.
        trainer_idle_share, rollout_idle_share: of the wall time of this session.
    """

    result: LoopResult
    trainer_idle_share: float
    rollout_idle_share: float

    def lines(self) -> list[str]:
        """As text."""
        idle = f"trainer idle {self.trainer_idle_share:.0%}, engine idle {self.rollout_idle_share:.0%}"
        return [*self.result.lines(), idle]

    def as_json(self) -> dict[str, Any]:
        """Plain JSON."""
        result = self.result
        rewards = [record["reward/finished"] for record in result.records]
        return {
            "status": result.status,
            "steps": result.steps,
            "reward_first": rewards[0] if rewards else None,
            "reward_last": rewards[-1] if rewards else None,
            "counts": result.counts,
            "waived": result.waived,
            "lost": result.lost.as_json(),
            "alarms": [str(alarm) for alarm in result.alarms],
            "evaluations": [found.__dict__ for found in result.evaluations],
            "trainer_idle_share": self.trainer_idle_share,
            "rollout_idle_share": self.rollout_idle_share,
            "checkpoint": str(result.checkpoint) if result.checkpoint else None,
        }


def run_rl(
    recipe: RlRecipe,
    say: Callable[[str], None],
    is_stopping: Callable[[], bool] = lambda: False,
    *,
    changes: dict[str, Any] | None = None,
) -> RlReport:
    """Train, or go on with a training that was stopped or killed.

    Args:
        recipe: what to do.
        say: told what happens.
        is_stopping: once true, the step under way is finished and everything is left resumable.
        changes: fields of ``SitePlan`` that no recipe has: slow tools and other graders, for measurements and tests.

    Raises:
        InputError: tasks, model or run directory cannot be used. EnvironmentMissing: no sandbox or library here.
        SystemFault: something broke beyond help; the same command goes on.
    """
    tasks = find_tasks(recipe.tasks.train, "tasks.train")
    dev = find_tasks(recipe.tasks.dev, "tasks.dev") if recipe.tasks.dev else []
    with ExitStack() as stack:
        home = stack.enter_context(TrainingHome(recipe.out, recipe, MAY_CHANGE))
        PROVIDERS[recipe.rollout.sandbox]().reap(home.label)
        place = make_place(recipe.rollout, [*tasks, *dev], recipe.policy.tokenizer_directory, home.root, home.label)
        plan = replace(plan_of(recipe, tasks, place), **(changes or {}))
        say(
            f"{len(tasks)} tasks, {recipe.loop.mode}, {recipe.loop.steps} steps of {recipe.loop.groups_per_step} groups"
        )
        source = open_source(plan, recipe.rollout.engine_process, home.root / "logs" / "sampling.log", recipe)
        stack.callback(source.close)
        trainer = make_trainer(recipe.backend, recipe.policy.model, recipe.optimizer.spec())
        stack.callback(trainer.close)
        after = _steps_done(home.root)
        sinks = Sinks(home.root, recipe.metrics.sinks, recipe.model_dump(mode="json"), after)
        spec = spec_of(recipe, len(tasks))
        if recipe.loop.mode == "sync":
            result = SyncLoop(home.root, spec, source, trainer, sinks, is_stopping).run()
        else:
            evaluator = _evaluator(recipe, dev, plan, home.root, stack)
            result = AsyncLoop(home.root, spec, source, trainer, sinks, evaluator, is_stopping).run()
        report = RlReport(result, idle_share(result.records), idle_share(result.records, "rollout/idle_share"))
        write_json(home.root / "report.json", report.as_json())
        write_text(home.root / "report.txt", "\n".join(report.lines()) + "\n")
        _export(trainer, result, home.root)
    return report


def plan_of(recipe: RlRecipe, tasks: list[Path], place: dict[str, Any]) -> SitePlan:
    """What the sampling process is told."""
    rollout, loop = recipe.rollout, recipe.loop
    return SitePlan(
        name=NAME,
        model=str(recipe.policy.model),
        tasks=tuple(str(task) for task in tasks),
        harness=rollout.harness,
        place=place,
        executor=rollout.executor,
        seed=recipe.seed,
        temperature=rollout.temperature,
        rows=rollout.rows,
        max_context=rollout.max_context,
        at_once=rollout.concurrency if loop.mode == "sync" else rollout.start_concurrency or rollout.rows,
        attempts=rollout.attempts,
        supervisors=rollout.supervisors,
        limits={"agent_s": rollout.agent_s, "model_s": rollout.model_s},
        kv_on_update=recipe.switches.kv_on_update,
        partial=rollout.partial,
        nudge_share=recipe.switches.nudge_share if recipe.switches.context_nudge else None,
        vllm=vllm_of(recipe, "vllm", rollout.vllm.urls),
        ray=rollout.ray.model_dump(mode="json") if rollout.executor == "ray" else None,
        topk=recipe.loss.asked_topk,
        experts=recipe.backend.replay_routing,
        probe=probes(recipe),
        shadow=tuple(str(path) for path in find_tasks(recipe.shadow.tasks, "shadow.tasks")),
        shadow_share=recipe.shadow.share,
    )


def probes(recipe: RlRecipe) -> bool:
    """Whether each push is followed by a probe: in a synchronous run every trial can tell the gap."""
    return recipe.loop.mode == "async" and recipe.guards.on_gap != "off"


def vllm_of(recipe: RlRecipe, folder: str, urls: Sequence[str]) -> dict[str, Any] | None:
    """What a site is told of its servers; None for the embedded engine. ``folder`` is below the run's logs."""
    if recipe.rollout.engine != "vllm":
        return None
    told = recipe.rollout.vllm.model_dump(mode="json")
    return {**told, "urls": list(urls), "out": str((recipe.out / "logs" / folder).absolute())}


def spec_of(recipe: RlRecipe, tasks: int) -> LoopSpec:
    """What the loop is told."""
    loop, rollout = recipe.loop, recipe.rollout
    admission = AdmissionSpec(
        loop.groups_per_step, loop.staleness, max(1, -(-rollout.concurrency // loop.trials_per_group))
    )
    window = loop.groups_per_step if loop.window is None else loop.window
    return LoopSpec(
        name=NAME,
        seed=recipe.seed,
        tasks=tasks,
        trials_per_group=loop.trials_per_group,
        gate=GateSpec(admission, loop.bound, loop.order, window, loop.steps),
        rule=GroupRule(loop.min_valid),
        advantage=recipe.loss.advantage,
        update=UpdateSpec(recipe.loss.resolved(), recipe.loss.reduction, recipe.loss.max_length),
        switches=recipe.switches,
        guards=recipe.guards,
        trials_at_once=(rollout.start_concurrency or rollout.rows, loop.trials_per_group, rollout.concurrency),
        checkpoint_every=loop.checkpoint_every,
        evaluate_every=recipe.evaluation.every,
        refill_rounds=loop.refill_rounds,
        prices=Prices(**recipe.prices.model_dump(), per_hour=recipe.metrics.usd_per_hour),
        probe_wait_s=recipe.guards.gap.wait_s if probes(recipe) else 0.0,
        whole_trials=recipe.switches.kv_on_update != "recompute",
        deadlines=Deadlines(loop.stall_s, loop.step_s, loop.stall_s),
        retention=Retention(recipe.keep.last, recipe.keep.every, recipe.keep.best),
    )


def open_source(plan: SitePlan, own_process: bool, log: Path, recipe: RlRecipe) -> TrialSource:
    """The source of trials, in a process of its own or in this one."""
    if own_process:
        return RemoteSite(plan.as_data(), log, recipe.rollout.threads)
    return open_site(plan.as_data())


def _evaluator(recipe: RlRecipe, dev: list[Path], plan: SitePlan, root: Path, stack: ExitStack) -> SideEvaluator | None:
    if not recipe.evaluation.every:
        return None
    wanted = recipe.evaluation
    own = replace(
        plan,
        name="dev",
        tasks=tuple(str(task) for task in dev),
        at_once=wanted.concurrency,
        nudge_share=None,  # evaluation trials are never nudged
        vllm=vllm_of(recipe, "vllm-evaluation", recipe.rollout.vllm.evaluation_urls),
        topk=0,
        experts=False,
        probe=False,
        shadow=(),
    )
    source = RemoteSite(own.as_data(), root / "logs" / "evaluation.log", recipe.rollout.threads)
    evaluator = SideEvaluator(source, len(dev), wanted.samples, wanted.k)
    stack.callback(evaluator.close)
    return evaluator


def _steps_done(root: Path) -> int:
    """Steps of the newest checkpoint, by its name."""
    from journeyman.train.checkpoint import PREFIX
    from journeyman.train.loop.checkpoints import newest

    found = newest(root)
    return int(found.name.removeprefix(PREFIX)) if found is not None else 0


def _export(trainer: Trainer, result: LoopResult, root: Path) -> None:
    """Make the newest checkpoint findable as ``policy``: it loads as a plain model."""
    if result.checkpoint is None:
        return
    link = root / "policy"
    link.unlink(missing_ok=True)
    link.symlink_to(
        result.checkpoint.relative_to(root) if result.checkpoint.is_relative_to(root) else result.checkpoint
    )
