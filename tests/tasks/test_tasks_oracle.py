"""Solutions of single and stepped tasks run here: what is carried over to the verifier, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from journeyman.errors import InputError
from journeyman.sandbox.protocol import AgentEnvironment, Provider
from journeyman.tasks.image import image_of, lay_out
from journeyman.tasks.oracle import prove
from journeyman.tasks.steps import load_any
from journeyman.tasks.task import load_task


def task_at(root: Path, files: dict[str, str]) -> Path:
    plain = {"task.toml": 'schema_version = "1.4"\n', "instruction.md": "do it\n", "tests/test.sh": "true\n"}
    for name, text in {**plain, "solution/solve.sh": "true\n", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


SHARED = {
    "environment/Dockerfile": "FROM debian\nRUN apt-get install x\nWORKDIR /app\nCOPY data/ data/\nCOPY one.txt .\n",
    "environment/data/a.txt": "a\n",
    "environment/one.txt": "1\n",
    "solution/solve.sh": "cat data/a.txt one.txt > out.txt; mkdir -p /logs/artifacts/d; echo x > /logs/artifacts/d/f\n",
}


def test_a_shared_verifier_sees_the_working_directory_and_no_process_of_the_agent(
    tmp_path: Path, provider: Provider, environment: AgentEnvironment
):
    solve = SHARED["solution/solve.sh"] + "(while true; do echo 1 > /logs/verifier/reward.txt; done) &\nsleep 0.2\n"
    test = '[ "$(cat out.txt)" = "a\n1" ] && [ -f /logs/artifacts/d/f ] && echo 0.5 > /logs/verifier/reward.txt\n'
    task = load_task(task_at(tmp_path / "t", {**SHARED, "solution/solve.sh": solve, "tests/test.sh": test}))
    proof = prove(task, provider, environment)
    assert (proof.verdict.kind, proof.verdict.reward) == ("scored", 0.5)
    assert proof.missing == ("RUN apt-get install x",)
    assert [(entry.source, entry.status) for entry in proof.manifest] == [("/logs/artifacts", "ok")]


def test_a_separate_verifier_sees_the_declared_artifacts_alone(
    tmp_path: Path, provider: Provider, environment: AgentEnvironment
):
    toml = (
        'artifacts = ["/app/kept", "/logs/artifacts/x", {source = "/app/absent", destination = "gone"}]\n'
        '[verifier]\nenvironment_mode = "separate"\n[environment]\nworkdir = "/app"\n'
    )
    solve = "mkdir kept other; echo k > kept/k; ln -s /etc/passwd kept/link; echo o > other/o\n"
    test = (
        "[ -f /app/kept/k ] && [ ! -e /app/other ] && [ ! -e /app/kept/link ] && echo 1 > /logs/verifier/reward.txt\n"
    )
    files = {"task.toml": toml, "solution/solve.sh": solve, "tests/test.sh": test}
    proof = prove(load_task(task_at(tmp_path / "t", files)), provider, environment)
    assert (proof.verdict.kind, proof.verdict.reward) == ("scored", 1.0)
    statuses = {entry.source: entry.status for entry in proof.manifest}
    assert statuses == {
        "/logs/artifacts": "empty",
        "/app/kept": "ok",
        "/logs/artifacts/x": "skipped",  # Harbor's word for what an earlier entry covers
        "/app/absent": "failed",
    }


STEPPED = {
    "task.toml": '[environment]\nworkdir = "/app"\n'
    '[[steps]]\nname = "one"\nmin_reward = 0.5\n[[steps]]\nname = "two"\n',
    "tests/shared.sh": "echo $1 > /logs/verifier/reward.txt\n",
    "steps/one/instruction.md": "one\n",
    "steps/one/solution/solve.sh": "echo 1 > one.txt\n",
    "steps/one/tests/test.sh": "[ -f one.txt ] && sh /tests/shared.sh 1\n",
    "steps/two/instruction.md": "two\n",
    "steps/two/workdir/given.txt": "g\n",
    "steps/two/solution/solve.sh": "cat one.txt given.txt > two.txt\n",
    "steps/two/tests/test.sh": "[ -s two.txt ] && sh /tests/shared.sh 0.5\n",
}


def test_steps_share_their_directory_and_the_whole_is_their_mean(
    tmp_path: Path, provider: Provider, environment: AgentEnvironment
):
    proof = prove(load_any(task_at(tmp_path / "t", STEPPED)), provider, environment)
    assert [verdict.reward for verdict in proof.steps] == [1.0, 0.5]
    assert (proof.verdict.reward, proof.stopped) == (0.75, None)


def test_a_step_below_its_threshold_ends_the_task(tmp_path: Path, provider: Provider, environment: AgentEnvironment):
    files = {**STEPPED, "steps/one/tests/test.sh": "sh /tests/shared.sh 0.25\n"}
    proof = prove(load_any(task_at(tmp_path / "t", files)), provider, environment)
    assert len(proof.steps) == 1
    assert proof.stopped == "reward is 0.25, below min_reward 0.5"
    assert proof.verdict.reward == 0.25


def test_an_image_that_copies_from_outside_or_over_the_system_is_refused(tmp_path: Path):
    outside = task_at(tmp_path / "a", {"environment/Dockerfile": "COPY ../tests /app/\n"})
    with pytest.raises(InputError, match="leaves environment"):
        image_of(load_task(outside))
    system = task_at(tmp_path / "b", {"environment/Dockerfile": "COPY x /usr/\n", "environment/x": "x"})
    with pytest.raises(InputError, match="cannot be given"):
        lay_out(image_of(load_task(system)), tmp_path / "room")


def test_a_task_without_a_solution_cannot_be_proved(tmp_path: Path, provider: Provider, environment: AgentEnvironment):
    path = task_at(tmp_path / "t", {})
    (path / "solution" / "solve.sh").unlink()
    with pytest.raises(InputError, match="no solution"):
        prove(load_task(path), provider, environment)
