"""Overfitting: which tasks are chosen, which kinds rose, and what is said of those that did not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from ladder_training_setup import small_policy

from journeyman.config import load
from journeyman.ladder import prepare
from journeyman.ladder.bench import Bench
from journeyman.ladder.pretrain import base_sft, fresh_model, warm_start
from journeyman.ladder.recipe import QuickstartRecipe
from journeyman.ladder.rundir import RunDirectory
from journeyman.ladder.training.overfit import choose, run_overfit
from journeyman.ladder.training.risen import judge_kinds, kinds_of, words_of
from journeyman.ladder.workshop import Workshop
from journeyman.tasks.task import load_task
from journeyman.train.recipe import OverfitRecipe

KINDS = {
    "a1": {"verifier": "check", "deliverable": ".json", "family": "a"},
    "a2": {"verifier": "check", "deliverable": ".json", "family": "a"},
    "d1": {"verifier": "script", "deliverable": ".xlsx", "family": "d"},
    "d2": {"verifier": "script", "deliverable": ".xlsx", "family": "d"},
    "z1": {"verifier": "judge", "deliverable": ".docx", "family": "z"},
}


def rows(task: str, rewards: list[float | None], failed: list[list[str]] | None = None) -> list[dict]:
    return [
        {
            "task": task,
            "world": task,
            "family": task[0],
            "reward": reward,
            "passed": None if reward is None else reward == 1,
            "outcome": "solved" if reward == 1 else "failed",
            "explain": "",
            "failed": failed or [],
        }
        for reward in rewards
    ]


def test_tasks_are_chosen_for_two_different_valid_rewards_in_a_seeded_order():
    screened = rows("a1", [1, 0, None]) + rows("a2", [1, 1, None]) + rows("d1", [0, 0.5]) + rows("d2", [None, None])
    assert sorted(choose(screened, 5, seed=0)) == ["a1", "d1"]
    many = [row for n in range(30) for row in rows(f"t{n}", [0, 1])]
    assert len(choose(many, 8, 0)) == 8 and choose(many, 8, 0) != choose(many, 8, 1)


def test_kinds_that_did_not_rise_are_named_first_with_the_words_of_their_verdicts():
    says = [["file_diff", "cell B4: expected 5, found 5.0"]]
    screened = rows("z1", [0, 0], [["rubric", "not judged"]])
    before = rows("a1", [0, 1]) + rows("a2", [0, 0]) + rows("d1", [0, 0.5]) + rows("d2", [0.5, 0])
    after = rows("a1", [1, 1]) + rows("a2", [1, 1]) + rows("d1", [0, 0.5], says) + rows("d2", [0, 0.5], says)
    found = judge_kinds(KINDS, screened, before, [before, after], after, min_rise=0.05)
    verdicts = {(kind.what, kind.name): kind for kind in found}
    assert verdicts["family", "a"].verdict == "rose" and verdicts["family", "a"].curve == (0.25, 1.0)
    stuck = verdicts["verifier", "script"]
    assert stuck.verdict == "did not rise" and stuck.words == (("file_diff: cell B4: expected 5, found 5.0", 4),)
    assert verdicts["verifier", "judge"].verdict == "no variance"
    assert [kind.verdict for kind in found[:3]] == ["did not rise"] * 3
    assert "4 x file_diff: cell B4" in "\n".join(stuck.lines())


def test_a_kind_that_was_solved_before_is_not_blamed():
    before = rows("a1", [1, 1, 1]) + rows("a2", [1, 1, 1])
    found = judge_kinds({k: v for k, v in KINDS.items() if k[0] == "a"}, [], before, [], before, 0.05)
    assert {kind.verdict for kind in found} == {"solved before"}
    assert words_of(rows("a1", [None, 1.0])) == ()


def test_a_task_says_how_it_is_graded_and_what_it_delivers(prepared):
    task = prepared.tasks("train")[0]
    assert kinds_of(task) == {"verifier": "check", "deliverable": ".json", "family": task.family}


PLANTED = '''
right_grade = grade


def grade(artifacts, truth):
    """A planted fault: what is right is called wrong."""
    found = right_grade(artifacts, truth)
    if found["reward"] == 1:
        wrong = {"id": "file_diff", "kind": "gate", "score": 0.0, "explain": "differs from the expected file"}
        return {"reward": 0.0, "passed": False, "checks": [wrong]}
    return found


if __name__ == "__main__":'''


@pytest.mark.slow
def test_a_planted_verifier_that_rejects_what_is_right_is_found_by_overfitting(tmp_path):
    """The quickstart's own warm start, on tasks of six worlds, one family of which is graded wrongly."""
    workshop = warm_started(tmp_path / "run")
    tasks = tmp_path / "tasks"
    shutil.copytree(workshop.run.path("tasks", "train"), tasks)
    planted = plant(tasks)
    words = [
        f"--policy.model={workshop.run.path('models', 'warm_start')}",
        f"--policy.tokenizer={workshop.run.path('tokenizer')}",
        f"--tasks.train={tasks}",
        "--rollout.harness=framing:toolbelt",
        "--rollout.rows=128",
        f"--rollout.waive={','.join(sorted(workshop.tier.waive))}",
        "--overfit.tasks=16",
        "--overfit.steps=5",
        f"--out={tmp_path / 'out'}",
    ]
    report = run_overfit(load(OverfitRecipe, words, {}).model, print)
    workshop.run.close()
    print("\n".join(report.lines()))
    by_family = {kind.name: kind for kind in report.kinds if kind.what == "family"}
    assert by_family[planted].verdict in ("did not rise", "no variance")
    assert any("differs from the expected file" in words for words, _ in by_family[planted].words)
    assert any(kind.verdict == "rose" for name, kind in by_family.items() if name != planted)
    assert report.passed


def warm_started(root: Path) -> Workshop:
    """A quickstart up to its warm start, with few tasks to train on."""
    recipe = QuickstartRecipe.model_validate(
        {
            "out": root,
            "worlds": {"train_worlds": 6, "max_train_worlds": 6, "dev_worlds": 2, "test_worlds": 2},
            "rl": {"tasks_per_step": 8},
            "sandbox": {"waive": ["memory", "pids", "disk", "cpus"]},
        }
    )
    workshop = Workshop(RunDirectory(root, recipe))
    prepare.make_tasks(workshop)
    prepare.fill_reads(workshop, [task for split in prepare.SCORED_SPLITS for task in workshop.tasks(split)])
    prepare.fill_demonstration_reads(workshop)
    prepare.make_tokenizer(workshop)
    bench = Bench(workshop, print)
    fresh_model(bench, workshop.tokenizer.vocab_size)
    base_sft(bench)
    warm_start(bench, recipe.warm_start.good_share, 0)
    return workshop


def plant(tasks: Path) -> str:
    """Let one family's checks reject what is right; returns its name."""
    families: dict[str, list[Path]] = {}
    for path in sorted(tasks.iterdir()):
        families.setdefault(load_task(path).family, []).append(path)
    name = max(families, key=lambda family: len(families[family]))
    for path in families[name]:
        source = path / "tests" / "check.py"
        source.write_text(source.read_text().replace('\n\nif __name__ == "__main__":', PLANTED))
    return name


def test_a_policy_for_tests_is_a_model_directory_with_its_tokenizer(prepared, tmp_path):
    assert (small_policy(prepared, tmp_path) / "tokenizer.json").is_file()
