"""What a policy is offered besides its harness's tools: a real tool server, and faults that show in the record."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_model import make_tokenizer, renderer_in

from journeyman.cli.main import main
from journeyman.engines.scripted import ScriptedEngine
from journeyman.errors import InputError
from journeyman.harness import SPECS, Budget
from journeyman.ladder.workshop import Workshop
from journeyman.tasks.task import Task, TaskDraft, load_task, write_task
from journeyman.tokens.renderers import Demonstration, Renderer, ToolUse
from journeyman.trials.executors import EXECUTORS
from journeyman.trials.executors.workplaces import task_place
from journeyman.trials.limits import Limits
from journeyman.trials.offer import Offer
from journeyman.trials.record import TrialRequest
from journeyman.trials.store import Owner, open_run

pytest.importorskip("mcp")
SERVER = str(Path(__file__).with_name("mcp_word_server.py"))
SPEC = replace(SPECS["code"], budget=Budget(context_tokens=40_000, max_new_tokens=500, max_turns=9))
RULES = {"error_type": "server_error", "tool": "word", "probability": 1.0, "max_occurrences": 1, "message": "not now"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration that takes the server's word from the environment."""
    path = tmp_path / "servers.json"
    server = {"command": sys.executable, "args": [SERVER], "env": {"WORD": "${THE_WORD:-rhubarb}"}}
    path.write_text(json.dumps({"mcpServers": {"words": server}}))
    return path


@pytest.fixture
def faults(tmp_path: Path) -> Path:
    path = tmp_path / "faults.json"
    path.write_text(json.dumps({"seed": 3, "error_rules": [RULES]}))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model's tokenizer and chat format; its weights are never asked for here."""
    directory = tmp_path_factory.mktemp("model")
    make_tokenizer(directory)
    return directory


@pytest.fixture(scope="module")
def renderer(model: Path) -> Renderer:
    return renderer_in(model)


def turns_of(renderer: Renderer) -> list[list[int]]:
    """Asks the server twice, writes with the harness's own tool, and answers."""
    calls = (ToolUse("word", {}), ToolUse("word", {}), ToolUse("bash", {"command": "cat /ws/*", "description": "look"}))
    turns = [list(renderer.demonstrate(Demonstration(calls=(call,)))) for call in calls]
    return [*turns, list(renderer.demonstrate(Demonstration(content="412")))]


def executors() -> Iterator[Any]:
    for name in EXECUTORS:
        yield pytest.param(name, marks=[pytest.mark.slow] if name == "ray" else [])


@pytest.mark.parametrize("executor", [*executors()])
def test_a_server_and_a_fault_reach_the_trials_of_every_executor_and_stand_in_the_record(
    executor: str,
    prepared: Workshop,
    model: Path,
    renderer: Renderer,
    config: Path,
    faults: Path,
    tmp_path: Path,
) -> None:
    offer = Offer.read(mcp=str(config), faults=str(faults), seed=4)
    tasks = prepared.tasks("train")[:2]
    requests = [TrialRequest(task, SPEC, ("test", task.id, 0), 0) for task in tasks]
    engine = ScriptedEngine({request.trial_id: turns_of(renderer) for request in requests}, max_len=40_000)
    place = task_place(
        label=prepared.label,
        provider=prepared.provider.name,
        environment=str(prepared.environment.path),
        digest=prepared.environment.digest,
        tokenizer=str(model),
        waive=sorted(prepared.tier.waive),
        offer=offer.as_arguments(),
    )
    with (
        prepared.verifier() as verifier,
        Owner(tmp_path / "run") as owner,
        EXECUTORS[executor]()(engine, place, seed=1, concurrency=2, owner=owner, limits=Limits()) as running,
    ):
        trials = running.run(requests, verifier)
    assert [(trial.stop_reason, trial.error) for trial in trials] == [("answered", None)] * 2
    with open_run(tmp_path / "run") as run:
        for trial in trials:
            record = run.record(trial.request.trial_id)
            seen = [turn["observation"] for turn in record["turns"]]
            assert "not now" in seen[0] and "rhubarb" not in seen[0]
            assert seen[1] == "rhubarb"
            assert "," in seen[2]
            assert [turn["calls"][0]["status"] for turn in record["turns"][:3]] == ["tool_error", "ok", "ok"]
            (fault,) = record["faults"]
            assert (fault["tool"], fault["call_index"], fault["error_type"]) == ("word", 0, "server_error")
            assert fault["rule"] == f"{faults}:error_rules[0]"
            assert record["server_reconnects"] == {"words": 0}


