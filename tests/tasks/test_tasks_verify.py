"""Both ways of grading, in real sandboxes: verdicts, deadlines, lost sandboxes, and what is left behind."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from task_directories import CHECK, MakeTask, answer

from journeyman.sandbox.errors import SandboxLeak, SandboxLost, SandboxStartFailed
from journeyman.sandbox.protocol import AgentEnvironment, Provider, Sandbox, SandboxInfo, SandboxSpec
from journeyman.tasks.artifacts import write_artifacts
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.regrade import SavedTrial, regrade
from journeyman.tasks.verify import BatchVerifier, verify_in_sandbox


def test_a_batch_gets_one_verdict_per_trial_in_order(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    tasks = {value: make_task(f"t{value}", truth={"answer": value}) for value in ("412", "7")}
    items = [
        GradeItem("a", tasks["412"], answer("412")),
        GradeItem("b", tasks["412"], answer("7")),
        GradeItem("c", tasks["7"], answer("7")),
        GradeItem("d", tasks["7"], None),
        GradeItem("e", tasks["7"], {"notes.txt": b"7"}),
        GradeItem("f", tasks["7"], {"answer.json": b'{"reply": "7"}'}),
    ]
    with BatchVerifier(provider, environment, "verify-batch") as verifier:
        verdicts = verifier.grade(items)
        again = verifier.grade(items[:2])
    assert [(v.kind, v.reward, v.passed) for v in verdicts] == [
        ("scored", 1.0, True),
        ("scored", 0.0, False),
        ("scored", 1.0, True),
        ("malformed_deliverable", 0.0, False),
        ("malformed_deliverable", 0.0, False),
        ("malformed_deliverable", 0.0, False),
    ]
    assert [v.explain for v in verdicts[3:5]] == [
        "nothing was delivered",
        "answer.json is missing; delivered: 'notes.txt'",
    ]
    assert again == verdicts[:2]
    assert provider.list("verify-batch") == []


def test_an_empty_batch_and_one_without_deliverables_start_no_sandbox(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    counting = CountingProvider(provider)
    with BatchVerifier(counting, environment, "verify-none") as verifier:
        assert verifier.grade([]) == []
        assert verifier.grade([GradeItem("a", make_task(), None)])[0].kind == "malformed_deliverable"
    assert counting.created == 0


MIXED = {
    "right": answer("412"),
    "wrong": answer("413"),
    "missing": {"other.txt": b"412"},
    "nothing": None,
    "no json": {"answer.json": b"412 is the answer"},
    "no field": {"answer.json": b"{}"},
    "no text": {"answer.json": b'["412"]'},
    "binary": {"answer.json": b"\xff\x00\xfe"},
    "deep": {"answer.json": b'{"answer":' + b"[" * 50_000 + b"]" * 50_000 + b"}"},
    "long": {"answer.json": json.dumps({"answer": "9" * 10_000_000}).encode()},
    "planted": {
        **answer("413"),
        "reward.txt": b"1",
        "reward.json": b'{"reward": 1}',
        "conftest.py": b"raise SystemExit",
    },
}


def test_both_ways_of_grading_give_the_same_verdicts(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    task = make_task()
    with BatchVerifier(provider, environment, "verify-both") as verifier:
        batch = verifier.grade([GradeItem(name, task, artifacts) for name, artifacts in MIXED.items()])
    single = [verify_in_sandbox(task, artifacts, provider, environment) for artifacts in MIXED.values()]
    assert dict(zip(MIXED, batch, strict=True)) == dict(zip(MIXED, single, strict=True))
    assert [v.reward for v in batch] == [1.0] + [0.0] * (len(MIXED) - 1)
    assert {v.kind for v in batch[2:-1]} == {"malformed_deliverable"}


CONFORMANCE: dict[str, tuple[str, bool, tuple[str, float | None, str | None]]] = {
    # name: test.sh, own task, (kind, reward, error)
    "the test writes 0": ("echo 0 > /logs/verifier/reward.txt", True, ("scored", 0.0, None)),
    "the test writes 1": ("echo 1.0 > /logs/verifier/reward.txt", True, ("scored", 1.0, None)),
    "no reward file": ("true", True, ("verifier_error", None, "RewardFileMissing")),
    "empty reward file": (": > /logs/verifier/reward.txt", True, ("verifier_error", None, "RewardFileEmpty")),
    "exit 3 with reward 1, ours": (
        "echo 1 > /logs/verifier/reward.txt; exit 3",
        True,
        ("verifier_error", None, "VerifierCrashed"),
    ),
    "exit 3 with reward 1, imported": (
        "echo 1 > /logs/verifier/reward.txt; exit 3",
        False,
        ("scored", 1.0, None),
    ),
    "exit 3 without reward, imported": ("exit 3", False, ("verifier_error", None, "RewardFileMissing")),
    "the verifier hangs": ("sleep 100", True, ("verifier_error", None, "VerifierTimeout")),
    "the test crashes over a planted reward.txt": (
        "ls /logs/artifacts/answer.json && exit 1",
        True,
        ("verifier_error", None, "VerifierCrashed"),
    ),
    "a planted reward.json, the test writes 0": ("echo 0 > /logs/verifier/reward.txt", True, ("scored", 0.0, None)),
    "nan": ("echo nan > /logs/verifier/reward.txt", True, ("verifier_error", None, "RewardInvalid")),
    "json NaN": (
        """echo '{"reward": NaN}' > /logs/verifier/reward.json""",
        True,
        ("verifier_error", None, "RewardInvalid"),
    ),
    "json true": (
        """echo '{"reward": true}' > /logs/verifier/reward.json""",
        True,
        ("verifier_error", None, "RewardInvalid"),
    ),
    "json 7.5 and -2": (
        """echo '{"reward": 7.5, "x": -2}' > /logs/verifier/reward.json""",
        False,
        ("verifier_error", None, "RewardInvalid"),
    ),
    "a dependency that needs the network": (
        "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 5)' && "
        "echo 0 > /logs/verifier/reward.txt",
        True,
        ("verifier_error", None, "VerifierCrashed"),
    ),
}


@pytest.mark.parametrize("name", CONFORMANCE)
def test_bad_verifiers_are_errors_and_good_ones_are_believed(
    name: str, make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    script, is_own, expected = CONFORMANCE[name]
    task = make_task(test_sh=script + "\n", is_own=is_own, timeout_s=1.0 if "hangs" in name else 20.0)
    planted = {**answer("412"), "reward.txt": b"1", "reward.json": b'{"reward": 1}'}
    started = time.monotonic()
    verdict = verify_in_sandbox(task, planted, provider, environment, label="verify-conformance")
    assert (verdict.kind, verdict.reward, verdict.error) == expected
    assert time.monotonic() - started < 10
    assert provider.list("verify-conformance") == []  # also the hanging one left no process


def test_the_verifier_sees_tests_and_artifacts_read_only_and_nothing_else_of_the_task(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    script = (
        "touch /tests/x 2>/dev/null && exit 7\n"
        "touch /logs/artifacts/x 2>/dev/null && exit 8\n"
        "test -e /solution && exit 9\n"
        'test "$(ls /logs/artifacts)" = answer.json || exit 10\n'
        "echo 1 > /logs/verifier/reward.txt\n"
    )
    verdict = verify_in_sandbox(make_task(test_sh=script), {**answer("1"), "more.txt": b""}, provider, environment)
    assert (verdict.kind, verdict.reward) == ("scored", 1.0), verdict.explain


def test_a_task_without_check_py_is_graded_by_its_script_within_a_batch(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    scripted = make_task("scripted", check=None, test_sh="echo 0.25 > /logs/verifier/reward.txt\n", is_own=False)
    items = [GradeItem("a", scripted, {"anything": b""}), GradeItem("b", make_task(), answer("412"))]
    with BatchVerifier(provider, environment, "verify-mixed") as verifier:
        assert [v.reward for v in verifier.grade(items)] == [0.25, 1.0]


def test_a_directory_can_be_a_deliverable(make_task: MakeTask, provider: Provider, environment: AgentEnvironment):
    check = "def grade(a, t): return {'reward': float(sorted(a) == ['report/a.txt', 'report/sub/b.txt'])}"
    task = make_task(check=check, deliverables=["report/"])
    delivered = {"report/a.txt": b"", "report/sub/b.txt": b"", "report/../../x": b"", "reports.txt": b""}
    with BatchVerifier(provider, environment, "verify-directory") as verifier:
        assert verifier.grade([GradeItem("a", task, delivered)])[0].reward == 1.0


def test_tests_that_vanish_after_loading_are_a_verifier_error(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    task = make_task()
    (task.tests / "truth.json").unlink()
    (task.tests / "test.sh").unlink()
    with BatchVerifier(provider, environment, "verify-gone") as verifier:
        assert verifier.grade([GradeItem("a", task, answer("412"))])[0].error == "VerifierMissing"
    assert verify_in_sandbox(task, answer("412"), provider, environment).error == "VerifierMissing"


def test_regrading_saved_artifacts_gives_the_verdicts_again_and_follows_a_corrected_truth(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment, tmp_path: Path
):
    task = make_task()
    write_artifacts({**answer("412"), "../escaped": b"x"}, tmp_path / "kept")
    assert not (tmp_path / "escaped").exists()
    (tmp_path / "kept" / "link.json").symlink_to("/etc/passwd")
    saved = [SavedTrial("a", task.path, tmp_path / "kept"), SavedTrial("b", task.path, None)]
    first = regrade(saved, provider, environment)
    assert [(v.kind, v.reward) for v in first] == [("scored", 1.0), ("malformed_deliverable", 0.0)]
    (task.tests / "truth.json").write_text('{"answer": "413"}')
    assert [v.reward for v in regrade(saved, provider, environment)] == [0.0, 0.0]


class CountingProvider:
    """The real provider, counting what it starts; ``fail_starts`` of them do not come up."""

    def __init__(self, provider: Provider, fail_starts: int = 0) -> None:
        self.provider, self.fail_starts, self.created = provider, fail_starts, 0
        self.name, self.supports = provider.name, provider.supports

    def create(self, spec: SandboxSpec, *, deadline_s: float = 30) -> Sandbox:
        self.created += 1
        if self.created <= self.fail_starts:
            raise SandboxStartFailed(spec.label, "injected")
        return self.wrap(self.provider.create(spec, deadline_s=deadline_s))

    def wrap(self, sandbox: Sandbox) -> Sandbox:
        return sandbox

    def list(self, label: str | None = None) -> list[SandboxInfo]:
        return self.provider.list(label)

    def reap(self, label: str | None = None) -> list[str]:
        return self.provider.reap(label)


class DyingProvider(CountingProvider):
    """A provider whose sandboxes die at the calls numbered in ``deaths``, counted over all of them."""

    def __init__(self, provider: Provider, deaths: set[int]) -> None:
        super().__init__(provider)
        self.deaths, self.calls = deaths, 0

    def wrap(self, sandbox: Sandbox) -> Sandbox:
        real = sandbox.call

        def call(payload: bytes, *, deadline_s: float) -> bytes:
            self.calls += 1
            if self.calls in self.deaths:
                sandbox.destroy()
                raise SandboxLost(sandbox.id, "call", "injected")
            return real(payload, deadline_s=deadline_s)

        sandbox.call = call  # type: ignore[method-assign]
        return sandbox


def _grade_with(provider: Any, environment: AgentEnvironment, items: list[GradeItem]) -> list[tuple[str, float | None]]:
    with BatchVerifier(provider, environment, "verify-dying") as verifier:
        found = [(v.error or v.kind, v.reward) for v in verifier.grade(items)]
    assert provider.list("verify-dying") == []
    return found


def test_when_the_verifier_sandbox_dies_the_rest_is_graded_in_a_fresh_one(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    items = [GradeItem(str(n), make_task(), answer("412")) for n in range(5)]
    dying = DyingProvider(provider, {3, 4})
    assert _grade_with(dying, environment, items) == [("scored", 1.0)] * 5
    assert dying.created == 3


def test_a_trial_that_loses_three_sandboxes_is_a_verifier_error_and_the_others_are_graded(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    items = [GradeItem(str(n), make_task(), answer("412")) for n in range(4)]
    found = _grade_with(DyingProvider(provider, {2, 3, 4}), environment, items)
    assert found == [("scored", 1.0), ("VerifierSandboxLost", None), ("scored", 1.0), ("scored", 1.0)]


def test_when_no_sandbox_comes_up_every_trial_is_a_verifier_error_after_three_tries(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    items = [GradeItem(str(n), make_task(), answer("412")) for n in range(4)]
    failing = CountingProvider(provider, fail_starts=99)
    assert _grade_with(failing, environment, items) == [("VerifierSandboxLost", None)] * 4
    assert failing.created == 3
    assert verify_in_sandbox(make_task(), answer("412"), CountingProvider(provider, 99), environment).reward is None
    assert verify_in_sandbox(make_task(), answer("412"), CountingProvider(provider, 2), environment).reward == 1.0


class LeakingProvider(CountingProvider):
    """A provider that says of each sandbox it removed that something stayed behind."""

    def wrap(self, sandbox: Sandbox) -> Sandbox:
        real = sandbox.destroy

        def destroy(*, deadline_s: float = 30) -> None:
            real(deadline_s=deadline_s)
            raise SandboxLeak(sandbox.id, "one process (injected)")

        sandbox.destroy = destroy  # type: ignore[method-assign]
        return sandbox


def test_a_leak_is_reported_when_the_verifier_is_closed_and_costs_no_verdict(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    verifier = BatchVerifier(LeakingProvider(provider), environment, "verify-leak")
    assert verifier.grade([GradeItem("a", make_task(), answer("412"))])[0].reward == 1.0
    with pytest.raises(SandboxLeak, match="injected"):
        verifier.close()


def test_grading_a_trial_costs_less_than_starting_an_interpreter(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    task = make_task(check=CHECK)
    items = [GradeItem(str(n), task, answer("412" if n % 2 else "7")) for n in range(256)]
    started = time.monotonic()
    with BatchVerifier(provider, environment, "verify-speed") as verifier:
        verdicts = verifier.grade(items)
    graded_s = (time.monotonic() - started) / len(items)
    started = time.monotonic()
    for _ in range(20):
        subprocess.run([sys.executable, "-I", "-c", "import json"], check=True, timeout=30)
    interpreter_s = (time.monotonic() - started) / 20
    print(f"{graded_s * 1000:.2f} ms a trial, {interpreter_s * 1000:.2f} ms an interpreter")
    assert sum(v.reward or 0 for v in verdicts) == 128
    assert graded_s < interpreter_s
