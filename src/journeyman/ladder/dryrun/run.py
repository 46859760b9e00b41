"""Running the trials of a plan, at its concurrency, into its directory; killed, the same call goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from journeyman.harness import HARNESSES, Harness
from journeyman.ladder.dryrun.plan import FILE, Plan, offer_of, read_plan
from journeyman.ladder.dryrun.stage import Say, Stage
from journeyman.tasks.task import Task, load_task
from journeyman.trials.dryrun.place import QUICKSTART
from journeyman.trials.executors.process import ProcessExecutor
from journeyman.trials.limits import Limits
from journeyman.trials.record import Trial, TrialRequest
from journeyman.trials.resume import final_rows
from journeyman.trials.store import Owner, TrialRow, open_run

BROKEN = frozenset({"system_error"})
"""Outcomes of trials of which nothing can be said; a broken verifier is a finding and no such outcome."""


@dataclass
class Watch:
    """Counts what ends, and stops the run once more has broken than lets it be judged.

    Attributes:
        planned: trials of the plan.
        abort_at: share of them.
        say: told the progress.
        ended, broken: so far.
    """

    planned: int
    abort_at: float
    say: Say
    ended: int = 0
    broken: int = 0

    def closed(self, trial: Trial) -> None:
        """A trial has its row."""
        self.ended += 1
        self.broken += trial.outcome is not None and trial.outcome.outcome_class in BROKEN
        if self.ended == self.planned or self.ended % max(1, self.planned // 10) == 0:
            self.say(f"{self.ended} of {self.planned} trials ended, {self.broken} broke")

    @property
    def is_over(self) -> bool:
        """Whatever still runs, the share of broken trials is above the bound."""
        return self.broken > self.abort_at * self.planned


def run_plan(plan: Plan, out: Path, *, concurrency: int, abort_at: float, waive: frozenset[str], say: Say) -> None:
    """Run what has no row yet. Each trial is attempted once: a retry would hide what breaks.

    Args:
        out: the run directory, which holds the plan.
        concurrency: trials alive at once.
        abort_at: share of broken trials above which the rest is not run.

    Raises:
        EnvironmentMissing: no sandbox. InputError: a task is gone or damaged; the model cannot be used.
    """
    tasks = [load_task(Path(task.path)) for task in plan.tasks]
    requests = requests_of(plan, tasks)
    with Owner(out) as owner:
        done = final_rows(row for row in _rows(out) if row.outcome != "cancelled")
        if all(request.trial_id in done for request in requests):
            say(f"all {len(requests)} trials ended before")
            return
        watch = Watch(plan.num_trials, abort_at, say, len(done), sum(row.outcome in BROKEN for row in done.values()))
        if watch.is_over:
            return
        say(f"{len(requests) - len(done)} of {len(requests)} trials to run, {concurrency} at a time")
        stage = Stage(plan, out, offer_of(plan), waive, say)
        try:
            stage.read_documents(tasks, say)
            with (
                stage.verifier() as verifier,
                ProcessExecutor(
                    stage.engine,
                    stage.workplace(),
                    seed=plan.seed,
                    limits=Limits(),
                    concurrency=concurrency,
                    max_attempts=1,
                    owner=owner,
                    is_cancelled=lambda: watch.is_over,
                    on_closed=watch.closed,
                ) as executor,
            ):
                executor.run(requests, verifier)
            if stage.judge is not None:
                say("judge: " + ", ".join(f"{name} {value}" for name, value in stage.judge.report().items()))
        finally:
            stage.close()


def is_finished(out: Path) -> bool:
    """Whether ``out`` holds a dry run of which every trial ended; its tasks need not be there any more."""
    if not (out / FILE).exists():
        return False
    plan = read_plan(out)
    done = final_rows(row for row in _rows(out) if row.outcome != "cancelled")
    return all(f"dry-run/{task.id}/{sample}" in done for task in plan.tasks for sample in range(plan.samples))


def requests_of(plan: Plan, tasks: Sequence[Task]) -> list[TrialRequest]:
    """Every sample of every task; trial ids depend on task and sample alone, so two runs pair by them."""
    harness = harness_named(plan.harness)
    return [
        TrialRequest(task, harness, ("dry-run", task.id, sample), sample, plan.temperature)
        for task in tasks
        for sample in range(plan.samples)
    ]


def harness_named(name: str) -> Harness:
    """The quickstart's harness, or the name of one whose loop the workplace makes: then its framing is not used."""
    if name.startswith(QUICKSTART):
        return replace(HARNESSES[name.removeprefix(QUICKSTART)], name=name)
    return replace(HARNESSES["react"], name=name)


def _rows(out: Path) -> list[TrialRow]:
    with open_run(out) as run:
        return [row for row in run.trials() if not row.batch]
