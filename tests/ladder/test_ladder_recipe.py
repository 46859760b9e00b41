"""The recipe refuses what cannot run, before anything starts."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from journeyman.ladder.recipe import QuickstartRecipe


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rl": {"trials_per_task": -8}}, "greater than or equal to 2"),
        ({"rl": {"tasks_per_step": 97}}, "the train pool holds 96 tasks"),
        ({"rl": {"loss": "dppo"}}, "dppo_tv"),
        ({"worlds": {"sft_heldout_worlds": 150}}, "must be smaller than worlds.sft_worlds"),
        ({"worlds": {"max_train_worlds": 2}}, "at least worlds.train_worlds"),
        ({"warm_start": {"worlds": 131}}, "must not exceed"),
        ({"ablation": {"seeds": 1}}, "greater than or equal to 2"),
        ({"engine": {"rwos": 4}}, "Extra inputs are not permitted"),
    ],
)
def test_a_recipe_that_cannot_run_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        QuickstartRecipe.model_validate(change)


def test_the_defaults_are_a_valid_recipe_and_cannot_be_changed_in_place() -> None:
    recipe = QuickstartRecipe()
    assert (recipe.rl.tasks_per_step, recipe.rl.trials_per_task, recipe.rl.loss) == (32, 8, "dppo_tv")
    with pytest.raises(ValidationError, match="frozen"):
        recipe.seed = 3
