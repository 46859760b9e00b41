"""Reading a dry run back: the record of every trial that counts, and one finding for each that failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.ladder.dryrun.plan import Plan, read_plan
from journeyman.ladder.dryrun.triage import read_triage
from journeyman.tokens.context import Columns, Source
from journeyman.trials.dryrun import ContextUse, Finding, classify_trial
from journeyman.trials.resume import final_rows
from journeyman.trials.store import Run, TrialRow, open_run


@dataclass(frozen=True)
class Evidence:
    """A dry run as it lies on disk.

    Attributes:
        out: its directory.
        plan: what was to run.
        rows: all attempts that ended, cancelled ones included.
        records: the attempt that counts of every trial, by trial id; cancelled ones are no part of it.
        findings: by trial id, of the classifier alone.
        triage: what a person said, see ``triage``.
    """

    out: Path
    plan: Plan
    rows: list[TrialRow]
    records: dict[str, dict[str, Any]]
    findings: dict[str, Finding]
    triage: dict[str, dict[str, str]]

    @property
    def settled(self) -> dict[str, Finding]:
        """The findings, with the class a person gave where one did."""
        return {
            trial_id: replace(finding, failure=self.triage[trial_id]["class"])  # type: ignore[arg-type]
            if trial_id in self.triage
            else finding
            for trial_id, finding in self.findings.items()
        }


def read_evidence(out: Path) -> Evidence:
    """Read a run. Raises InputError where there is none."""
    plan = read_plan(out)
    with open_run(out) as run:
        rows = [row for row in run.trials() if not row.batch]
        last = final_rows(row for row in rows if row.outcome != "cancelled")
        records = {trial_id: run.record(row.key) for trial_id, row in sorted(last.items())}
        findings: dict[str, Finding] = {}
        for trial_id, record in records.items():
            row = last[trial_id]
            found = classify_trial(record, plan.kind, lambda row=row: context_use(run, row))  # type: ignore[misc]
            if found is not None:
                findings[trial_id] = found
    return Evidence(out, plan, rows, records, findings, read_triage(out))


def context_use(run: Run, row: TrialRow) -> ContextUse | None:
    """How the context of a trial that ran out of it was filled; None where it has no tokens."""
    columns = run.trajectory(row.key)
    if not len(columns.ids):
        return None
    return ContextUse(int((columns.source == Source.PROMPT).sum()), _longest(columns), len(columns.ids))


def failed_with(findings: Mapping[str, Finding]) -> dict[str, list[Finding]]:
    """Findings by their defect: what can be repaired before what is the model's, each the most frequent first."""
    found: dict[str, list[Finding]] = {}
    for finding in findings.values():
        found.setdefault(finding.defect, []).append(finding)
    return dict(sorted(found.items(), key=lambda item: (item[1][0].failure == "model", -len(item[1]), item[0])))


def _longest(columns: Columns) -> int:
    """Tokens of the longest stretch of observation."""
    is_seen = np.concatenate([[0], (columns.source == Source.OBSERVATION).astype(np.int8), [0]])
    edges = np.flatnonzero(np.diff(is_seen))
    return int((edges[1::2] - edges[::2]).max()) if len(edges) else 0
