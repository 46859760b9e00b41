"""A run's trials as ``jobs/<job>/<trial>/`` directories, as Harbor and its viewers read them.

Only a valid reward is written as one: a trial of any other outcome has an exception and no verifier result, so that no
program counts it as 0.
"""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any

from journeyman import __version__
from journeyman.clock import now
from journeyman.errors import InputError
from journeyman.tasks.results.jobs import TrialContent, write_trial
from journeyman.tasks.results.manifest import ManifestEntry
from journeyman.tasks.results.trial_result import TrialResult
from journeyman.trials.store.atif import Decode, atif_document
from journeyman.trials.store.place import is_url
from journeyman.trials.store.run import Run
from journeyman.trials.store.schema import Record

_NAMESPACE = uuid.UUID("6f1d3c0e-7c53-4a3e-9a55-5a1f0c6c1b11")
"""Of the ids of trials: equal keys of equal runs have equal ids."""

EXCEPTIONS = {
    "RewardFileMissing": "RewardFileNotFoundError",
    "RewardFileEmpty": "RewardFileEmptyError",
    "RewardInvalid": "VerifierOutputParseError",
    "VerifierTimeout": "VerifierTimeoutError",
    "limit.time": "AgentTimeoutError",
    "limit.context": "ContextLengthExceededError",
    "limit.tokens": "OutputLengthExceededError",
}
"""Harbor's name of what ended a trial; other names stay ours, and Harbor's table takes them as unknown."""


def write_harbor(run: Run, out: str | Path, decode: Decode | None) -> tuple[int, int]:
    """One directory per closed trial below ``out``; returns how many, and their bytes.

    Raises:
        InputError: ``out`` is a URL.
        StorageError: it cannot be written.
    """
    if is_url(out):
        raise InputError("--out", "is a URL; a Harbor job is a local directory")
    job, rows = Path(out), run.trials()
    name = Path(run.root).name or "run"
    for row in rows:
        record = run.record(row.key)
        document = atif_document(row.key, name, record, run.trajectory(row.key), run.segments(row.key), decode)
        write_trial(job, harbor_result(name, row.key, record, document), _content(record, document))
    (job / "config.json").write_text(json.dumps({"job_name": name, "jobs_dir": str(job.parent)}))
    return len(rows), sum(path.stat().st_size for path in job.rglob("*") if path.is_file())


def harbor_result(run: str, key: str, record: Record, document: dict[str, Any]) -> TrialResult:
    """A trial's record as Harbor's ``TrialResult``."""
    trial_name = re.sub(r"[^A-Za-z0-9._-]+", "-", key).strip("-.") or "trial"
    task = str(record.get("task_id") or "task")
    metrics = document["final_metrics"]
    values: dict[str, Any] = {
        "id": uuid.uuid5(_NAMESPACE, f"{run}/{key}"),
        "task_name": task,
        "trial_name": trial_name,
        "trial_uri": f"journeyman:{run}/{key}",
        "task_id": {"path": task},
        "task_checksum": str(record.get("world_digest") or ""),
        "config": {"task": {"path": task}, "trial_name": trial_name, "agent": {"name": document["agent"]["name"]}},
        "agent_info": {"name": document["agent"]["name"], "version": __version__},
        "agent_result": {
            "n_input_tokens": metrics["total_prompt_tokens"],
            "n_output_tokens": metrics["total_completion_tokens"],
            "rollout_details": [_rollout(document)],
            "metadata": {n: record[n] for n in ("outcome", "cause", "stop_reason") if record.get(n) is not None},
        },
        "verifier_environment_mode": "separate",
        "exception_info": _exception(record),
        "reward_valid": record.get("reward") is not None,
    }
    if record.get("reward") is not None:
        values["verifier_result"] = {"rewards": {"reward": record["reward"]}}
    return TrialResult.model_validate(values)


def _rollout(document: dict[str, Any]) -> dict[str, Any]:
    calls = [step["metrics"] for step in document["steps"] if "metrics" in step]
    return {
        "prompt_token_ids": [call["prompt_token_ids"] for call in calls],
        "completion_token_ids": [call["completion_token_ids"] for call in calls],
        "logprobs": [call["logprobs"] for call in calls],
        "extra": {"loss_mask": [call["extra"]["loss_mask"] for call in calls]},
    }


def _exception(record: Record) -> dict[str, Any] | None:
    """What ended the trial early: an error, a broken verifier, or a limit that Harbor has a name for."""
    verdict = record.get("verdict") or {}
    error = record.get("error")
    if error:
        name, message = error[0], error[1]
    elif verdict.get("kind") == "verifier_error":
        name, message = str(verdict.get("error")), str(verdict.get("explain") or "")
    elif record.get("reward") is None:
        name, message = str(record.get("cause") or "NoReward"), "the trial has no valid reward"
    elif record.get("stop_reason") in EXCEPTIONS:
        name, message = str(record["stop_reason"]), "a limit that was declared to the agent ran out"
    else:
        return None
    return {
        "exception_type": EXCEPTIONS.get(name, name),
        "exception_message": message,
        "exception_traceback": f"{name}: {message}",
        "occurred_at": record.get("finished_at") or now(),
    }


def _content(record: Record, document: dict[str, Any]) -> TrialContent:
    verifier = {"details.json": json.dumps(record["verdict"]).encode()} if record.get("verdict") else {}
    if record.get("reward") is not None:
        verifier["reward.json"] = json.dumps({"reward": record["reward"]}).encode()
    texts = {n: str(text).encode() for n, text in (record.get("deliverables") or {}).items() if text is not None}
    entries = [
        ManifestEntry(source=f"/logs/artifacts/{n}", destination=f"artifacts/{n}", type="file", status="ok")
        for n in texts
    ]
    trajectory = json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    return TrialContent(verifier, {"trajectory.json": trajectory}, texts, entries)
