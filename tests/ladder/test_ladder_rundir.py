"""The run directory: one recipe, one owner, records that are whole or absent, and clear refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from journeyman.errors import InputError, StorageError
from journeyman.ladder.recipe import QuickstartRecipe
from journeyman.ladder.rundir import RunDirectory

RecipeAt = Callable[..., QuickstartRecipe]


def test_a_finished_stage_is_read_back_and_a_missing_one_is_not_there(tmp_path: Path, recipe_at: RecipeAt) -> None:
    run = RunDirectory(tmp_path / "run", recipe_at(tmp_path / "run"))
    assert run.load("tokens") is None
    assert run.finish("tokens", {"n": 3, "pair": (1, 2)}) == {"n": 3, "pair": [1, 2]}
    run.close()
    again = RunDirectory(tmp_path / "run", recipe_at(tmp_path / "run"))
    assert again.load("tokens") == {"n": 3, "pair": [1, 2]}
    again.close()


def test_another_recipe_is_refused_with_the_fields_that_differ(tmp_path: Path, recipe_at: RecipeAt) -> None:
    RunDirectory(tmp_path / "run", recipe_at(tmp_path / "run", seed=1)).close()
    with pytest.raises(InputError, match=r"another recipe \(differs in seed\)"):
        RunDirectory(tmp_path / "run", recipe_at(tmp_path / "run", seed=2))


def test_the_place_of_a_run_is_not_part_of_its_recipe(tmp_path: Path, recipe_at: RecipeAt) -> None:
    RunDirectory(tmp_path / "run", recipe_at(tmp_path / "run")).close()
    (tmp_path / "run").rename(tmp_path / "moved")
    RunDirectory(tmp_path / "moved", recipe_at(tmp_path / "moved")).close()


def test_a_second_process_is_refused_while_the_first_runs(tmp_path: Path, recipe_at: RecipeAt) -> None:
    run = RunDirectory(tmp_path / "run", recipe_at(tmp_path / "run"))
    with pytest.raises(InputError, match="another process is running here"):
        RunDirectory(tmp_path / "run", recipe_at(tmp_path / "run"))
    run.close()


def test_a_directory_with_other_things_in_it_is_left_alone(tmp_path: Path, recipe_at: RecipeAt) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty and holds no run"):
        RunDirectory(tmp_path, recipe_at(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_in_the_place_of_the_directory_is_named(tmp_path: Path, recipe_at: RecipeAt) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        RunDirectory(tmp_path / "file", recipe_at(tmp_path / "file"))
    with pytest.raises(StorageError, match="cannot be written"):
        RunDirectory(tmp_path / "file" / "run", recipe_at(tmp_path / "file"))


FULL_DISK = """
import sys
from pathlib import Path
from journeyman.errors import StorageError
from journeyman.ladder.recipe import QuickstartRecipe
from journeyman.ladder.rundir import RunDirectory

root = Path(sys.argv[1])
try:
    RunDirectory(root / "run", QuickstartRecipe(out=root / "run"))
except StorageError as error:
    print(error, error.exit_code, sorted(p.name for p in root.rglob("*") if p.is_file()))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a small tmpfs needs root")
def test_a_full_disk_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    script = f"mount -t tmpfs -o size=2m tmpfs '{mount}' && exec '{sys.executable}' -c \"$0\" '{mount}'"
    command = ["unshare", "-m", "sh", "-c", script, FULL_DISK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
    assert done.stdout.strip().endswith("cannot be written: No space left on device 2 []"), done.stderr


def test_a_worker_shares_the_directory_without_its_lock(tmp_path: Path, recipe_at: RecipeAt) -> None:
    recipe = recipe_at(tmp_path / "run")
    owner = RunDirectory(tmp_path / "run", recipe)
    worker = RunDirectory(tmp_path / "run", recipe, owner=False)
    worker.finish("oracles", {"n_tasks": 1})
    assert owner.load("oracles") == {"n_tasks": 1}
    assert json.loads((tmp_path / "run" / "recipe.json").read_text())["sha256"] == owner.recipe_sha256
    owner.close()
