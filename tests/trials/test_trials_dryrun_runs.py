"""Dry runs of real tasks with planted defects of every class: each is put where it belongs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dryrun_places import PURE, audit_of, damaged

from journeyman.errors import InputError
from journeyman.ladder.dryrun.against import compare, lines
from journeyman.ladder.dryrun.audit import exit_code
from journeyman.ladder.dryrun.evidence import read_evidence
from journeyman.ladder.dryrun.plan import keep_plan, make_plan
from journeyman.ladder.workshop import Workshop
from journeyman.tasks.task import Task, load_task


@pytest.fixture(autouse=True, scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Environments of agents are kept in a cache of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def tasks(prepared: Workshop) -> list[Task]:
    return prepared.tasks("train")[:4]


@pytest.fixture(scope="module")
def model(prepared: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with random weights over the quickstart's vocabulary."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(3)
    place = tmp_path_factory.mktemp("model")
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = LlamaConfig(vocab_size=prepared.tokenizer.vocab_size, max_position_embeddings=640, **shape)
    LlamaForCausalLM(config).save_pretrained(place)
    for path in prepared.run.path("tokenizer").iterdir():
        shutil.copy(path, place / path.name)
    return place


def classes(report: dict[str, Any]) -> dict[str, str]:
    """Defect of each failed task."""
    return {finding["task_id"]: finding["defect"] for finding in report["findings"]}


@pytest.mark.thorough
def test_solutions_that_work_pass_the_gate(tasks: list[Task], tmp_path: Path) -> None:
    report = audit_of(tasks, tmp_path / "run")
    assert (report["verdict"], exit_code(report), report["mean_reward"]["mean"]) == ("pass", 0, 1.0)
    assert report["non_model_errors"]["count"] == 0 and report["non_model_errors"]["high"] > 0.3
    assert {"phase start", "phase act", "phase quiesce", "tool solution"} <= {
        o["operation"] for o in report["operations"]
    }
    assert (
        (tmp_path / "run" / "report.md").read_text().startswith("# Dry run\n\n**pass: non-model errors 0.0 % (0 of 4)")
    )


@pytest.mark.thorough
def test_what_is_wrong_with_a_task_is_found_in_its_own_solution(tasks: list[Task], tmp_path: Path) -> None:
    package, program, slow, refusing = tasks
    planted = [
        damaged(package, tmp_path, "solution/solve.sh", "set -eu\n", "set -eu\npython3 -c 'import mahout'\n"),
        damaged(program, tmp_path, "solution/solve.sh", "set -eu\n", "set -eu\nfrobnicate\n"),
        damaged(slow, tmp_path, "solution/solve.sh", "set -eu\n", "set -eu\nsleep 60\n"),
        damaged(refusing, tmp_path, "tests/truth.json", '"answer":', '"was":'),
    ]
    limited = (planted[2].path / "task.toml").read_text().replace("timeout_sec = 300.0", "timeout_sec = 1.0")
    (planted[2].path / "task.toml").write_text(limited)
    truth = json.loads((planted[3].path / "tests/truth.json").read_text())
    (planted[3].path / "tests/truth.json").write_text(json.dumps({**truth, "answer": "something else"}))
    report = audit_of([load_task(task.path) for task in planted], tmp_path / "run")
    assert classes(report) == {
        package.id: "environment: a dependency is missing: module mahout",
        program.id: "environment: a dependency is missing: program frobnicate",
        slow.id: "harness: a limit ended the task's own solution: limit.time",
        refusing.id: f"verifier: refuses the task's own solution: {report['findings'][3]['subject']}",
    }
    assert (report["verdict"], exit_code(report)) == ("fail", 1)
    assert report["failures"]["environment"]["count"] == 2 and report["failures"]["model"]["count"] == 0
    first = report["defects"][0]
    assert (Path(first["path"]) / "trial.json").is_file() and first["show"].endswith(first["trial_id"])


def test_a_verifier_that_crashes_is_the_verifiers_fault_and_never_a_zero(tasks: list[Task], tmp_path: Path) -> None:
    broken = damaged(
        tasks[0], tmp_path, "tests/check.py", "    expected = ", "    expected = truth['gone']\n    expected = "
    )
    report = audit_of([broken, *tasks[1:]], tmp_path / "run")
    assert classes(report) == {broken.id: "verifier: the verifier broke: VerifierCrashed"}
    assert report["mean_reward"] == {"mean": 1.0, "n": 3}
    assert report["drops"]["worst"] == [
        {"task_id": broken.id, "trials": 1, "valid": 0, "causes": {"verifier_failed": 1}}
    ]


def test_a_verifier_that_accepts_no_work_is_found_by_random_actions(tasks: list[Task], tmp_path: Path) -> None:
    lenient = damaged(
        tasks[0], tmp_path, "tests/check.py", "    expected = ", "    return {'reward': 1.0}\n    expected = "
    )
    report = audit_of([lenient, tasks[1]], tmp_path / "run", policy="random")
    assert report["defects"][0]["defect"] == "verifier: accepts what did no work"
    assert report["failures"]["verifier"]["count"] == 1 and report["failures"]["model"]["count"] == 1


def test_a_tool_that_returns_nothing_of_use_is_found_by_random_calls(tasks: list[Task], tmp_path: Path) -> None:
    report = audit_of(tasks, tmp_path / "run", policy="random", seed=1, place="GarbagePlace")
    records = read_evidence(tmp_path / "run").records
    called = {name for name, r in records.items() if any(c["tool"] == "calc" for t in r["turns"] for c in t["calls"])}
    found = {f["trial_id"] for f in report["findings"] if f["defect"] == "tool: answers with the answer None: calc"}
    assert called == found != set()
    assert {f["failure"] for f in report["findings"] if f["trial_id"] not in called} <= {"model"}
    assert report["verdict"] == "fail"
    shapes = {(entry["tool"], entry["shape"]): entry["errors"]["n"] for entry in report["calls"]}
    assert shapes["calc", "expr:str"] == sum(
        c["tool"] == "calc" for r in records.values() for t in r["turns"] for c in t["calls"]
    )


@pytest.mark.slow
def test_an_untrained_model_fails_by_itself_and_a_context_too_small_is_the_harness(
    tasks: list[Task], model: Path, tmp_path: Path
) -> None:
    report = audit_of(tasks, tmp_path / "run", policy=str(model), samples=2)
    assert report["failures"]["model"]["count"] == report["ended"] == 8
    assert report["verdict"] == "pass" and report["context_exhausted"]["n"] == 8
    crowded = audit_of(tasks, tmp_path / "small", policy=str(model), context_tokens=120)
    assert set(classes(crowded).values()) == {"harness: the prompt fills the context: limit.context"}
    assert crowded["context_exhausted"]["share"] == 1.0 and crowded["verdict"] == "fail"


@pytest.mark.slow
def test_a_bug_of_the_loop_is_the_harness(tasks: list[Task], tmp_path: Path) -> None:
    report = audit_of(tasks[:2], tmp_path / "run", place="BrokenLoop", abort_at=1.0)
    assert set(classes(report).values()) == {"harness: ended as unclassified: ZeroDivisionError"}
    assert exit_code(report) == 1


@pytest.mark.thorough
def test_an_audit_in_which_too_much_broke_is_not_judged_and_stops_early(tasks: list[Task], tmp_path: Path) -> None:
    report = audit_of(tasks, tmp_path / "run", place="NoSandbox", samples=10, abort_at=0.2)
    assert (report["verdict"], exit_code(report)) == ("not judged", 4)
    assert report["broken"]["count"] > 8 and report["ended"] < 40
    assert set(classes(report).values()) == {"environment: ended as sandbox_failed: SandboxStartFailed"}


@pytest.mark.slow
def test_the_pair_of_two_versions_finds_the_repair_and_what_it_was_worth(tasks: list[Task], tmp_path: Path) -> None:
    audit_of(tasks, tmp_path / "before", place="LostPrograms", samples=2)
    audit_of(tasks, tmp_path / "after", samples=2)
    found = compare(read_evidence(tmp_path / "before"), read_evidence(tmp_path / "after"))
    (repair,) = found["repairs"]
    assert repair["defect"].startswith("environment: a dependency is missing: program ")
    assert (repair["change"], repair["trials_before"], repair["trials_after"]) == ("disappeared", 8, 0)
    assert found["yield"]["mean"] == repair["worth"]["mean"] == 1.0 and found["pairs"] == 8
    assert any(line.startswith("disappeared environment: ") and "+100.00 points" in line for line in lines(found))
    audit_of(tasks, tmp_path / "other", policy="noop", samples=2)
    with pytest.raises(InputError, match="differ in policy"):
        compare(read_evidence(tmp_path / "other"), read_evidence(tmp_path / "after"))


def test_another_plan_in_the_same_directory_is_refused(tasks: list[Task], tmp_path: Path) -> None:
    plan = make_plan(tasks[:1], policy="oracle", harness=PURE)
    assert keep_plan(plan, tmp_path / "run") == keep_plan(plan, tmp_path / "run") == plan
    with pytest.raises(InputError, match="differs in tasks"):
        keep_plan(make_plan(tasks, policy="oracle", harness=PURE), tmp_path / "run")
    with pytest.raises(InputError, match="something else"):
        keep_plan(plan, tmp_path)
