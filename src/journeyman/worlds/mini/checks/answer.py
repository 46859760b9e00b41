"""Verifier of a short answer: ``answer.json`` = ``{"answer": "x;y"}`` against the truth, field by field.

Standalone and standard library only. ``grade`` is pure; run as a program it reads ``$LOGS_DIR/artifacts`` and
``$TESTS_DIR/truth.json`` and writes ``$LOGS_DIR/verifier/reward.json`` and ``details.json``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DELIVERABLE = "answer.json"
SEPARATOR = ";"
MAX_BYTES = 65536
MAX_SHOWN = 60


class MalformedDeliverable(Exception):
    """The deliverable is missing or is not what the task asked for: reward 0, with this reason."""


def grade(artifacts: Mapping[str, bytes], truth: Mapping[str, str]) -> dict[str, Any]:
    """Grade one trial.

    Args:
        artifacts: mapping of file name to bytes, as collected from the agent.
        truth: mapping with ``answer``, the right fields joined by ``;``.

    Returns:
        ``{"reward", "passed", "checks"}``: the share of equal fields, 0 when their number is wrong; passed means all
        equal. The check ``fields`` compares the number of fields, ``field-1``, ``field-2``, ... the fields.

    Raises:
        MalformedDeliverable: no ``answer.json``, not JSON, no text under ``answer``.
    """
    expected = [field.strip() for field in truth["answer"].split(SEPARATOR)]
    found = [field.strip() for field in read_answer(artifacts).split(SEPARATOR)]
    complete = len(found) == len(expected)
    checks = [check("fields", "gate", complete, f"{len(found)} fields where {len(expected)} are asked for")]
    for number, right in enumerate(expected, start=1):
        if complete:
            given = found[number - 1]
            checks.append(check(f"field-{number}", "scored", given == right, f"found {shown(given)}, not the value"))
        else:
            checks.append(check(f"field-{number}", "scored", False, "not compared: wrong number of fields"))
    score = sum(one["score"] for one in checks[1:]) / len(expected)
    return {"reward": score, "passed": score == 1.0, "checks": checks}


def check(name: str, kind: str, good: bool, problem: str) -> dict[str, Any]:
    """One check result; the reason is given only when something is wrong."""
    return {"id": name, "kind": kind, "score": 1.0 if good else 0.0, "explain": "equal" if good else problem}


def read_answer(artifacts: Mapping[str, bytes]) -> str:
    """The text of the deliverable."""
    data = artifacts.get(DELIVERABLE)
    if data is None:
        raise MalformedDeliverable(f"no {DELIVERABLE}")
    if len(data) > MAX_BYTES:
        raise MalformedDeliverable(f"{DELIVERABLE} has {len(data)} bytes, {MAX_BYTES} are allowed")
    try:
        content = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        raise MalformedDeliverable(f"{DELIVERABLE} is not UTF-8 JSON") from None
    if not isinstance(content, dict) or not isinstance(content.get("answer"), str):
        raise MalformedDeliverable(f'{DELIVERABLE} is not {{"answer": "text"}}')
    return str(content["answer"])


def shown(text: str) -> str:
    """A foreign text, bounded and quoted."""
    return repr(text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "...")


def main() -> int:
    """Grade what lies in the directories of the environment; return 0 whenever a reward was written."""
    logs, tests = Path(os.environ.get("LOGS_DIR", "/logs")), Path(os.environ.get("TESTS_DIR", "/tests"))
    truth = json.loads((tests / "truth.json").read_bytes())
    artifacts, path = {}, logs / "artifacts" / DELIVERABLE
    if path.is_file() and not path.is_symlink():
        with path.open("rb") as file:
            artifacts[DELIVERABLE] = file.read(MAX_BYTES + 1)
    try:
        details = {"kind": "scored", **grade(artifacts, truth)}
    except MalformedDeliverable as error:
        details = {"kind": "malformed_deliverable", "reward": 0.0, "passed": False, "checks": [], "explain": str(error)}
    verifier = logs / "verifier"
    verifier.mkdir(parents=True, exist_ok=True)
    write(verifier / "details.json", details)
    write(verifier / "reward.json", {"reward": details["reward"]})
    return 0


def write(path: Path, value: object) -> None:
    """JSON to a file, by rename: a reader never sees a part."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps(value), encoding="utf-8")
    temporary.replace(path)


if __name__ == "__main__":
    sys.exit(main())
