"""One trial of a dry run for a person: what was asked, what it did, how it was graded, and what the classifier says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from journeyman.errors import InputError, nearest
from journeyman.ladder.dryrun.evidence import Evidence
from journeyman.trials.dryrun import CLASSES, Finding

MAX_TEXT = 1_200
"""Characters shown of an observation."""


def show_trial(evidence: Evidence, trial_id: str) -> Iterator[str]:
    """Lines about a trial. Raises InputError when the run has no such trial that ended."""
    record = evidence.records.get(trial_id)
    if record is None:
        near = nearest(trial_id, evidence.records)
        raise InputError(str(evidence.out), f"no trial {trial_id!r} ended", hint=f"nearest: {near}" if near else None)
    yield f"{trial_id}, attempt {record.get('attempt', 1)}: {record.get('outcome')}, reward {record.get('reward')}"
    yield from _instruction(evidence, str(record.get("task_id", "")))
    for number, turn in enumerate(record.get("turns") or (), start=1):
        for call in turn.get("calls") or ():
            arguments = json.dumps(call.get("arguments"), ensure_ascii=False)
            yield f"turn {number}: {call.get('tool') or 'unreadable call'} {arguments}: {call.get('status')}"
        yield from _indented(str(turn.get("observation", "")))
    yield f"stopped: {record.get('stop_reason')}"
    if record.get("error"):
        yield f"error: {': '.join(str(part) for part in record['error'])}"
    for name, text in (record.get("deliverables") or {}).items():
        yield f"delivered {name}: {str(text)[:MAX_TEXT]}"
    verdict = record.get("verdict") or {}
    if verdict:
        yield f"verdict: {verdict.get('kind')} {verdict.get('explain', '')}".rstrip()
    for check in verdict.get("checks") or ():
        yield f"  {check.get('id')} ({check.get('kind')}): {check.get('score')} {check.get('explain')}"
    finding = evidence.findings.get(trial_id)
    if finding is not None:
        yield from describe(finding)
        if trial_id in evidence.triage:
            yield f"  a person says: {evidence.triage[trial_id]['class']}"


def describe(finding: Finding) -> Iterator[str]:
    """What the classifier says of a failure, and on what evidence."""
    yield f"{finding.trial_id}: {finding.failure} ({CLASSES[finding.failure]})"
    yield f"  rule: {finding.rule}{': ' + finding.subject if finding.subject else ''}"
    yield f"  seen in {finding.where}: {finding.evidence}"


def _instruction(evidence: Evidence, task_id: str) -> Iterator[str]:
    path = next((Path(task.path) for task in evidence.plan.tasks if task.id == task_id), None)
    if path is not None and (path / "instruction.md").is_file():
        yield from _indented((path / "instruction.md").read_text(encoding="utf-8"))


def _indented(text: str) -> Iterator[str]:
    shown = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}\n[{len(text) - MAX_TEXT} characters left out]"
    yield from (f"    {line}" for line in shown.splitlines())
