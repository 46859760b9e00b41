"""After ``kill -9`` of a running quickstart and the same command again, nothing of the killed one is left anywhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from journeyman.ladder.recipe import QuickstartRecipe
from journeyman.ladder.rundir import RunDirectory
from journeyman.sandbox import hierarchy
from journeyman.sandbox.reaper import reap, traces
from journeyman.sandbox.scratch import make_scratch, scratch

RUN = """
import sys
from pathlib import Path
from journeyman.ladder.quickstart import run
from journeyman.ladder.recipe import QuickstartRecipe
run(QuickstartRecipe.model_validate_json(Path(sys.argv[1]).read_text()))
"""
PATIENCE_S = 60.0


def start(recipe: Path, temporary: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RUN, str(recipe)]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {what}"
        time.sleep(0.02)


def processes_of(root: Path) -> list[int]:
    """Every process whose command line names the run directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(root).encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.thorough
def test_a_killed_run_and_its_worker_leave_nothing_once_the_same_command_runs_again(
    tmp_path: Path, recipe_at: Callable[..., QuickstartRecipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, temporary = tmp_path / "run", tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    (tmp_path / "recipe.json").write_text(recipe_at(root, seed=9).model_dump_json())
    run = RunDirectory(root, recipe_at(root, seed=9), owner=False)
    mounts = len(Path("/proc/self/mounts").read_text().splitlines())

    first = start(tmp_path / "recipe.json", temporary)
    wait_until(lambda: len(processes_of(root)) > 0 and is_sandbox_alive(run.label), "the worker's first sandbox")
    killed = processes_of(root)
    first.kill()
    first.communicate()
    wait_until(lambda: not processes_of(root), "the worker dies with its parent")
    (root / ".staging-1" / "tasks").mkdir(parents=True)  # what a kill in the middle of publishing leaves
    (root / "state" / ".tasks.json.1.tmp").write_text("{")

    second = start(tmp_path / "recipe.json", temporary)
    assert second.stderr is not None
    said = second.stderr.readline()
    while "step 1 environment" not in said:
        said = second.stderr.readline()
    orphans = [name for name, trace in traces(run.label).items() if trace.identity.is_orphan]
    assert orphans == []
    assert not [pid for pid in killed if pid in processes_of(root)]
    assert not (root / ".staging-1").exists()
    assert list((root / "state").glob(".*")) == []

    second.send_signal(signal.SIGINT)
    second.communicate(timeout=PATIENCE_S)
    assert processes_of(root) == []
    assert traces(run.label) == {}
    assert [path.name for path in temporary.iterdir() if not path.name.startswith("torchinductor")] == []
    assert len(Path("/proc/self/mounts").read_text().splitlines()) == mounts
    assert not any(name.startswith(run.label) for name in hierarchy.named_groups())


def is_sandbox_alive(label: str) -> bool:
    return any(trace.outermost for trace in traces(label).values())


def test_a_scratch_directory_of_a_killed_owner_is_removed_by_reap_and_by_the_next_of_its_label(tmp_path: Path) -> None:
    label = f"test-scratch-{os.getpid()}"
    program = "import os, sys\nfrom journeyman.sandbox.scratch import make_scratch\n"
    program += "print(make_scratch(sys.argv[1]), flush=True)\nos.kill(os.getpid(), 9)"
    left = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program, label], capture_output=True, text=True, timeout=60, check=False
        )
        left.append(Path(done.stdout.strip()))
        assert left[-1].is_dir()
    assert not left[0].exists()  # the second of its label removed it
    with scratch(label) as mine:
        assert not left[1].exists()
        assert mine.is_dir()
        assert reap(label) == []  # its owner lives
    assert not mine.exists()
    again = make_scratch(label)
    assert list(traces(label)) == [again.name.partition("~")[2]]
    again.rmdir()
    assert traces(label) == {}
