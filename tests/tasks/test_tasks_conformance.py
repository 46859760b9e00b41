"""Harbor itself says whether our formats are its own, and each side runs a task of the other (`make test-harbor`)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from task_directories import draft

from journeyman.sandbox.bwrap_binary import find_bwrap
from journeyman.sandbox.environment import build_environment
from journeyman.sandbox.protocol import AgentEnvironment, Provider
from journeyman.tasks.atif import parse_atif
from journeyman.tasks.imports.directory import JudgedTask, write_judged
from journeyman.tasks.oracle import prove
from journeyman.tasks.results.jobs import read_trial
from journeyman.tasks.rewrite import rewrite_task
from journeyman.tasks.rubric import Criterion, Rubric
from journeyman.tasks.steps import load_steps
from journeyman.tasks.task import load_task, write_task
from journeyman.tokens.context import Context
from journeyman.tools.agent_environment import AGENT_DISTRIBUTIONS, AGENT_PACKAGES, AGENT_PROGRAMS
from journeyman.trials.store import HotTrial
from journeyman.trials.store.columns import calls_of
from journeyman.trials.store.export import export_run
from journeyman.worlds.mini.build import build_tasks

ROOT = Path(__file__).resolve().parents[2]
SIDE = Path(__file__).with_name("harbor_side.py")
Ask = Callable[..., Any]


@pytest.fixture(scope="session")
def harbor() -> Ask:
    """Ask Harbor something, in its own Python; the answer as data."""
    python = Path(os.environ.get("JOURNEYMAN_HARBOR_PYTHON", ROOT / ".venv-harbor" / "bin" / "python"))
    if not python.is_file():
        pytest.skip("no Harbor here: `make test-harbor` makes .venv-harbor, where there is a Python 3.12")
    env = {"PATH": os.environ["PATH"], "HARBOR_TELEMETRY": "off", "PYTHONPATH": str(SIDE.parent), "HOME": "/tmp"}

    def ask(command: str, *arguments: object) -> Any:
        words = [str(python), str(SIDE), command, *map(str, arguments)]
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout.splitlines()[-1])

    return ask


@pytest.fixture(scope="session")
def agent(tmp_path_factory: pytest.TempPathFactory) -> AgentEnvironment:
    """What our tasks' Dockerfile puts at /opt/agent."""
    return build_environment(
        tmp_path_factory.mktemp("agent"),
        distributions=AGENT_DISTRIBUTIONS,
        packages=AGENT_PACKAGES,
        programs=AGENT_PROGRAMS,
    )


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Tasks as `journeyman worlds build` writes them."""
    return build_tasks(3, "train", 1, 2, tmp_path_factory.mktemp("worlds"))


@pytest.fixture(scope="session")
def bwrap() -> Path:
    program = find_bwrap()
    if program is None:
        pytest.skip("no bubblewrap here")
    return program.path


def test_harbor_reads_our_tasks_and_a_rewritten_one_as_we_do(harbor: Ask, ours: list[Path], tmp_path: Path):
    print(harbor("version"))
    stepped = tmp_path / "stepped"
    harbor("template", stepped)
    for name in ("one", "two"):
        (stepped / "steps" / name).mkdir(parents=True)
        (stepped / "steps" / name / "instruction.md").write_text(f"do {name}\n")
    steps = [{"name": "one", "min_reward": 0.5}, {"name": "two", "artifacts": ["/app/x"]}]
    changes = {
        "steps": steps,
        "multi_step_reward_strategy": "final",
        "artifacts": ["/app/out", {"source": "/app/log", "destination": "log", "exclude": ["*.tmp"]}],
        "environment": {"mcp_servers": [{"name": "c", "transport": "stdio", "command": "c", "args": ["x"]}]},
    }
    copy = tmp_path / "copy"
    rewrite_task(write_task(draft(is_own=False), tmp_path / "plain"), copy, {"agent": {"timeout_sec": 7}})
    toml = (stepped / "task.toml").read_text()
    (stepped / "task.toml").write_text(f'{toml}\n[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n')
    rewrite_task(stepped, stepped, changes)
    paths = [*ours, copy, stepped]
    found = harbor("tasks", *paths)
    assert all(found[str(path)]["is_valid"] for path in paths)
    for path in [*ours, copy]:
        task, theirs = load_task(path), found[str(path)]["config"]
        assert theirs["verifier"]["timeout_sec"] == task.verifier_timeout_s
        assert theirs["agent"]["timeout_sec"] == task.agent_timeout_s
        assert theirs["environment"]["network_mode"] == task.config.environment.network_mode
        assert theirs["metadata"] == task.metadata
    config, theirs = load_steps(stepped).config, found[str(stepped)]["config"]
    assert [step["min_reward"] for step in theirs["steps"]] == [step.min_reward for step in config.steps] == [0.5, None]
    assert theirs["artifacts"][1]["exclude"] == list(config.artifacts[1].exclude)
    assert theirs["environment"]["mcp_servers"][0]["args"] == list(config.environment.mcp_servers[0].args)


def _run_of_one(root: Path) -> Path:
    """A run with one trial of two turns, an observation between them, and two weight versions."""
    context = Context()
    context.append_prompt([1, 2])
    context.append_sampled([3, 4], [-0.5, -0.25], [0, 1])
    context.append_observation([5])
    context.append_sampled([6], [-0.125], 1)
    turn = {
        "calls": [{"tool": "calc", "arguments": {"expr": "1"}, "status": "ok"}],
        "observation": "2",
        "malformed": [],
    }
    with HotTrial(root, "look/1/0", durable=False) as hot:
        for call in calls_of(context.arrays()):
            hot.append_call(call)
        hot.close({"task_id": "look", "harness": "react", "reward": 1.0, "turns": [turn, {}], "instruction": "add"})
    return root


def test_harbor_accepts_our_trajectories_and_results_and_gives_them_back_unchanged(harbor: Ask, tmp_path: Path):
    run = _run_of_one(tmp_path / "run")
    export_run(run, "atif", tmp_path / "atif")
    export_run(run, "harbor", tmp_path / "jobs" / "run")
    (document,) = (tmp_path / "atif").iterdir()
    assert harbor("atif", document)[str(document)] == json.loads(document.read_text())
    (result,) = (tmp_path / "jobs" / "run").glob("*/result.json")
    theirs = harbor("results", result)[str(result)]
    assert (theirs["verifier_result"], theirs["reward_valid"]) == ({"rewards": {"reward": 1.0}}, True)
    assert theirs["agent_result"]["rollout_details"][0]["completion_token_ids"] == [[3, 4], [6]]


def test_both_sides_accept_and_refuse_the_same_trajectories(harbor: Ask, tmp_path: Path):
    export_run(_run_of_one(tmp_path / "run"), "atif", tmp_path / "atif")
    (good,) = (tmp_path / "atif").iterdir()
    changes: list[Callable[[dict[str, Any]], object]] = [
        lambda d: d,
        lambda d: d.update(reward=1),
        lambda d: d["steps"][1].update(step_id=9),
        lambda d: d["steps"][0].update(reasoning_content="x"),
        lambda d: d["steps"][1]["tool_calls"][0].update(arguments="x"),
        lambda d: d["steps"][1]["observation"]["results"][0].update(source_call_id="x"),
        lambda d: d["steps"][1].update(llm_call_count=0),
        lambda d: d["steps"][1].update(timestamp="soon"),
        lambda d: d["steps"][1].update(timestamp="2026-11-29T10:00:00Z"),
        lambda d: d.update(schema_version="ATIF-v1.9"),
        lambda d: d.update(schema_version="ATIF-v1.2"),
        lambda d: d["steps"][0].update(message=[{"type": "image", "source": {"media_type": "image/png", "path": "a"}}]),
        lambda d: d["steps"][0].update(message=[{"type": "audio", "source": {"media_type": "audio/mp3", "path": "a"}}]),
        lambda d: d["steps"][0].update(message=[{"type": "audio", "source": {"media_type": "image/png", "path": "a"}}]),
        lambda d: d.update(subagent_trajectories=[{k: v for k, v in d.items() if k != "trajectory_id"}]),
        lambda d: d["final_metrics"].update(total_steps=-1),
    ]
    paths = []
    for number, change in enumerate(changes):
        value = json.loads(good.read_text())
        change(value)
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(value))
    theirs = harbor("atif_accepts", *paths)

    def ours(path: Path) -> bool:
        try:
            parse_atif(path.read_bytes(), path.name)
        except ValueError:
            return False
        except Exception as error:
            assert type(error).__name__ == "InputError"
            return False
        return True

    assert {path.name: ours(path) for path in paths} == {path.name: theirs[str(path)] for path in paths}
    assert 4 <= sum(theirs.values()) < len(paths)


def test_one_of_our_tasks_is_solved_under_harbor_and_a_wrong_truth_is_not(
    harbor: Ask, ours: list[Path], bwrap: Path, agent: AgentEnvironment, tmp_path: Path
):
    found = harbor("run", ours[0], tmp_path / "trials", bwrap, agent.path)
    assert found["exception_info"] is None
    assert (found["verifier_result"]["rewards"], found["reward_valid"]) == ({"reward": 1.0}, True)
    trial = read_trial(tmp_path / "trials" / found["trial_name"])
    assert trial.rewards == {"reward": 1.0}
    assert trial.warnings == ()
    assert {entry.source: entry.status for entry in trial.manifest}["/logs/artifacts"] == "ok"
    wrong = tmp_path / "wrong"
    shutil.copytree(ours[0], wrong)
    truth = json.loads((wrong / "tests" / "truth.json").read_text())
    (wrong / "tests" / "truth.json").write_text(json.dumps({**truth, "answer": "no such answer"}))
    assert harbor("run", wrong, tmp_path / "trials", bwrap, agent.path)["verifier_result"]["rewards"] == {"reward": 0.0}


def test_a_task_for_a_judge_has_no_reward_under_harbor(
    harbor: Ask, bwrap: Path, agent: AgentEnvironment, tmp_path: Path
):
    rubric = Rubric(criteria=(Criterion(id="a", criterion="it is so"),))
    path = write_judged(JudgedTask("judged", "Do it.", "f", "w", (), rubric, {}), tmp_path / "tasks")
    (path / "solution").mkdir()
    (path / "solution" / "solve.sh").write_text("#!/bin/sh\ntrue\n")
    found = harbor("run", path, tmp_path / "trials", bwrap, agent.path)
    assert found["exception_info"]["exception_type"] == "RewardFileNotFoundError"
    assert (found["verifier_result"], found["reward_valid"]) == (None, False)


def test_a_task_of_harbor_is_solved_here_and_not_by_a_wrong_solution(
    harbor: Ask, provider: Provider, environment: AgentEnvironment, bwrap: Path, tmp_path: Path
):
    theirs = tmp_path / "hello"
    harbor("template", theirs)
    task = load_task(theirs)
    assert (task.instruction, task.needs_exit_zero, task.config.verifier_mode()) == (
        "Write 'Hello, world!' to hello.txt.\n",
        False,
        "shared",
    )
    proof = prove(task, provider, environment)
    assert (proof.verdict.kind, proof.verdict.reward, proof.exit_codes) == ("scored", 1.0, (0,))
    assert harbor("run", theirs, tmp_path / "trials", bwrap)["verifier_result"]["rewards"] == {"reward": 1.0}
    (theirs / "solution" / "solve.sh").write_text("#!/bin/sh\necho hello > hello.txt\n")
    assert prove(load_task(theirs), provider, environment).verdict.reward == 0.0


BAD_TESTS = {
    # test.sh -> Harbor's rewards and exception, our verdict and reward for a task that is imported
    "true": (None, "RewardFileNotFoundError", "RewardFileMissing", None),
    "echo 1 > /logs/verifier/reward.txt; exit 3": ({"reward": 1.0}, None, None, 1.0),
    "echo nan > /logs/verifier/reward.txt": (None, "VerifierOutputParseError", "RewardInvalid", None),
    ": > /logs/verifier/reward.txt": (None, "RewardFileEmptyError", "RewardFileEmpty", None),
    "echo '{\"reward\": true}' > /logs/verifier/reward.json": ({"reward": 1.0}, None, "RewardInvalid", None),
    "echo '{\"reward\": 7.5}' > /logs/verifier/reward.json": ({"reward": 7.5}, None, "RewardInvalid", None),
    "sleep 100": (None, "VerifierTimeoutError", "VerifierTimeout", None),
}


@pytest.mark.parametrize("script", BAD_TESTS)
def test_what_a_bad_test_script_gives_on_either_side(
    harbor: Ask, provider: Provider, environment: AgentEnvironment, bwrap: Path, tmp_path: Path, script: str
):
    rewards, exception, error, reward = BAD_TESTS[script]
    bad = tmp_path / "bad"
    harbor("template", bad)
    plant = "#!/bin/sh\necho 1 > /logs/verifier/reward.txt || true\n"
    files = {"tests/test.sh": f"#!/bin/sh\n{script}\n".encode(), "solution/solve.sh": plant.encode()}
    rewrite_task(bad, bad, {"verifier": {"timeout_sec": 4}}, files)
    found = harbor("run", bad, tmp_path / "trials", bwrap)
    assert (found["verifier_result"] or {}).get("rewards") == rewards
    assert (found["exception_info"] or {}).get("exception_type") == exception
    verdict = prove(load_task(bad), provider, environment).verdict
    assert (verdict.error, verdict.reward) == (error, reward)
    own = {"family": "f", "world_id": "w", "split": "s", "world_digest": "0", "deliverables": ["a/"]}
    if "exit 3" in script:
        rewrite_task(
            bad,
            bad,
            {"metadata": {"journeyman": own}},
            {"solution/solve.sh": b"mkdir -p /logs/artifacts/a; echo x > /logs/artifacts/a/x"},
        )
        assert prove(load_task(bad), provider, environment).verdict.error == "VerifierCrashed"


def test_a_task_of_two_steps_gives_the_same_reward_on_either_side(
    harbor: Ask, provider: Provider, environment: AgentEnvironment, bwrap: Path, tmp_path: Path
):
    root = tmp_path / "two"
    harbor("template", root)
    toml = (root / "task.toml").read_text()
    (root / "task.toml").write_text(f'{toml}\n[[steps]]\nname = "one"\nmin_reward = 0.5\n[[steps]]\nname = "two"\n')
    for name, solve, reward in (("one", "echo 1 > one.txt", "1"), ("two", "cat one.txt given.txt > two.txt", "0.5")):
        files = {
            "instruction.md": f"do {name}\n",
            "solution/solve.sh": f"#!/bin/sh\n{solve}\n",
            "tests/test.sh": f"#!/bin/sh\ntest -s /app/{name}.txt && echo {reward} > /logs/verifier/reward.txt\n",
            "workdir/given.txt": "g\n",
        }
        for path, text in files.items():
            (root / "steps" / name / path).parent.mkdir(parents=True, exist_ok=True)
            (root / "steps" / name / path).write_text(text)
    found = harbor("run", root, tmp_path / "trials", bwrap)
    proof = prove(load_steps(root), provider, environment)
    assert [step.reward for step in proof.steps] == [1.0, 0.5]
    assert [step["verifier_result"]["rewards"] for step in found["step_results"]] == [{"reward": 1.0}, {"reward": 0.5}]
    assert found["verifier_result"]["rewards"] == {"reward": proof.verdict.reward} == {"reward": 0.75}
    trial = read_trial(tmp_path / "trials" / found["trial_name"])
    assert [step.step_name for step in trial.result.step_results or ()] == ["one", "two"]
