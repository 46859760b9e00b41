"""Proofs of tasks: solutions run in sandboxes and score 1, controls fail, and a broken task is found out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from journeyman.ladder.oracles import controls_of, prove
from journeyman.ladder.workshop import Workshop
from journeyman.tasks.task import Task, load_task


def test_every_solution_scores_1_and_every_control_fails(prepared: Workshop) -> None:
    tasks = [task for split in ("train", "dev", "test") for task in prepared.tasks(split)]
    proof = prove(prepared, tasks)
    assert (proof["n_oracles_scoring_1"], proof["n_broken"], proof["n_verifier_errors"]) == (len(tasks), 0, 0)
    assert proof["n_controls_failing"] == proof["n_controls"] >= 4 * len(tasks)
    assert proof["fewest_controls_of_a_task"] >= 4


def wrong_truth(task: Path) -> None:
    truth = task / "tests" / "truth.json"
    truth.write_text(json.dumps({**json.loads(truth.read_text()), "answer": "1"}))


def broken_solution(task: Path) -> None:
    (task / "solution" / "solve.sh").write_text("#!/bin/sh\nexit 3\n")


def missing_file(task: Path) -> None:
    for path in (task / "environment" / "world").iterdir():
        path.unlink()


@pytest.mark.parametrize("damage", [wrong_truth, broken_solution, missing_file])
def test_a_task_that_its_solution_does_not_solve_is_found(
    prepared: Workshop, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    task = copied(prepared.tasks("train")[0], tmp_path)
    damage(task.path)
    proof = prove(prepared, [task])
    assert proof["n_oracles_scoring_1"] == 0
    assert proof["unsolved"] == [f"oracle/{task.id}"]


def test_a_control_that_the_verifier_lets_through_is_found(prepared: Workshop, tmp_path: Path) -> None:
    task = copied(prepared.tasks("train")[0], tmp_path)
    truth = json.loads((task.path / "tests" / "truth.json").read_text())
    controls = json.loads((task.path / "tests" / "controls.json").read_text())
    controls[0]["answer"] = truth["answer"]
    (task.path / "tests" / "controls.json").write_text(json.dumps(controls))
    proof = prove(prepared, [task])
    assert proof["n_controls"] - proof["n_controls_failing"] == 1
    assert len(controls_of(task)) == len(controls) + 1


def copied(task: Task, root: Path) -> Task:
    shutil.copytree(task.path, root / task.id)
    return load_task(root / task.id)
