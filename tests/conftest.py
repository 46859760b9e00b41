"""Fixtures that several rooms share: a small prepared run whose worlds, tasks, documents and tokenizer are real."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from journeyman.ladder.recipe import QuickstartRecipe
    from journeyman.ladder.workshop import Workshop


os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is loaded; workers of one machine share its cores

SEED = 918273645
"""Long enough that finding it anywhere inside a sandbox is a leak, not chance."""


def small_recipe(out: Path, seed: int = SEED) -> QuickstartRecipe:
    """A recipe whose preparation takes seconds."""
    from journeyman.ladder.recipe import QuickstartRecipe

    return QuickstartRecipe.model_validate(
        {
            "out": out,
            "seed": seed,
            "worlds": {
                "sft_worlds": 8,
                "sft_heldout_worlds": 2,
                "train_worlds": 3,
                "dev_worlds": 2,
                "test_worlds": 2,
                "train_tasks_per_world": 5,
                "max_train_worlds": 3,
            },
            "warm_start": {"worlds": 4},
            "rl": {"tasks_per_step": 4, "trials_per_task": 4},
            "sandbox": {"waive": ["memory", "pids", "disk", "cpus"]},
        }
    )


@pytest.fixture(scope="session")
def recipe_at() -> Callable[..., QuickstartRecipe]:
    """``small_recipe`` for tests: a run directory, and a seed where it matters."""
    return small_recipe


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """A run directory with tasks, read documents and a tokenizer; shared, so tests only read it."""
    from journeyman.ladder import prepare
    from journeyman.ladder.rundir import RunDirectory
    from journeyman.ladder.workshop import Workshop

    root = tmp_path_factory.mktemp("run") / "quickstart"
    workshop = Workshop(RunDirectory(root, small_recipe(root)))
    prepare.make_tasks(workshop)
    every_task = [task for split in prepare.SCORED_SPLITS for task in workshop.tasks(split)]
    prepare.fill_reads(workshop, every_task)
    prepare.fill_demonstration_reads(workshop)
    prepare.make_tokenizer(workshop)
    yield workshop
    workshop.run.close()