def offered_task(directory: Path, **environment: Any) -> Task:
    """A task that names a server, and a world that says which faults it has."""
    files = {
        "environment/Dockerfile": b"FROM debian:12\n",
        "environment/world/sales.csv": b"client,Q1\nAcme,412\n",
        "environment/apps_data/mail/.config/injected_errors.json": json.dumps({"error_rules": [RULES]}).encode(),
        "environment/apps_data/mail/inbox.json": b"[]",
        "environment/apps_data/words/.config/injected_errors.json": json.dumps({"error_rules": [RULES]}).encode(),
        "solution/solve.sh": b"true\n",
        "tests/test.sh": b"echo 1 >/logs/verifier/reward.txt\n",
    }
    return load_task(write_task(TaskDraft("add\n", {"environment": environment}, files), directory))


def test_a_tasks_own_servers_are_offered_only_when_that_was_said(tmp_path: Path, config: Path) -> None:
    server = {"name": "own", "transport": "stdio", "command": sys.executable, "args": [SERVER]}
    task = offered_task(tmp_path / "task", mcp_servers=[server])
    with pytest.raises(InputError, match="names tool servers, which this run would not offer; --task-servers starts"):
        Offer().check([task], ("bash",), "harness code")
    trusted = Offer(has_task_servers=True)
    trusted.check([task], ("bash",), "harness code")
    assert [server.name for server in trusted.servers(task)] == ["own"]
    assert Offer().servers(task) == ()
    both = Offer.read(mcp=str(config), has_task_servers=True)
    assert [server.name for server in both.servers(task)] == ["own", "words"]
    with pytest.raises(InputError, match="offers a tool 'word', and so does 'own'; set prefix = true"):
        both.check([task], ("bash",), "harness code")


def test_a_worlds_own_faults_are_those_of_servers_that_are_offered(tmp_path: Path) -> None:
    task = offered_task(tmp_path / "task")
    offered = ["mail_send_mail", "pdfs_read_pdf"]
    assert [plan.server for plan in Offer().plans(task, offered)] == ["mail"]
    assert [plan.server for plan in Offer().plans(task, [*offered, "words_word"])] == ["mail", "words"]
    assert Offer().plans(task, ["bash"]) == ()


