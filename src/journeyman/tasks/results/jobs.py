"""``jobs/<job>/<trial>/`` read and written: result, configuration, reward files, artifacts, steps, logs.

Reading follows no link and opens no special file: an agent wrote part of what lies there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from journeyman.durable import publish_directory, storage_error
from journeyman.errors import InputError
from journeyman.tasks.artifacts import Artifacts, read_artifacts, stays_inside
from journeyman.tasks.errors import VerifierFault
from journeyman.tasks.field_types import step_key
from journeyman.tasks.results.manifest import ManifestEntry, manifest_json, parse_manifest
from journeyman.tasks.results.trial_result import TrialResult, parse_trial_result, result_json, unknown_result_keys
from journeyman.tasks.reward_file import UNIT, Bounds, read_plain_file, read_rewards

MAX_RESULT_BYTES = 256_000_000
"""Results hold token ids of every turn, so they may be long; more is refused."""


@dataclass(frozen=True)
class TrialFiles:
    """A trial's directory.

    Attributes:
        path: the directory.
        result: its ``result.json``.
        manifest: ``artifacts/manifest.json``; empty where there is none.
        rewards: what our rules make of ``verifier/reward.json`` or ``reward.txt``; None where they refuse it or it is
            absent, and then ``reward_problem`` says why. Harbor's own reading is ``result.verifier_result``.
        reward_problem: None where there is a valid reward.
        exception: text of ``exception.txt``, or None.
        warnings: keys nobody knows, and rewards that Harbor counts and we refuse.
    """

    path: Path
    result: TrialResult
    manifest: tuple[ManifestEntry, ...]
    rewards: Mapping[str, float] | None
    reward_problem: str | None
    exception: str | None
    warnings: tuple[str, ...]

    def artifacts(self, step: str | None = None) -> dict[str, bytes]:
        """The collected files by name below ``artifacts/``, of the trial or of one of its steps; the manifest apart."""
        root = self.path / "artifacts" if step is None else self.path / "steps" / step / "artifacts"
        found = read_artifacts(root) if root.is_dir() else {}
        return {name: data for name, data in found.items() if name != "manifest.json"}


@dataclass(frozen=True)
class JobFiles:
    """A job's directory: its own documents as they stand, and its trials, sorted by name."""

    path: Path
    config: Mapping[str, Any]
    result: Mapping[str, Any]
    trials: tuple[TrialFiles, ...]


@dataclass(frozen=True)
class TrialContent:
    """What of a trial is written besides its result.

    Attributes:
        verifier, agent: files below those directories, by relative path.
        artifacts: files below ``artifacts/``; without the manifest.
        steps: the same per step.
        log: text of ``trial.log``.
    """

    verifier: Artifacts = field(default_factory=dict)
    agent: Artifacts = field(default_factory=dict)
    artifacts: Artifacts = field(default_factory=dict)
    manifest: Sequence[ManifestEntry] = ()
    steps: Mapping[str, TrialContent] = field(default_factory=dict)
    log: str = ""


def read_trial(directory: Path, bounds: Bounds = UNIT) -> TrialFiles:
    """Read a trial.

    Args:
        bounds: lowest and highest valid reward of its task.

    Raises:
        InputError: no ``result.json`` here, or it or the manifest is none.
    """
    path = directory / "result.json"
    data = read_plain_file(path, MAX_RESULT_BYTES)
    if data is None:
        raise InputError(str(path), "is missing; a trial has one")
    result = parse_trial_result(data, str(path))
    listed = read_plain_file(directory / "artifacts" / "manifest.json")
    rewards: Mapping[str, float] | None = None
    problem: str | None = None
    try:
        rewards = read_rewards(directory / "verifier", bounds)
    except VerifierFault as fault:
        problem = f"{type(fault).__name__}: {fault}"
    warnings = [f"{path}: unknown key {key} is kept" for key in unknown_result_keys(result)]
    counted = result.verifier_result.rewards if result.verifier_result else None
    if counted and rewards is None and (directory / "verifier").is_dir():
        warnings.append(f"{directory}: Harbor counts {counted}; refused here: {problem}")
    exception = read_plain_file(directory / "exception.txt")
    return TrialFiles(
        path=directory,
        result=result,
        manifest=parse_manifest(listed, str(directory / "artifacts/manifest.json")) if listed is not None else (),
        rewards=rewards,
        reward_problem=problem,
        exception=exception.decode(errors="replace") if exception is not None else None,
        warnings=tuple(warnings),
    )


def read_job(directory: Path) -> JobFiles:
    """Read a job and all its trials. Raises InputError for what is no job, or as ``read_trial``."""
    if not directory.is_dir():
        raise InputError(str(directory), "is not a directory", allowed="a job: jobs/<name>")
    trials = sorted(p.parent for p in directory.glob("*/result.json") if not p.parent.is_symlink())
    result, config = _document(directory / "result.json"), _document(directory / "config.json")
    if not trials and not result:
        raise InputError(str(directory), "holds neither result.json nor trials")
    return JobFiles(directory, config, result, tuple(read_trial(path) for path in trials))


def _document(path: Path) -> dict[str, Any]:
    data = read_plain_file(path, MAX_RESULT_BYTES)
    try:
        found = {} if data is None else json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(str(path), f"is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InputError(str(path), f"holds a {type(found).__name__}, not an object")
    return found


def write_trial(job: Path, result: TrialResult, content: TrialContent) -> Path:
    """Write ``job/<trial_name>/``; seen as a whole or not at all. An existing one is replaced.

    Raises:
        InputError: the trial's or a step's name, or a file's, is no name below its directory.
        StorageError: the place cannot be written.
    """
    name = result.trial_name
    if not stays_inside(name) or "/" in name:
        raise InputError("trial_name", f"{name!r} is no directory name")
    staging = job / f".{name}.{os.getpid()}.tmp"
    try:
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True)
        _put(staging, "result.json", _json(result_json(result)))
        _put(staging, "config.json", _json(result.config))
        _put(staging, "trial.log", content.log.encode())
        if result.exception_info is not None:
            _put(staging, "exception.txt", result.exception_info.exception_traceback.encode())
        _write_content(staging, content)
        for step, inner in content.steps.items():
            if not stays_inside(step) or "/" in step or not step_key(step):
                raise InputError("steps", f"{step!r} is no directory name")
            _write_content(staging / "steps" / step, inner)
        publish_directory(staging, job / name)
    except OSError as error:
        raise storage_error(job / name, error) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return job / name


def _write_content(root: Path, content: TrialContent) -> None:
    for folder in ("agent", "verifier", "artifacts"):
        (root / folder).mkdir(parents=True, exist_ok=True)
        for name, data in getattr(content, folder).items():
            if not stays_inside(name) or (folder == "artifacts" and name == "manifest.json"):
                raise InputError(folder, f"{name!r} is no file of it")
            _put(root / folder, name, data)
    _put(root / "artifacts", "manifest.json", _json(manifest_json(content.manifest)))


def _put(root: Path, name: str, data: bytes) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False).encode()
