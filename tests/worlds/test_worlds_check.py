"""The verifier that is copied into tasks, as a function and as a program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from journeyman.worlds.mini.checks import answer as check
from journeyman.worlds.mini.publish import TEST_SCRIPT

CHECK = Path(check.__file__)


def delivered(answer: str) -> dict[str, bytes]:
    return {"answer.json": json.dumps({"answer": answer}).encode()}


@pytest.mark.parametrize(
    ("given", "right", "reward"),
    [
        ("412", "412", 1.0),
        (" 412 ", "412", 1.0),
        ("413", "412", 0.0),
        ("412.0", "412", 0.0),
        ("", "412", 0.0),
        ("412;1", "412", 0.0),
        ("412;377", "412;377", 1.0),
        ("412; 377", "412;377", 1.0),
        ("412;378", "412;377", 0.5),
        ("377;412", "412;377", 0.0),
        ("412", "412;377", 0.0),
        ("412;377;", "412;377", 0.0),
    ],
)
def test_the_reward_is_the_share_of_equal_fields(given: str, right: str, reward: float) -> None:
    found = check.grade(delivered(given), {"answer": right})
    assert (found["reward"], found["passed"]) == (reward, reward == 1.0)


def test_each_check_explains_itself_without_telling_the_answer() -> None:
    found = check.grade(delivered("412;999"), {"answer": "412;377"})
    assert found["checks"] == [
        {"id": "fields", "kind": "gate", "score": 1.0, "explain": "equal"},
        {"id": "field-1", "kind": "scored", "score": 1.0, "explain": "equal"},
        {"id": "field-2", "kind": "scored", "score": 0.0, "explain": "found '999', not the value"},
    ]
    found = check.grade(delivered("412"), {"answer": "412;377"})
    assert found["checks"][0]["explain"] == "1 fields where 2 are asked for"
    assert "377" not in json.dumps(found)


@pytest.mark.parametrize(
    ("artifacts", "reason"),
    [
        ({}, "no answer.json"),
        ({"answer.txt": b"412"}, "no answer.json"),
        ({"answer.json": b"412"}, "is not"),
        ({"answer.json": b"{"}, "not UTF-8 JSON"),
        ({"answer.json": b'{"answer": "\xff"}'}, "not UTF-8 JSON"),
        ({"answer.json": b'{"answer": 412}'}, "is not"),
        ({"answer.json": b'["answer"]'}, "is not"),
        ({"answer.json": b'{"answer": "' + b"9" * 70000 + b'"}'}, "70014 bytes"),
        ({"answer.json": b"[" * 60000}, "not UTF-8 JSON"),
    ],
)
def test_what_is_no_answer_is_malformed_with_a_reason(artifacts: dict[str, bytes], reason: str) -> None:
    with pytest.raises(check.MalformedDeliverable, match=reason):
        check.grade(artifacts, {"answer": "412"})


def run(root: Path, deliverable: bytes | None) -> tuple[dict[str, object], dict[str, object]]:
    """The test script on a task's tests and an agent's logs; returns reward and details."""
    tests, logs = root / "tests", root / "logs"
    (logs / "artifacts").mkdir(parents=True)
    tests.mkdir()
    (tests / "check.py").write_bytes(CHECK.read_bytes())
    (tests / "truth.json").write_text('{"answer": "412;377"}')
    (tests / "test.sh").write_text(TEST_SCRIPT)
    (root / "bin").mkdir()
    (root / "bin" / "python3").symlink_to(sys.executable)
    if deliverable is not None:
        (logs / "artifacts" / "answer.json").write_bytes(deliverable)
    environment = {"PATH": f"{root}/bin:/usr/bin:/bin", "LOGS_DIR": str(logs), "TESTS_DIR": str(tests)}
    subprocess.run(["sh", str(tests / "test.sh")], env=environment, check=True, timeout=30, cwd=root)
    verifier = logs / "verifier"
    return json.loads((verifier / "reward.json").read_text()), json.loads((verifier / "details.json").read_text())


def test_the_test_script_writes_reward_and_details(tmp_path: Path) -> None:
    reward, details = run(tmp_path, b'{"answer": "412;378"}')
    assert reward == {"reward": 0.5}
    assert (details["kind"], details["passed"]) == ("scored", False)


def test_the_test_script_tells_a_missing_deliverable_from_a_wrong_one(tmp_path: Path) -> None:
    reward, details = run(tmp_path, None)
    assert reward == {"reward": 0.0}
    assert (details["kind"], details["explain"]) == ("malformed_deliverable", "no answer.json")


def test_a_link_in_place_of_the_deliverable_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "logs" / "artifacts").mkdir(parents=True)
    (tmp_path / "elsewhere.json").write_text('{"answer": "412;377"}')
    (tmp_path / "logs" / "artifacts" / "answer.json").symlink_to(tmp_path / "elsewhere.json")
    (tmp_path / "truth.json").write_text('{"answer": "412;377"}')
    environment = {"LOGS_DIR": str(tmp_path / "logs"), "TESTS_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-I", "-S", str(CHECK)], env=environment, check=True, timeout=30)
    assert json.loads((tmp_path / "logs/verifier/reward.json").read_text()) == {"reward": 0.0}