BAD: dict[str, tuple[str, str, str]] = {
    # what is wrong: flag, content, what is said
    "no JSON": ("--mcp", "{", "is no JSON"),
    "a server without a command": ("--mcp", '{"mcpServers": {"a": {"transport": "stdio"}}}', "mcpServers.a.command"),
    "an unknown field": ("--mcp", '{"mcpServers": {"a": {"comand": "x"}}}', "did you mean command?"),
    "a missing variable": ("--mcp", '{"mcpServers": {"a": {"command": "${NO_SUCH_ONE}"}}}', "NO_SUCH_ONE"),
    "no such program": (
        "--mcp",
        '{"mcpServers": {"a": {"command": "no-such-program"}}}',
        "no program 'no-such-program'",
    ),
    "it says nothing": ("--mcp", '{"mcpServers": {"a": {"command": "true"}}}', "tool server 'a'"),
    "an unknown kind of fault": ("--faults", '{"error_rules": [{"error_type": "timeot"}]}', "did you mean timeout?"),
    "a rule that matches nothing": (
        "--faults",
        '{"error_rules": [{"error_type": "timeout", "tool": "bahs"}]}',
        "did you mean bash?",
    ),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("verb", ["trials", "dry-run"])
def test_bad_files_end_with_2_before_anything_runs(
    name: str, verb: str, prepared: Workshop, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flag, content, said = BAD[name]
    (tmp_path / "file.json").write_text(content)
    tasks = str(prepared.tasks("dev")[0].path)
    words = [verb, "run", tasks, "--policy", str(model), "--harness", "code", flag, str(tmp_path / "file.json")]
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--policy", "orcle"], "orcle: is no directory; allowed: oracle, noop, {random}DIR, hf:ORG/NAME@REV; "),
        (["--policy", "orcle"], "did you mean oracle?"),
        (["--policy", "openai:http://h/v1#m"], "returns text only"),
        (["--policy", "oracle", "--faults", "{faults}"], "--faults: has no effect"),
        (["--policy", "noop", "--mcp", "{config}"], "--mcp: has no effect"),
        (["--policy", "{model}", "--harness", "terminal", "--mcp", "{config}"], "offers no tools"),
        (["--policy", "oracle", "--mcp", "absent.json"], "absent.json: cannot be read"),
        (["--policy", "oracle", "--judge", "judge"], "--judge: 'judge' is no service"),
        (["--policy", "oracle", "--judge", "openai:http://a:pass@h/v1#m"], "--judge: holds a password"),
    ],
)
@pytest.mark.parametrize("verb", ["trials", "dry-run"])
def test_choices_that_cannot_be_met_are_refused_with_what_can(
    words: list[str],
    said: str,
    verb: str,
    prepared: Workshop,
    model: Path,
    config: Path,
    faults: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    values = {"faults": faults, "config": config, "model": model}
    given = [word.format(**values) for word in words]
    task = str(prepared.tasks("dev")[0].path)
    assert main([verb, "run", task, *given, "--out", str(tmp_path / "out")]) == 2
    assert said.format(random="random, " if verb == "dry-run" else "") in capsys.readouterr().err


@pytest.mark.thorough
def test_a_dry_run_of_random_actions_meets_server_and_faults_and_its_pair_does_too(
    prepared: Workshop, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_WORD", "quince")
    faults = tmp_path / "all.json"
    rule = {"error_type": "malformed_response", "tool": "*", "probability": 0.5, "metadata": {"keep_share": 0.5}}
    faults.write_text(json.dumps({"error_rules": [rule]}))
    tasks = tmp_path / "tasks"
    for task in prepared.tasks("dev")[:2]:
        shutil.copytree(task.path, tasks / task.id)
    waive = [word for limit in sorted(prepared.tier.waive) for word in ("--waive", limit)]
    offer = ["--mcp", str(config), "--faults", str(faults)]
    words = ["dry-run", str(tasks), "--policy", "random", "--harness", "framing:toolbelt", *waive, "--quiet"]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main([*words, *offer, "--samples", "4", "--out", str(tmp_path / "a")]) in (0, 1)
    again = ["dry-run", "run", "--against", str(tmp_path / "a"), *waive, "--quiet", "--out", str(tmp_path / "b")]
    assert main(again) in (0, 1)
    records = {}
    for name in ("a", "b"):
        with open_run(tmp_path / name) as run:
            records[name] = {row.key: run.record(row.key) for row in run.trials()}
    calls = [call for record in records["a"].values() for turn in record["turns"] for call in turn["calls"]]
    assert {"word", "shout", "calc"} <= {call["tool"] for call in calls}
    seen = {turn["observation"] for record in records["a"].values() for turn in record["turns"]}
    assert {"quince", "qui"} <= seen
    injected = [len(record["faults"]) for record in records["a"].values()]
    assert 0 < sum(injected) < len(calls)
    assert len(set(map(str, (record["faults"] for record in records["a"].values())))) > 1  # each trial draws its own
    for key, record in records["a"].items():
        assert records["b"][key]["faults"] == record["faults"]
    plan = json.loads((tmp_path / "b" / "dry-run.json").read_text())
    assert (plan["faults"], plan["mcp"]) == (str(faults), str(config))
    faults.write_text('{"error_rules": []}')
    assert main([*words, *offer, "--samples", "4", "--out", str(tmp_path / "a")]) == 2
    assert "rhubarb" not in os.environ.values()
