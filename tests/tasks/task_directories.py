"""Real task directories for the tests of this room."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from journeyman.tasks.task import Task, TaskDraft

CHECK = """
import json, os, sys
from pathlib import Path


class MalformedDeliverable(Exception):
    pass


def grade(artifacts, truth):
    try:
        answer = json.loads(artifacts["answer.json"])["answer"]
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedDeliverable(f"answer.json: {error!r}") from error
    good = answer == truth["answer"]
    check = {"id": "answer", "kind": "scored", "score": float(good), "explain": f"found {answer!r}"}
    return {"reward": float(good), "passed": good, "checks": [check]}


def main():
    logs, tests = Path(os.environ.get("LOGS_DIR", "/logs")), Path(os.environ.get("TESTS_DIR", "/tests"))
    artifacts = {p.name: p.read_bytes() for p in (logs / "artifacts").iterdir() if p.is_file()}
    try:
        details = {"kind": "scored", **grade(artifacts, json.loads((tests / "truth.json").read_text()))}
    except MalformedDeliverable as error:
        details = {"kind": "malformed_deliverable", "reward": 0.0, "explain": str(error)}
    (logs / "verifier" / "details.json").write_text(json.dumps(details))
    (logs / "verifier" / "reward.json").write_text(json.dumps({"reward": details["reward"]}))


if __name__ == "__main__":
    main()
"""

TEST_SH = "exec python3 -I /tests/check.py\n"

MakeTask = Callable[..., Task]


def draft(
    *,
    check: str | None = CHECK,
    test_sh: str = TEST_SH,
    truth: Mapping[str, Any] | None = None,
    timeout_s: float = 20.0,
    is_own: bool = True,
    deliverables: Sequence[str] = ("answer.json",),
) -> TaskDraft:
    """A task that asks for one number; ``is_own`` leaves out ``[metadata.journeyman]``."""
    own = {
        "family": "look",
        "world_id": "train-0001",
        "split": "train",
        "world_digest": "0" * 64,
        "deliverables": list(deliverables),
    }
    files = {
        "environment/Dockerfile": b"FROM debian:12\n",
        "environment/world/sales.csv": b"client,Q1\nAcme,412\n",
        "solution/solve.sh": b"true\n",
        "tests/test.sh": test_sh.encode(),
        "tests/truth.json": json.dumps(truth or {"answer": "412"}).encode(),
    }
    if check is not None:
        files["tests/check.py"] = check.encode()
    config = {
        "metadata": {"journeyman": own} if is_own else {"difficulty": "easy"},
        "verifier": {"timeout_sec": timeout_s},
    }
    return TaskDraft("report Acme Q1 from sales.csv\n", config, files)


def answer(value: object) -> dict[str, bytes]:
    """The deliverable that gives ``value``."""
    return {"answer.json": json.dumps({"answer": value}).encode()}
