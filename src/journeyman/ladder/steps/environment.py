"""Step 1, environment: worlds, proofs and a dry run of every task at training concurrency.

The quickstart trains its base model here too, from nothing, while a second process proves the tasks: every oracle
runs in a sandbox and must score 1, every negative control must fail. Then the warm-started policy runs each training
task eight times; what ends in a system error is no fault of the policy and is counted against the environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from journeyman.harness import HARNESSES
from journeyman.ladder import judgement, prepare
from journeyman.ladder.bench import Bench
from journeyman.ladder.evaluate import Evaluation
from journeyman.ladder.judgement import SYSTEM_CLASSES, mean_reward
from journeyman.ladder.oracles import prove
from journeyman.ladder.pretrain import base_sft, fresh_model, warm_start
from journeyman.ladder.report.model import Step
from journeyman.ladder.summaries import Summary
from journeyman.ladder.workers import Worker
from journeyman.tasks.task import Task
from journeyman.train.model import load_libraries
from journeyman.trials.inline import final_attempts
from journeyman.trials.record import TrialRequest
from journeyman.trials.store import read_summaries, write_batch


def run_step(bench: Bench) -> Step:
    """Make the environment, prove it, dry-run it, and choose the tasks that RL can learn from."""
    workshop, recipe = bench.workshop, bench.recipe
    bench.say(f"sandbox: {workshop.provider.name}; agent environment {workshop.environment.digest[:12]}")
    published = prepare.make_tasks(workshop)
    bench.say("tasks: " + ", ".join(f"{n} {published[n]['n_tasks']}" for n in prepare.SCORED_SPLITS))
    every_task = [task for split in prepare.SCORED_SPLITS for task in workshop.tasks(split)]
    with ThreadPoolExecutor(1) as beside:
        loading = beside.submit(load_libraries)  # seconds, while the sandboxed readers work
        n_read = prepare.fill_reads(workshop, every_task) + prepare.fill_demonstration_reads(workshop)
        loading.result()
    bench.say(f"documents read in the sandbox: {n_read}")
    with Worker(bench.run, "oracles", {}) as proofs:
        tokenizer = prepare.make_tokenizer(workshop)
        fresh_model(bench, tokenizer["vocab_size"])
        base = base_sft(bench)
        proof = proofs.result()
    greedy = _base_greedy(bench)
    warm, tasks, dry = _dry_run(bench, proof)
    chosen = _choose(tasks, dry, recipe.rl.tasks_per_step)
    selection = bench.run.load("selection") or bench.run.finish("selection", chosen)
    return _report(bench, base, greedy, proof, warm, dry, selection)


def _base_greedy(bench: Bench) -> dict[str, float]:
    values = {}
    for harness in sorted(HARNESSES):
        what = Evaluation("clean_base", harness, "dev", 1, 0.0, "gate of the clean base")
        scores = bench.scores(what, bench.evaluate(what))
        values[harness] = scores.mean_reward.value or 0.0
    return values


def _dry_run(bench: Bench, proof: dict[str, Any]) -> tuple[dict[str, Any], list[Task], list[Summary]]:
    """Warm start and dry run; a start below the floor is redone with more good demonstrations, a poor pool grows."""
    settings, rl = bench.recipe.warm_start, bench.recipe.rl
    for attempt in range(settings.max_tries):
        good_share = min(1.0, settings.good_share + attempt * settings.good_share_step)
        warm = warm_start(bench, good_share, attempt)
        tasks = list(bench.workshop.tasks("train"))[: bench.recipe.worlds.train_worlds * _per_world(bench)]
        summaries = _run_pool(bench, tasks, attempt)
        mean = mean_reward(summaries)
        bench.say(f"dry run: {len(summaries)} trials, mean reward {mean:.3f}, good share {good_share:g}")
        if mean >= settings.min_dry_run:
            break
    n_worlds = bench.recipe.worlds.train_worlds
    while len(_usable(summaries)) < rl.tasks_per_step and n_worlds < bench.recipe.worlds.max_train_worlds:
        added = prepare.grow_pool(bench.workshop, n_worlds)
        for key, value in prove(bench.workshop, added).items():
            proof[key] = proof[key] + value if key != "fewest_controls_of_a_task" else min(proof[key], value)
        tasks += added
        summaries += _run_pool(bench, added, attempt)
        n_worlds += prepare.POOL_GROWTH_WORLDS
    return warm, tasks, summaries


def _per_world(bench: Bench) -> int:
    return bench.recipe.worlds.train_tasks_per_world


def _run_pool(bench: Bench, tasks: Sequence[Task], attempt: int) -> list[Summary]:
    stage = f"dry-run-{attempt}-{tasks[0].id}"
    place = bench.run.path("dry-run", stage)
    if bench.run.load(stage) is None:
        bench.hold("warm_start")
        requests = [
            TrialRequest(task, HARNESSES["toolbelt"], ("dry-run", attempt, task.id, sample), sample)
            for task in tasks
            for sample in range(bench.recipe.rl.trials_per_task)
        ]
        trials = final_attempts(bench.rollouts.run(requests))
        write_batch(place, trials)
        bench.run.finish(stage, {"n_trials": len(trials)})
    return read_summaries(place)


def _usable(summaries: Sequence[Summary]) -> list[str]:
    """Ids of the tasks whose valid rewards vary, in order of first appearance."""
    rewards: dict[str, set[float]] = {}
    for s in summaries:
        values = rewards.setdefault(s["task_id"], set())
        if s["reward"] is not None:
            values.add(s["reward"])
    return [task for task, values in rewards.items() if len(values) > 1]


def _choose(tasks: Sequence[Task], summaries: Sequence[Summary], n: int) -> dict[str, Any]:
    """The usable tasks, and ``n`` of them taken family by family in turn so that no family is starved."""
    usable = _usable(summaries)
    family = {task.id: task.family for task in tasks}
    queues = {name: [t for t in usable if family[t] == name] for name in sorted(set(family.values()))}
    chosen: list[str] = []
    while len(chosen) < n and any(queues.values()):
        for queue in queues.values():
            if queue and len(chosen) < n:
                chosen.append(queue.pop(0))
    return {"usable": usable, "overfit": chosen, "n_pool": len(tasks)}


def _report(
    bench: Bench,
    base: dict[str, Any],
    greedy: dict[str, float],
    proof: dict[str, Any],
    warm: dict[str, Any],
    dry: Sequence[Summary],
    selection: dict[str, Any],
) -> Step:
    n_broken = sum(s["outcome"] in SYSTEM_CLASSES for s in dry)
    judged = judgement.environment(bench.recipe, base, greedy, proof, dry, len(selection["usable"]))
    return Step(
        number=1,
        name="environment",
        status=judged.status,
        gate=judged.gate,
        checks=judged.checks,
        summary=(
            f"{proof['n_tasks']} tasks proven; {len(dry)} dry-run trials, {n_broken} system errors; "
            f"{len(selection['usable'])} of {selection['n_pool']} training tasks have reward variance"
        ),
        evidence={
            "proof": proof,
            "clean_base_greedy": dict(greedy),
            "base_sft": {k: v for k, v in base.items() if k != "losses"},
            "warm_start": warm,
            "dry_run_mean_reward": mean_reward(dry),
            "n_usable": len(selection["usable"]),
        },
        look_at=("tasks", "dry-run", "state/oracles.json"),
    )
