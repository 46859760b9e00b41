"""The bench refuses a model that is not of the recipe's shape, whichever way it is loaded."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from journeyman.errors import InputError
from journeyman.ladder.bench import Bench
from journeyman.ladder.rundir import RunDirectory
from journeyman.ladder.workshop import Workshop
from journeyman.train.model import ModelShape, build_model, save_model


@pytest.fixture
def bench(prepared: Workshop, tmp_path: Path) -> Iterator[Bench]:
    """A run with a tokenizer and a fresh model, in a directory of its own."""
    root = tmp_path / "run"
    workshop = Workshop(RunDirectory(root, prepared.recipe.model_copy(update={"out": root})))
    shutil.copytree(prepared.run.path("tokenizer"), root / "tokenizer")
    made = Bench(workshop, lambda line: None)
    save_model(build_model(made.shape, 1), made.model_path("fresh"))
    yield made
    workshop.run.close()


USES: dict[str, Callable[[Bench, str], object]] = {
    "to train": lambda bench, role: bench.trainer(role),
    "to act": lambda bench, role: bench.hold(role),
    "to start from": lambda bench, role: bench.load(role),
}


@pytest.mark.parametrize("use", USES)
def test_a_model_of_another_shape_is_refused_with_file_field_and_both_values(bench: Bench, use: str) -> None:
    path = bench.model_path("clean_base")
    save_model(build_model(ModelShape(bench.shape.vocab_size, layers=2), 1), path)
    with pytest.raises(InputError) as caught:
        USES[use](bench, "clean_base")
    assert caught.value.where == f"{path / 'config.json'}:num_hidden_layers"
    assert caught.value.problem == "found 2: a checkpoint of another model shape"
    assert caught.value.allowed == "3"


def test_the_first_engine_refuses_a_model_of_another_shape_too(bench: Bench) -> None:
    save_model(build_model(ModelShape(bench.shape.vocab_size, hidden=64), 1), bench.model_path("fresh"))
    with pytest.raises(InputError, match=r"config\.json:hidden_size: found 64.*allowed: 128"):
        bench.engine


@pytest.mark.parametrize("use", USES)
def test_a_model_of_the_recipes_shape_is_taken(bench: Bench, use: str) -> None:
    USES[use](bench, "fresh")
