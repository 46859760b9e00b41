"""The program that runs inside the verifier sandbox, run here: its three answers, whatever a check does."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from task_directories import CHECK, answer

from journeyman.tasks.frames import decode_answer, encode_frame
from journeyman.tasks.grader import GRADER_SOURCE

TRUTH = {"answer": "412"}


@pytest.fixture
def grader(tmp_path: Path) -> ModuleType:
    """``inside/grade.py`` imported from a copy, as it lies in the sandbox, with one check ``c``."""
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "c.py").write_text(CHECK)
    shutil.copy(GRADER_SOURCE, tmp_path / "grade.py")
    spec = importlib.util.spec_from_file_location("grade_under_test", tmp_path / "grade.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run(grader: ModuleType, check: str, artifacts: dict[str, bytes], timeout_s: float = 5.0) -> dict[str, Any]:
    return grader.grade(compile(check, "check.py", "exec"), TRUTH, artifacts, timeout_s)


def test_a_right_and_a_wrong_answer_are_scored(grader: ModuleType):
    right, wrong = (_run(grader, CHECK, answer(value)) for value in ("412", "413"))
    assert (right["kind"], right["reward"], right["passed"]) == ("scored", 1.0, True)
    assert (wrong["kind"], wrong["reward"], wrong["passed"]) == ("scored", 0.0, False)
    assert wrong["checks"][0]["explain"] == "found '413'"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xfe\x00", "is not JSON"),
        (json.dumps({"answer": "412"}).encode("utf-16"), "is not JSON"),
        (b"", "is not JSON"),
        (b'{"answer": 412', "is not JSON"),
        (b'{"answer": NaN}', "NaN is no JSON number"),
        (b"9" * 5_000, "is not JSON"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"answer":' * 100 + b"1" + b"}" * 100, "is nested deeper than 64 levels"),
        (b'{"answer": ["no text"]}', None),
    ],
)
def test_a_deliverable_that_is_no_plain_json_is_malformed_before_any_check_runs(
    grader: ModuleType, data: bytes, reason: str | None
):
    never = "def grade(artifacts, truth):\n    return {'reward': 0.25}"
    found = _run(grader, never, {"answer.json": data})
    if reason is None:
        assert found["reward"] == 0.25
    else:
        assert found["kind"] == "malformed_deliverable"
        assert reason in found["explain"]


def test_only_an_exception_named_malformed_deliverable_blames_the_policy(grader: ModuleType):
    check = "class MalformedDeliverable(Exception): pass\nclass Worse(MalformedDeliverable): pass\n"
    found = _run(grader, check + "def grade(a, t): raise Worse('no column')", {})
    assert found == {"kind": "malformed_deliverable", "explain": "no column"}


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("raise ValueError('x')", "VerifierCrashed"),
        ("raise SystemExit(0)", "VerifierCrashed"),
        ("raise KeyboardInterrupt", "VerifierCrashed"),
        ("return grade(a, t)", "VerifierCrashed"),
        ("return None", "VerifierCrashed"),
        ("return {'passed': True}", "VerifierCrashed"),
        ("return 1.0", "VerifierCrashed"),
        ("raise MemoryError", "VerifierKilled"),
        ("while True: pass", "VerifierTimeout"),
        ("import time; time.sleep(60)", "VerifierTimeout"),
    ],
)
def test_anything_else_a_check_does_is_a_verifier_error(grader: ModuleType, body: str, error: str):
    found = _run(grader, f"def grade(a, t):\n {body}", {}, timeout_s=0.3)
    assert (found["kind"], found["error"]) == ("verifier_error", error)


def test_a_check_that_does_not_compile_breaks_only_its_own_trials(tmp_path: Path, grader: ModuleType):
    (tmp_path / "checks" / "d.py").write_text("def grade(:")
    checks = grader.load_checks(tmp_path / "checks")
    assert grader.grade(checks["d"], TRUTH, {}, 5.0)["error"] == "VerifierCrashed"
    assert grader.grade(checks["c"], TRUTH, answer("412"), 5.0)["reward"] == 1.0


def test_a_frame_carries_any_bytes_to_the_check_and_a_verdict_back(tmp_path: Path, grader: ModuleType):
    check = "def grade(a, t): return {'reward': float(a == {'x': bytes(range(256)), 'ü/y': b''} and t == {'k': 'ü'})}"
    (tmp_path / "checks" / "e.py").write_text(check)
    frame = encode_frame("e", json.dumps({"k": "ü"}).encode(), {"x": bytes(range(256)), "ü/y": b""}, 5.0)
    driver = "import sys, grade; sys.stdout.buffer.write(grade.handle(sys.stdin.buffer.read()))"
    found = subprocess.run([sys.executable, "-c", driver], cwd=tmp_path, input=frame, capture_output=True, timeout=20)
    verdict = decode_answer(found.stdout)
    assert (verdict.kind, verdict.reward, verdict.passed) == ("scored", 1.0, True)


def test_what_a_check_returns_must_be_json(tmp_path: Path, grader: ModuleType):
    grader.CHECKS["f"] = compile("def grade(a, t): return {'reward': {1, 2}}", "check.py", "exec")
    verdict = decode_answer(grader.handle(encode_frame("f", b"{}", {}, 5.0)))
    assert (verdict.kind, verdict.error) == ("verifier_error", "VerifierCrashed")


def test_as_a_program_it_names_the_first_unreadable_file_and_ends_with_status_3(tmp_path: Path):
    (tmp_path / "fine.json").write_text("{}")
    (tmp_path / "data.bin").write_bytes(b"\xff")
    argv = [sys.executable, "-I", "-S", str(GRADER_SOURCE), str(tmp_path)]
    assert subprocess.run(argv, capture_output=True, timeout=20).returncode == 0
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "bad.json").write_text("{")
    found = subprocess.run(argv, capture_output=True, text=True, timeout=20)
    assert found.returncode == 3
    assert found.stdout.startswith("bad.json is not JSON")
