"""A judge is chosen on the command line: rubric tasks have no reward without one, and get theirs later by regrading."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from journeyman.cli.main import main
from journeyman.tasks.imports.directory import JudgedTask, write_judged
from journeyman.tasks.rubric import Criterion, Rubric
from journeyman.trials.detached import FILE
from journeyman.trials.store import open_run

KEY = "judge-key-0d6c31"
WAIVE = [word for limit in ("memory", "pids", "disk", "cpus") for word in ("--waive", limit)]
SOLVE = '#!/bin/sh\nmkdir -p "$LOGS_DIR/artifacts"\nprintf "it is 7" >"$LOGS_DIR/artifacts/answer.txt"\n'


class Service(BaseHTTPRequestHandler):
    """Scores by the work alone; refuses whoever shows no key."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        is_known = self.headers.get("authorization") == f"Bearer {KEY}"
        score = float("it is 7" in body["messages"][-1]["content"].partition("The work:")[2])
        content = json.dumps({"score": score, "reason": f"read by {body['model']}"})
        reply = json.dumps({"model": "m", "choices": [{"message": {"content": content}}]}).encode()
        self.send_response(200 if is_known else 401)
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""


@pytest.fixture(scope="module")
def judge() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"openai:http://127.0.0.1:{server.server_address[1]}/v1#strict"
    server.shutdown()
    server.server_close()


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """One task that a judge grades, with a solution."""
    rubric = Rubric(criteria=(Criterion(id="a", criterion="says 7"), Criterion(id="b", criterion="says so plainly")))
    path = write_judged(JudgedTask("judged", "Add.", "f", "w", (), rubric, {}), tmp_path / "tasks")
    (path / "solution").mkdir(exist_ok=True)
    (path / "solution" / "solve.sh").write_text(SOLVE)
    return path


@pytest.mark.parametrize("executor", ["inline", pytest.param("process", marks=pytest.mark.thorough)])
def test_a_run_with_a_judge_is_scored_by_it_and_its_key_is_nowhere(
    executor: str, tasks: Path, judge: str, tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MY_JUDGE", KEY)
    out = tmp_path / "run"
    words = ["trials", "run", str(tasks), "--policy", "oracle", "--executor", executor, "--out", str(out), *WAIVE]
    assert main([*words, "--judge", judge, "--judge-key", "MY_JUDGE", "--json", "--quiet"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["outcomes"], said["mean_reward"]) == ({"solved": 1}, 1.0)
    assert (said["judge"]["model"], said["judge"]["judged"], said["judge"]["judge_failed"]) == ("strict", 2, 0)
    with open_run(out) as run:
        (row,) = run.trials()
        checks = run.record(row.key)["verdict"]["checks"]
    assert [check["explain"] for check in checks] == [
        "says 7: read by strict",
        "says so plainly: read by strict",
    ]
    plan = json.loads((out / FILE).read_text())["plan"]
    assert (plan["judge"], plan["judge_keys"]) == (judge, ["MY_JUDGE"])
    assert not [path for path in out.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def test_without_a_judge_there_is_no_reward_and_regrading_with_one_gives_it(
    tasks: Path, judge: str, tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    out = tmp_path / "run"
    words = ["trials", "run", str(tasks), "--policy", "oracle", "--executor", "inline", "--out", str(out), *WAIVE]
    assert main([*words, "--json", "--quiet"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["outcomes"], said["mean_reward"], said["judge"]) == ({"verifier_error": 1}, None, None)
    again = ["regrade", str(out), "--tasks", str(tasks.parent), *WAIVE, "--judge", judge, "--json", "--quiet"]
    assert main([*again, "--judge-key", "ABSENT_KEY"]) == 3
    assert "ABSENT_KEY" in capsys.readouterr().err
    assert main(again) == 1  # it was asked without a key, and refused
    assert json.loads(capsys.readouterr().out)["judge"]["judge_failed"] >= 1
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert main(again) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["moves"] == {"verifier_error -> solved": 1}
    assert report["changed"][0]["after"]["reward"] == 1.0


@pytest.mark.thorough
def test_a_dry_run_with_a_judge_passes_its_gate(tasks: Path, judge: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    words = ["dry-run", str(tasks), "--policy", "oracle", "--harness", "framing:toolbelt", *WAIVE, "--quiet"]
    assert main([*words, "--judge", judge, "--out", str(tmp_path / "with")]) == 0
    assert main([*words, "--out", str(tmp_path / "without")]) == 1
