"""What a user can get wrong, through the real command line: exit code 2, one clear message, nothing half-written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from journeyman.ladder import prepare
from journeyman.ladder.bench import Bench
from journeyman.ladder.pretrain import base_sft
from journeyman.ladder.recipe import QuickstartRecipe
from journeyman.ladder.rundir import RunDirectory
from journeyman.ladder.workshop import Workshop
from journeyman.train.model import ModelShape, build_model, save_model

RecipeAt = Callable[..., QuickstartRecipe]
JOURNEYMAN = [sys.executable, "-m", "journeyman.cli.main"]
Done = subprocess.CompletedProcess[str]


def journeyman(*words: str, cwd: Path) -> Done:
    """Run a command line whose working directory takes whatever it might write by mistake."""
    return subprocess.run([*JOURNEYMAN, *words], cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def refused(done: Done, *words: str) -> None:
    """Exit code 2, every word in the message, no traceback, nothing on stdout."""
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def contents(root: Path) -> dict[str, bytes | None]:
    return {p.relative_to(root).as_posix(): p.read_bytes() if p.is_file() else None for p in root.rglob("*")}


def as_toml(recipe: Mapping[str, Any]) -> str:
    """The plain values of a recipe, then its tables."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in recipe.items() if not isinstance(value, dict)]
    for name, table in recipe.items():
        if isinstance(table, dict):
            lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


@pytest.fixture
def run_words(tmp_path: Path, recipe_at: RecipeAt) -> tuple[RunDirectory, list[str]]:
    """A new run of the small recipe, closed, and the words that continue it."""
    recipe = recipe_at(tmp_path / "run")
    (tmp_path / "small.toml").write_text(as_toml(recipe.model_dump(mode="json", exclude={"out"}, exclude_unset=True)))
    run = RunDirectory(tmp_path / "run", recipe)
    run.close()
    return run, ["quickstart", "--out", str(run.root), "@", str(tmp_path / "small.toml")]


