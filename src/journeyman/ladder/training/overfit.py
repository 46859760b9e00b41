"""``journeyman overfit``: can this policy learn these few tasks at all? The end-to-end unit test of a task set.

Tasks with reward variance are chosen by a screening; the baseline is sampled afresh after that (tasks chosen by their
variance were lucky draws, and their screening would flatter the start). Then a few synchronous steps, each an epoch,
and the same measurement again. What did not rise is named, with its verdicts' words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from journeyman.durable import write_json, write_text
from journeyman.evals.score import Difference
from journeyman.evals.tally import GradedTrial, difference_of
from journeyman.ladder.summaries import spoken
from journeyman.ladder.training.home import TrainingHome
from journeyman.ladder.training.open_site import SitePlan
from journeyman.ladder.training.place import find_tasks, make_place
from journeyman.ladder.training.risen import Kind, Row, judge_kinds, kinds_of, mean_reward
from journeyman.ladder.training.rl import open_source, plan_of, spec_of
from journeyman.sandbox import PROVIDERS
from journeyman.seeds import stream
from journeyman.tasks.task import Task, load_task
from journeyman.train.backends.table import make_trainer
from journeyman.train.loop.protocol import FinishedTrial, GroupOrder, TrialSource
from journeyman.train.loop.settling import SettledGroup
from journeyman.train.loop.synchronous import SyncLoop
from journeyman.train.metrics.sinks import Sinks
from journeyman.train.recipe import LoopSection, OverfitRecipe, RlRecipe

STAGES = {"screening": 1_000_000, "baseline": 2_000_000, "result": 3_000_000}
"""First position of the Groups of each measurement: their noise differs from that of every step."""

POLL_S = 0.5


@dataclass(frozen=True)
class OverfitReport:
    """How it ended.

    Attributes:
        gain: of the mean reward, paired over tasks, clustered by world; None when nothing could be chosen.
        passed: its low end exceeds what the recipe asks for.
        kinds: what rose and what did not.
        curve: mean reward before, after each step, and after.
        chosen, seen: tasks.
        status: of the loop.
    """

    gain: Difference | None
    passed: bool
    kinds: tuple[Kind, ...]
    curve: tuple[float | None, ...]
    chosen: int
    seen: int
    status: str

    def lines(self) -> list[str]:
        """As text."""
        head = f"{self.chosen} of {self.seen} tasks have reward variance"
        if self.gain is None:
            return [f"{head}: nothing can be overfitted", *(line for kind in self.kinds for line in kind.lines())]
        curve = " ".join("-" if value is None else f"{value:.3f}" for value in self.curve)
        gain = f"gain in mean reward {spoken(self.gain)}: {'rises' if self.passed else 'does NOT rise'}"
        return [f"{head}; {gain}", f"curve: {curve}", *(line for kind in self.kinds for line in kind.lines())]

    def as_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "passed": self.passed,
            "gain": self.gain.model_dump(mode="json") if self.gain is not None else None,
            "curve": self.curve,
            "chosen": self.chosen,
            "seen": self.seen,
            "status": self.status,
            "kinds": [kind.as_json() for kind in self.kinds],
        }


def run_overfit(
    recipe: OverfitRecipe, say: Callable[[str], None], *, changes: dict[str, Any] | None = None
) -> OverfitReport:
    """Screen, measure, train, measure again. The same command goes on where a killed one stopped.

    Args:
        recipe: what to do. say: told what happens.
        changes: as for ``rl.run_rl``.

    Raises: as ``rl.run_rl``.
    """
    paths = find_tasks(recipe.tasks.train, "tasks.train")
    tasks = [load_task(path) for path in paths]
    with ExitStack() as stack:
        home = stack.enter_context(TrainingHome(recipe.out, recipe))
        PROVIDERS[recipe.rollout.sandbox]().reap(home.label)
        place = make_place(recipe.rollout, paths, recipe.policy.tokenizer_directory, home.root, home.label)
        plan = replace(plan_of(_as_rl(recipe, len(paths)), paths, place), **(changes or {}))
        run = _Overfit(recipe, home, plan, tasks, say)
        report = run.go()
        write_json(home.root / "report.json", report.as_json())
        write_text(home.root / "report.txt", "\n".join(report.lines()) + "\n")
    return report


class _Overfit:
    """One overfit run: what its stages share."""

    def __init__(
        self,
        recipe: OverfitRecipe,
        home: TrainingHome,
        plan: SitePlan,
        tasks: Sequence[Task],
        say: Callable[[str], None],
    ) -> None:
        self.recipe, self.home, self.plan, self.tasks, self.say = recipe, home, plan, tasks, say

    def go(self) -> OverfitReport:
        screened = self._screening()
        chosen = choose(screened, self.recipe.overfit.tasks, self.recipe.seed)
        kinds = {task.id: kinds_of(task) for task in self.tasks}
        if len(chosen) < 2:
            judged = judge_kinds(kinds, screened, [], [], [], self.recipe.overfit.min_rise)
            return OverfitReport(None, False, tuple(judged), (), len(chosen), len(self.tasks), "nothing_to_learn")
        by_id = {task.id: task for task in self.tasks}
        return self._overfitted(screened, [by_id[task] for task in chosen], kinds)

    def _screening(self) -> list[Row]:
        stored = self.home.load("screening")
        if stored is not None:
            return list(stored["trials"])
        self.say(f"screening {len(self.tasks)} tasks for reward variance")
        source = self._open(self.plan)
        try:
            rows = self._measure(source, "screening", self.tasks)
        finally:
            source.close()
        self.home.finish("screening", {"trials": rows})
        return rows

    def _overfitted(
        self, screened: list[Row], chosen: Sequence[Task], kinds: dict[str, dict[str, str]]
    ) -> OverfitReport:
        wanted, root = self.recipe.overfit, self.home.root
        rl = _as_rl(self.recipe, len(chosen))
        source = self._open(replace(self.plan, tasks=tuple(str(task.path) for task in chosen)))
        trainer = make_trainer(self.recipe.backend, self.recipe.policy.model, self.recipe.optimizer.spec())
        try:
            before = self._stage(source, "baseline", chosen)
            self.say(f"baseline on {len(chosen)} tasks, sampled afresh: mean reward {mean_reward(before) or 0:.3f}")
            loop = SyncLoop(
                root,
                spec_of(rl, len(chosen)),
                source,
                trainer,
                Sinks(root, (), None, _steps(root)),
                on_step=lambda record, groups: self._note(record, groups, chosen),
            )
            result = loop.run()
            after = self._stage(source, "result", chosen)
        finally:
            source.close()
            trainer.close()
        steps = [_read_rows(root / "curve" / f"step-{step}.json") for step in range(1, result.steps + 1)]
        judged = judge_kinds(kinds, screened, before, steps, after, wanted.min_rise)
        gain = difference_of(
            [_graded(row) for row in before],
            [_graded(row) for row in after],
            "mean_reward",
            a="baseline",
            b="overfit",
            seed=self.recipe.seed,
            confidence=wanted.confidence,
        )
        curve = (mean_reward(before), *(mean_reward(rows) for rows in steps), mean_reward(after))
        passed = gain.low is not None and gain.low > wanted.min_gain
        return OverfitReport(gain, passed, tuple(judged), curve, len(chosen), len(self.tasks), result.status)

    def _open(self, plan: SitePlan) -> TrialSource:
        log = self.home.root / "logs" / "sampling.log"
        return open_source(plan, self.recipe.rollout.engine_process, log, _as_rl(self.recipe, len(plan.tasks)))

    def _stage(self, source: TrialSource, name: str, tasks: Sequence[Task]) -> list[Row]:
        stored = self.home.load(name)
        if stored is None:
            stored = self.home.finish(name, {"trials": self._measure(source, name, tasks)})
        return list(stored["trials"])

    def _measure(self, source: TrialSource, name: str, tasks: Sequence[Task]) -> list[Row]:
        first, n = STAGES[name], self.recipe.overfit.trials
        orders = {first + i: GroupOrder(first + i, i, n, 0) for i in range(len(tasks))}
        source.submit(list(orders.values()))
        found: dict[tuple[int, int], FinishedTrial] = {}
        while len(found) < n * len(tasks):
            arrivals = source.poll(POLL_S)
            found |= {(t.position, t.sample): t for t in arrivals.trials if t.position in orders}
            for position in arrivals.lost:
                lacking = tuple(s for s in range(n) if (position, s) not in found)
                if position in orders and lacking:
                    source.submit([replace(orders[position], samples=lacking)])
        return [row_of(found[key], tasks[key[0] - first]) for key in sorted(found)]

    def _note(self, record: dict[str, Any], groups: list[SettledGroup], tasks: Sequence[Task]) -> None:
        rows = [row_of(trial, tasks[group.order.task]) for group in groups for trial in group.trials]
        step = record["step"]
        write_json(self.home.root / "curve" / f"step-{step}.json", {"trials": rows})
        self.say(f"step {step}: mean reward {mean_reward(rows) or 0:.3f}")


def choose(screened: Sequence[Row], count: int, seed: int) -> list[str]:
    """Ids of at most ``count`` tasks with two different valid rewards, in a seeded order."""
    rewards: dict[str, set[float]] = {}
    for row in screened:
        if row["reward"] is not None:
            rewards.setdefault(row["task"], set()).add(row["reward"])
    usable = sorted(task for task, values in rewards.items() if len(values) > 1)
    stream(seed, "overfit tasks").shuffle(usable)
    return usable[:count]


def row_of(trial: FinishedTrial, task: Task) -> dict[str, Any]:
    """A trial as the report reads it."""
    facts = trial.facts
    return {
        "task": task.id,
        "world": task.world_id,
        "family": task.family,
        "reward": trial.reward,
        "passed": trial.passed,
        "outcome": facts.get("outcome", ""),
        "explain": facts.get("explain", ""),
        "failed": facts.get("failed", []),
    }


def _graded(row: Row) -> GradedTrial:
    return GradedTrial(row["task"], row["world"], row["family"], row["outcome"], row["reward"], row["passed"])


def _read_rows(path: Path) -> list[Row]:
    return list(json.loads(path.read_text(encoding="utf-8"))["trials"])


def _steps(root: Path) -> int:
    from journeyman.train.checkpoint import PREFIX
    from journeyman.train.loop.checkpoints import newest

    found = newest(root)
    return int(found.name.removeprefix(PREFIX)) if found is not None else 0


def _as_rl(recipe: OverfitRecipe, tasks: int) -> RlRecipe:
    """The synchronous training an overfit run is."""
    return RlRecipe(
        policy=recipe.policy,
        tasks=recipe.tasks,
        rollout=recipe.rollout,
        loop=LoopSection(
            mode="sync",
            steps=recipe.overfit.steps,
            groups_per_step=tasks,
            trials_per_group=recipe.overfit.trials,
            staleness=0,
        ),
        loss=recipe.loss,
        optimizer=recipe.optimizer,
        backend=recipe.backend,
        guards=recipe.guards,
        out=recipe.out,
        seed=recipe.seed,
    )
