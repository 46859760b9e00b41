"""The inline executor: whole trials on a scripted engine, real tools and verifier, every ending in one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from journeyman.engines.scripted import ScriptedEngine
from journeyman.errors import InputError
from journeyman.harness import HARNESSES
from journeyman.ladder.workshop import Workshop
from journeyman.tasks.errors import VerifierCrashed
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.task import Task
from journeyman.tasks.verdict import Verdict, verifier_error
from journeyman.tokens.framing import call_ids
from journeyman.tools import ReadMissing, ToolContext
from journeyman.trials.inline import InlineExecutor, final_attempts
from journeyman.trials.record import Trial, TrialRequest
from journeyman.trials.store import read_summaries, read_tokens, write_batch
from journeyman.worlds.mini.build import tasks_of
from journeyman.worlds.mini.world import make_world

HARNESS = HARNESSES["toolbelt"]


def requests_of(tasks: Sequence[Task]) -> list[TrialRequest]:
    return [TrialRequest(task, HARNESS, ("test", task.id, 0), 0) for task in tasks]


def oracle_turns(workshop: Workshop, task: Task) -> list[list[int]]:
    """The plan of a task as sampled turns, the final call last."""
    recipe = workshop.recipe
    world = make_world(recipe.seed, task.split, int(task.world_id[-4:]))
    per_world = getattr(recipe.worlds, f"{task.split}_tasks_per_world")
    bound = dict(tasks_of(recipe.seed, world, int(task.world_id[-4:]), per_world))[task.id]
    turns = [call_ids(workshop.tokenizer, step.tool, step.arguments) for step in bound.plan]
    return [*turns, call_ids(workshop.tokenizer, "submit", {"answer": bound.answer})]


def run(workshop: Workshop, tasks: Sequence[Task], scripts: Mapping[str, list[list[int]]]) -> list[Trial]:
    executor = InlineExecutor(
        ScriptedEngine(scripts), workshop.tokenizer, workshop.tools_of_task, max_context=640, seed=1
    )
    with workshop.verifier() as verifier:
        return executor.run(requests_of(tasks), verifier)


def scripts_of(workshop: Workshop, tasks: Sequence[Task]) -> dict[str, list[list[int]]]:
    return {request.trial_id: oracle_turns(workshop, request.task) for request in requests_of(tasks)}


def test_every_oracle_solves_its_task_through_the_whole_trial(prepared: Workshop) -> None:
    tasks = prepared.tasks("train")
    trials = run(prepared, tasks, scripts_of(prepared, tasks))
    assert [(t.reward, t.passed, t.stop_reason) for t in trials] == [(1.0, True, "answered")] * len(tasks)
    assert {t.request.task.family for t in trials} == {"look", "sum2", "cross", "own", "rep"}


def test_a_wrong_answer_fails_and_a_missing_one_is_malformed(prepared: Workshop) -> None:
    tasks = prepared.tasks("train")[:2]
    scripts = scripts_of(prepared, tasks)
    first, second = scripts
    scripts[first] = [call_ids(prepared.tokenizer, "submit", {"answer": "1"})]
    scripts[second] = [call_ids(prepared.tokenizer, "calc", {"expr": "1+1"})] * 6
    wrong, missing = run(prepared, tasks, scripts)
    assert (wrong.reward, wrong.outcome and wrong.outcome.outcome_class) == (0.0, "failed")
    assert (missing.reward, missing.outcome and missing.outcome.outcome_class) == (0.0, "malformed_deliverable")
    assert missing.stop_reason == "limit.turns"


class BrokenOnce:
    """Tool contexts of which the first one of a task lacks its documents."""

    def __init__(self, workshop: Workshop, always: bool) -> None:
        self.workshop, self.always, self.asked = workshop, always, 0

    def __call__(self, task: Task) -> ToolContext:
        self.asked += 1
        whole = self.workshop.tools_of_task(task)
        if self.always or self.asked == 1:
            return ToolContext(files=dict.fromkeys(whole.files, "0" * 64), reads=whole.reads)
        return whole


@pytest.mark.parametrize(("always", "rewards"), [(False, [None, 1.0]), (True, [None, None])])
def test_a_broken_tool_host_is_retried_in_a_new_trial_and_never_a_zero(
    prepared: Workshop, always: bool, rewards: list[float | None]
) -> None:
    task = next(t for t in prepared.tasks("train") if t.family == "look")
    engine = ScriptedEngine(scripts_of(prepared, [task]))
    executor = InlineExecutor(engine, prepared.tokenizer, BrokenOnce(prepared, always), max_context=640, seed=1)
    with prepared.verifier() as verifier:
        trials = executor.run(requests_of([task]), verifier)
    assert [t.attempt for t in trials] == [1, 2]
    assert [t.reward for t in trials] == rewards
    assert trials[0].error is not None
    assert trials[0].error[0] == ReadMissing.__name__
    assert trials[0].outcome is not None
    assert (trials[0].outcome.outcome_class, trials[0].outcome.cause) == ("system_error", "tool_host_failed")
    assert final_attempts(trials) == [trials[1]]


class FailingGrader:
    """A verifier that breaks on its first ``times`` batches."""

    def __init__(self, inner: object, times: int) -> None:
        self.inner, self.times, self.calls = inner, times, 0

    def grade(self, items: Sequence[GradeItem]) -> list[Verdict]:
        self.calls += 1
        if self.calls <= self.times:
            return [verifier_error(VerifierCrashed("broken on purpose")) for _ in items]
        return self.inner.grade(items)  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize(("times", "reward", "outcome"), [(1, 1.0, "solved"), (2, None, "verifier_error")])
def test_a_broken_verifier_is_asked_again_and_is_never_a_zero(
    prepared: Workshop, times: int, reward: float | None, outcome: str
) -> None:
    task = prepared.tasks("train")[0]
    engine = ScriptedEngine(scripts_of(prepared, [task]))
    executor = InlineExecutor(engine, prepared.tokenizer, prepared.tools_of_task, max_context=640, seed=1)
    with prepared.verifier() as verifier:
        (trial,) = executor.run(requests_of([task]), FailingGrader(verifier, times))
    assert (trial.reward, trial.outcome and trial.outcome.outcome_class) == (reward, outcome)


def test_a_stored_batch_reads_back_whole_and_an_old_one_is_kept_aside(prepared: Workshop, tmp_path: Path) -> None:
    tasks = prepared.tasks("dev")
    trials = run(prepared, tasks, scripts_of(prepared, tasks))
    write_batch(tmp_path / "batch", trials)
    write_batch(tmp_path / "batch", trials[:2])
    assert len(read_summaries(tmp_path / "batch")) == 2
    assert len(read_summaries(tmp_path / "discarded-1-batch")) == len(trials)
    for trial, columns in zip(trials[:2], read_tokens(tmp_path / "batch"), strict=True):
        assert np.array_equal(trial.tokens.ids, columns.ids)
        assert np.array_equal(trial.tokens.logprob, columns.logprob)
        assert (columns.mask == (columns.source == 1)).all()


def test_a_missing_batch_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"trials\.jsonl: no stored trials here"):
        read_summaries(tmp_path)