def test_an_unknown_recipe_key_is_named_with_its_place_and_the_nearest_match(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text("[rl]\ntrials_per_taks = 8\n")
    before = contents(tmp_path)
    done = journeyman("quickstart", "@", "recipe.toml", cwd=tmp_path)
    refused(done, "rl.trials_per_taks", "recipe.toml:2", "Did you mean rl.trials_per_task?")
    assert contents(tmp_path) == before


def test_a_negative_trial_count_is_refused_with_what_is_allowed(tmp_path: Path) -> None:
    done = journeyman("quickstart", "--rl.trials-per-task", "-8", cwd=tmp_path)
    refused(done, "--rl.trials-per-task", "got -8; expected an integer >= 2")
    assert contents(tmp_path) == {}


def test_a_task_directory_without_verifier_is_named(tmp_path: Path) -> None:
    made = journeyman("worlds", "build", "--worlds", "1", "--tasks-per-world", "1", "--out", "w", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    (task,) = (tmp_path / "w" / "tasks" / "train").iterdir()
    (task / "tests" / "test.sh").unlink()
    before = contents(tmp_path)
    above = journeyman("tasks", "check", "w/tasks", "--json", cwd=tmp_path)
    assert list(json.loads(above.stdout)["problems"]) == [str(task.relative_to(tmp_path))]
    done = journeyman("tasks", "check", str(task), "--json", cwd=tmp_path)
    assert done.returncode == 2
    assert str(task) in done.stderr
    assert "tests/test.sh" in done.stderr
    assert "no verifier" in done.stderr
    assert list(json.loads(done.stdout)["problems"]) == [str(task)]
    assert contents(tmp_path) == before


def test_a_corrupt_xlsx_in_a_world_is_named_with_what_is_wrong(tmp_path: Path) -> None:
    assert journeyman("worlds", "build", "--worlds", "1", "--out", "w", cwd=tmp_path).returncode == 0
    path = next((tmp_path / "w").glob("tasks/train/*/environment/world/*.xlsx"))
    path.write_bytes(path.read_bytes()[:500])  # the same file under every name it has
    done = journeyman("worlds", "check", "w", cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"/environment/world/{path.name}: damaged xlsx: File is not a zip file" in line


def test_a_world_file_that_was_corrupted_between_two_runs_is_named_and_nothing_is_done(
    tmp_path: Path, run_words: tuple[RunDirectory, list[str]]
) -> None:
    run, words = run_words
    workshop = Workshop(run)
    prepare.make_tasks(workshop)
    path = next(workshop.tasks("dev")[0].world.glob("*.xlsx"))
    path.write_bytes(b"PK" + path.read_bytes()[2:-9])
    before = contents(run.root)
    done = journeyman(*words, cwd=tmp_path)
    refused(done, f"{path}: damaged xlsx", "nothing was done")
    after = contents(run.root)
    assert {name for name in before if before[name] != after.get(name)} == set()
    assert after.keys() - before.keys() <= {"environment"}


@pytest.mark.skipif(os.getuid() == 0, reason="root can read everything")
def test_an_out_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    try:
        for out in (closed, closed / "run"):
            done = journeyman("quickstart", "--out", str(out), cwd=tmp_path)
            refused(done, f"{out}: cannot be", "Permission denied")
    finally:
        closed.chmod(0o755)
    assert list(closed.iterdir()) == []


def test_an_out_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    done = journeyman("quickstart", "--out", str(tmp_path / "file" / "run"), cwd=tmp_path)
    refused(done, str(tmp_path / "file" / "run"), "cannot be written", "Not a directory")
    assert contents(tmp_path) == {"file": b"mine"}


def in_mount_namespace(script: str, *words: str, timeout_s: float = 120) -> Done:
    """Run a shell script that may mount things nobody else sees; skips where that is not possible."""
    if os.getuid() != 0:
        pytest.skip("mounting needs root")
    command = ["unshare", "-m", "sh", "-euc", script, "sh", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except FileNotFoundError:
        pytest.skip("no unshare here")
    if done.stderr.startswith(("unshare:", "mount:")):
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
    return done


def test_an_out_on_a_read_only_mount_is_refused(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    script = 'mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"; shift; exec "$@"'
    out = tmp_path / "place" / "run"
    done = in_mount_namespace(script, str(tmp_path / "place"), *JOURNEYMAN, "quickstart", "--out", str(out))
    refused(done, str(out), "cannot be written", "Read-only file system")
    assert contents(tmp_path) == {"place": None}


def test_a_full_disk_is_refused_at_the_start(tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o size=2m tmpfs "$1"; place=$1; shift; "$@" || code=$?; ls -A "$place"; exit $code'
    done = in_mount_namespace(script, str(tmp_path), *JOURNEYMAN, "quickstart", "--out", str(tmp_path / "run"))
    refused(done, str(tmp_path / "run"), "cannot be written", "No space left on device")


@pytest.mark.thorough
def test_a_disk_that_is_too_small_for_the_run_is_told_when_it_is_full(
    tmp_path: Path, run_words: tuple[RunDirectory, list[str]]
) -> None:
    _, words = run_words
    (tmp_path / "disk").mkdir()
    words[2] = str(tmp_path / "disk" / "run")
    script = (
        'mount -t tmpfs -o size=20m tmpfs "$1"; place=$1; shift; "$@" || code=$?; ls -A "$place/run" >&2; exit $code'
    )
    done = in_mount_namespace(script, str(tmp_path / "disk"), *JOURNEYMAN, *words)
    refused(done, "No space left on device", "the run continues from its last complete step")
    left = done.stderr.splitlines()
    assert "recipe.json" in left
    assert not [line for line in left if line.endswith(".tmp")]


FILL = """
import subprocess, sys, time
from pathlib import Path

place, stage, *command = sys.argv[1:]
run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
while not Path(place, "run", "state", stage).exists() and run.poll() is None:
    time.sleep(0.1)
with open(Path(place, "filler"), "wb", buffering=0) as filler:
    for size in (1 << 20, 1 << 12, 1):
        try:
            while True:
                filler.write(bytes(size))
        except OSError:
            pass
_, said = run.communicate()
sys.stderr.write(said)
half = [p for p in Path(place, "run").rglob("*.tmp") if p.name != "filler"]
sys.stderr.write(f"half-written: {half}")
sys.exit(run.returncode)
"""


@pytest.mark.slow
def test_a_disk_that_fills_up_while_a_model_is_trained_ends_the_run_with_2(
    tmp_path: Path, run_words: tuple[RunDirectory, list[str]]
) -> None:
    _, words = run_words
    (tmp_path / "disk").mkdir()
    words[2] = str(tmp_path / "disk" / "run")
    script = 'mount -t tmpfs -o size=300m tmpfs "$1"; python=$2; fill=$3; shift 3; exec "$python" -c "$fill" "$@"'
    place = str(tmp_path / "disk")
    done = in_mount_namespace(script, place, sys.executable, FILL, place, "fresh.json", *JOURNEYMAN, *words)
    refused(done, "No space left on device", "the run continues from its last complete step", "half-written: []")


@pytest.mark.thorough
def test_a_model_of_another_shape_is_refused_with_file_field_and_both_values(
    tmp_path: Path, run_words: tuple[RunDirectory, list[str]], prepared: Workshop
) -> None:
    run, words = run_words
    vocab_size = take_over(run, prepared)
    run.finish("fresh", {"parameters": 1})
    run.finish("base-sft", {"final_loss": 0.001})
    save_model(build_model(ModelShape(vocab_size), 1), run.path("models", "fresh"))
    save_model(build_model(ModelShape(vocab_size, layers=2), 1), run.path("models", "clean_base"))
    file = run.path("models", "clean_base", "config.json")
    done = journeyman(*words, cwd=tmp_path)
    refused(done, f"{file}:num_hidden_layers: found 2: a checkpoint of another model shape; allowed: 3")


@pytest.mark.thorough
def test_a_checkpoint_of_another_shape_is_refused_with_file_field_and_both_values(
    tmp_path: Path, prepared: Workshop
) -> None:
    settings = prepared.recipe.model_dump(mode="json", exclude={"out"}, exclude_unset=True)
    settings["sft"] = {"max_steps": 1, "warmup_steps": 0, "heldout_traces": 2}
    two, three = ({**settings, "model": {"layers": layers}} for layers in (2, 3))
    run = RunDirectory(tmp_path / "run", QuickstartRecipe.model_validate({**two, "out": tmp_path / "run"}))
    take_over(run, prepared)
    bench = Bench(Workshop(run), lambda line: None)
    prepare.fill_demonstration_reads(bench.workshop)
    base_sft(bench)
    run.path("state", "base-sft.json").unlink()
    stored = json.loads(run.path("recipe.json").read_text())
    stored["recipe"]["model"]["layers"] = 3
    run.path("recipe.json").write_text(json.dumps(stored))
    run.close()
    (tmp_path / "other.toml").write_text(as_toml(three))
    file = sorted(run.path("base-sft").glob("*/config.json"))[-1]
    done = journeyman("quickstart", "--out", str(run.root), "@", "other.toml", cwd=tmp_path)
    refused(done, f"{file}:num_hidden_layers: found 2: a checkpoint of another model shape; allowed: 3")


def take_over(run: RunDirectory, prepared: Workshop) -> int:
    """Tasks, read documents, agent environment and tokenizer of the same seed; returns the size of the vocabulary."""
    for name in ("tasks", "worlds", "environment", "cache", "tokenizer"):
        shutil.copytree(prepared.run.path(name), run.path(name), symlinks=True)
    for stage in ("tasks", "tokenizer"):
        run.finish(stage, prepared.run.load(stage) or {})
    run.finish("oracles", {"n_tasks": 1})
    return int((run.load("tokenizer") or {})["vocab_size"])


def test_the_words_above_are_refused_for_what_they_say_and_not_for_the_recipe(
    run_words: tuple[RunDirectory, list[str]], recipe_at: RecipeAt
) -> None:
    run, words = run_words
    done = subprocess.run(
        [*JOURNEYMAN, "config", "show", *words[3:], "--json"], capture_output=True, text=True, check=True, timeout=60
    )
    shown = json.loads(done.stdout)["recipe"]
    assert {k: v for k, v in shown.items() if k != "out"} == recipe_at(run.root).model_dump(
        mode="json", exclude={"out"}
    )
