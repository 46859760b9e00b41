"""Grades the saved deliverables of a run anew: no agent runs, the verifier alone does, in fresh sandboxes.

For verdicts that broke, and for a verifier that was corrected. A closed trial never changes, so the old verdict stays
where it is and the new one lies beside the trials, in ``regrades/<instant>-<4 hex>/``: ``verdicts.jsonl`` and
``report.json``, published by one rename.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from journeyman.clock import now
from journeyman.durable import publish_directory
from journeyman.errors import InputError, nearest
from journeyman.redact import Redactor
from journeyman.tasks.artifacts import Artifacts, read_artifacts
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.verdict import Verdict
from journeyman.tasks.verify import BatchVerifier
from journeyman.trials.outcome import OUTCOMES, outcome_of
from journeyman.trials.run_tasks import RunTasks
from journeyman.trials.store import Run, TrialRow, open_run

PORTION = 64
"""Trials whose deliverables are in memory at once."""
_ELSEWHERE = re.compile(r"<\d+ bytes in artifacts/>")

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Regraded:
    """One trial, before and after.

    Attributes:
        key: of the trial in its run.
        task_id: what it was asked.
        before, after: ``kind``, ``reward``, ``passed``, ``error`` and ``explain`` of the verdicts; ``before`` is None
            for a trial that had none.
        outcome_before, outcome_after: classes of ``trials.outcome``.
        has_changed: kind, reward, passed or error differ.
    """

    key: str
    task_id: str
    before: dict[str, Any] | None
    after: dict[str, Any]
    outcome_before: str
    outcome_after: str
    has_changed: bool


@dataclass(frozen=True)
class RegradeReport:
    """What came of it.

    Attributes:
        trials: every one that was graded, in order of their keys.
        skipped: reason -> keys of trials that were not.
        place: the directory that holds it.
    """

    trials: tuple[Regraded, ...]
    skipped: Mapping[str, tuple[str, ...]]
    place: Path

    @property
    def changed(self) -> tuple[Regraded, ...]:
        return tuple(trial for trial in self.trials if trial.has_changed)

    @property
    def num_verifier_errors(self) -> int:
        """Verdicts that broke (again): they have no number."""
        return sum(trial.after["kind"] == "verifier_error" for trial in self.trials)

    def moves(self) -> dict[str, int]:
        """``before -> after`` of the outcome classes, with counts."""
        return dict(Counter(f"{t.outcome_before or 'none'} -> {t.outcome_after}" for t in self.trials))


def regrade_run(
    run: Path,
    verifier: BatchVerifier,
    *,
    tasks: RunTasks | None = None,
    only_tasks: Collection[str] = (),
    only_trials: Collection[str] = (),
    redact: Redactor | None = None,
) -> RegradeReport:
    """Verify again and keep both verdicts.

    Args:
        run: a run directory on this machine.
        verifier: made for this alone; its sandboxes are its own.
        tasks: of the run; by default those in ``run/tasks``, else those that it names.
        only_tasks, only_trials: ids of tasks; keys or ids of trials. Empty: all.
        redact: applied to explanations; by default for the secrets that this process holds.

    Raises:
        InputError: no such run, task directory, task or trial; nothing was graded.
        StorageError: the result could not be kept.
    """
    found = tasks or RunTasks(run)
    clean = redact or Redactor.of_environment()
    skipped: dict[str, list[str]] = {}
    done: list[Regraded] = []
    with open_run(run) as opened:
        rows = _chosen(opened, only_tasks, only_trials)
        for portion in _portions(rows):
            items: list[tuple[TrialRow, Record, GradeItem]] = []
            for row in portion:
                item = _item(run, opened, row, found)
                if isinstance(item, str):
                    skipped.setdefault(item, []).append(row.key)
                else:
                    items.append((row, *item))
            verdicts = verifier.grade([item for _, _, item in items]) if items else []
            pairs = zip(items, verdicts, strict=True)
            done += [_compared(row, record, verdict, clean) for (row, record, _), verdict in pairs]
    reasons = {reason: tuple(keys) for reason, keys in sorted(skipped.items())}
    return _kept(run, tuple(done), reasons)


def _chosen(run: Run, only_tasks: Collection[str], only_trials: Collection[str]) -> list[TrialRow]:
    rows = run.trials()
    if not rows:
        raise InputError(str(run.root), "holds no trials", allowed="a run directory")
    task_ids = {row.task_id for row in rows}
    names = {row.key for row in rows} | {row.trial_id for row in rows}
    for flag, wanted, known in (("--task", only_tasks, task_ids), ("--trial", only_trials, names)):
        for name in sorted(set(wanted) - known):
            near = nearest(name, known)
            raise InputError(flag, f"{run.root} has no {name!r}", hint=f"nearest: {near}" if near else None)
    return [
        row
        for row in rows
        if (not only_tasks or row.task_id in only_tasks)
        and (not only_trials or row.key in only_trials or row.trial_id in only_trials)
    ]


def _portions(rows: Sequence[TrialRow]) -> Iterator[list[TrialRow]]:
    waiting = iter(rows)
    while portion := list(islice(waiting, PORTION)):
        yield portion


def _item(run: Path, opened: Run, row: TrialRow, found: RunTasks) -> tuple[Record, GradeItem] | str:
    """What to grade, or why there is nothing to."""
    policy = OUTCOMES.get(row.cause, OUTCOMES["unclassified"])
    if not policy.grade:
        return f"ended as {row.cause}, which is never graded"
    record = opened.record(row.key)
    artifacts = _artifacts(run, row, record)
    if isinstance(artifacts, str):
        return artifacts
    task = found.task(row.task_id)
    if task is None:
        return f"its task is not {found.where}"
    return record, GradeItem(row.key, task, artifacts)


def _artifacts(run: Path, row: TrialRow, record: Record) -> Artifacts | str | None:
    """Deliverables byte for byte, None where nothing was delivered, or why they cannot be had."""
    saved = run / "artifacts" / row.place.removeprefix("trials/")
    if row.place.startswith("trials/") and saved.is_dir():
        return read_artifacts(saved)
    texts: Mapping[str, str] = record.get("deliverables") or {}
    if any(_ELSEWHERE.fullmatch(text) for text in texts.values()):
        return "its deliverables lie in artifacts/, which is gone"
    if any("\ufffd" in text for text in texts.values()):
        return "its deliverables were kept as text and are not text"
    return {name: text.encode() for name, text in texts.items()} or None


def _compared(row: TrialRow, record: Record, verdict: Verdict, redact: Redactor) -> Regraded:
    old = record.get("verdict")
    before = _shown(old, redact) if isinstance(old, Mapping) else None
    after = _shown(verdict.to_dict(), redact)
    policy = OUTCOMES.get(row.cause, OUTCOMES["unclassified"])
    is_ours = policy.reward_valid or row.cause == "verifier_failed"
    outcome_after = outcome_of(verdict, row.stop_reason, None).outcome_class if is_ours else row.outcome
    compared = ("kind", "reward", "passed", "error")
    has_changed = before is None or any(before[name] != after[name] for name in compared)
    return Regraded(row.key, row.task_id, before, after, row.outcome, outcome_after, has_changed)


def _shown(verdict: Mapping[str, Any], redact: Redactor) -> dict[str, Any]:
    names = ("kind", "reward", "passed", "error", "explain")
    shown: dict[str, Any] = redact.data({name: verdict.get(name) for name in names})
    return shown


def _kept(run: Path, trials: tuple[Regraded, ...], skipped: Mapping[str, tuple[str, ...]]) -> RegradeReport:
    instant = now().replace("-", "").replace(":", "")
    place = run / "regrades" / f"{instant}-{os.urandom(2).hex()}"
    report = RegradeReport(trials, skipped, place)
    staging = place.with_name(f".{place.name}.tmp")
    staging.mkdir(parents=True)
    lines = [json.dumps(asdict(trial), ensure_ascii=False, allow_nan=False) + "\n" for trial in trials]
    (staging / "verdicts.jsonl").write_text("".join(lines), encoding="utf-8")
    facts = {
        "graded": len(trials),
        "changed": [trial.key for trial in report.changed],
        "moves": report.moves(),
        "verifier_errors": report.num_verifier_errors,
        "skipped": {reason: list(keys) for reason, keys in skipped.items()},
    }
    (staging / "report.json").write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    publish_directory(staging, place)
    return report
