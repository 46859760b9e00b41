"""The sweep of layouts: every combination, ranked, resumed, failures as results."""

from __future__ import annotations

import pytest
from backend_cases import write_model

from journeyman.train.backends.spec import BackendSpec
from journeyman.train.sweep import Grid, SweepRecipe, cells, read_cells, rows_of, sweep, table


@pytest.fixture
def recipe(tmp_path):
    grid = Grid(tp=(1, 2), tokens_per_micro_batch=(64, 256))
    path = write_model(tmp_path / "model")
    return SweepRecipe(model=path, grid=grid, rows=4, tokens=48, steps=1, out=tmp_path / "sweep.jsonl")


def test_every_combination_is_a_cell_and_the_fastest_stands_first(recipe):
    assert len(list(cells(recipe))) == 4
    said = []
    found = sweep(recipe, said.append)
    assert [bool(cell.failed) for cell in found] == [False, False, True, True]
    assert found[0].tokens_per_s >= found[1].tokens_per_s > 0
    assert all("model_parallel" in cell.failed or "tp" in cell.failed for cell in found[2:])
    lines = table(found)
    assert len(lines) == 5
    assert lines[1].rstrip().endswith("1.00")


def test_a_stopped_sweep_goes_on_with_what_it_lacks(recipe):
    first = sweep(recipe, lambda _: None)
    lines = recipe.out.read_text().splitlines(keepends=True)
    recipe.out.write_text("".join(lines[:3]) + lines[3][:20])  # killed within a line
    said = []
    again = sweep(recipe, said.append)
    assert sum("opening" in line for line in said) == 1
    assert {cell.key for cell in again} == {cell.key for cell in first}
    assert len(read_cells(recipe.out)) == 4


def test_another_number_of_tokens_is_another_cell(recipe):
    sweep(recipe, lambda _: None)
    said = []
    sweep(recipe.model_copy(update={"tokens": 64}), said.append)
    assert sum("opening" in line for line in said) == 4


def test_rows_are_as_uneven_as_trials_and_the_longest_is_what_was_asked_for(recipe):
    rows = rows_of(recipe.model_copy(update={"rows": 64, "tokens": 2048}), 61)
    lengths = [len(row.ids) for row in rows]
    assert max(lengths) == 2048
    assert sum(lengths) < 0.6 * 64 * 2048
    assert all((row.mask[0] == 0 and row.mask.any()) or len(row.ids) < 16 for row in rows)
    assert sum(row.advantage for row in rows) == 0


def test_a_grid_without_values_measures_the_back_end_as_it_is(recipe):
    only = list(cells(recipe.model_copy(update={"grid": Grid()})))
    assert only == [("as given", BackendSpec())]
