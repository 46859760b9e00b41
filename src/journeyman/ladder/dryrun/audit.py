"""The audit of a dry run: rates with intervals, the gate, the slowest operations, tools, drops and top defects."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

from journeyman.durable import write_json, write_text
from journeyman.ladder.dryrun.evidence import Evidence, failed_with, read_evidence
from journeyman.ladder.dryrun.figures import quantiles, rate
from journeyman.ladder.dryrun.run import BROKEN
from journeyman.ladder.dryrun.text import markdown
from journeyman.ladder.dryrun.triage import agreement
from journeyman.redact import process_redactor
from journeyman.trials.dryrun import CLASSES, Finding
from journeyman.trials.dryrun.shapes import durations, tally_calls
from journeyman.trials.groups import drop_report
from journeyman.trials.store.hot import place_of

REPORT_JSON, REPORT_MD = "report.json", "report.md"
TOP_DEFECTS, TOP_CALLS, TOP_OPERATIONS, TOP_DROPS = 10, 20, 12, 20

DEFAULT_GATE, DEFAULT_ABORT_AT = 0.01, 0.20

Audit = dict[str, Any]


def audit_run(out: Path, *, gate: float = DEFAULT_GATE, abort_at: float = DEFAULT_ABORT_AT) -> Audit:
    """Judge what ran and write ``report.json`` and ``report.md``.

    Args:
        out: the run directory.
        gate: largest non-model error rate that passes.
        abort_at: share of broken trials above which nothing can be judged.

    Returns:
        the report as JSON; ``verdict`` is ``pass``, ``fail`` or ``not judged``.
    """
    report: Audit = process_redactor().data(make_audit(read_evidence(out), gate=gate, abort_at=abort_at))
    write_json(out / REPORT_JSON, report)
    write_text(out / REPORT_MD, markdown(report))
    return report


def audit_again(out: Path) -> Audit:
    """Judge a run once more by the bounds of its last report, e.g. after triage."""
    try:
        last = json.loads((out / REPORT_JSON).read_text(encoding="utf-8"))
        bounds = {"gate": float(last["gate"]), "abort_at": float(last["abort_at"])}
    except (OSError, ValueError, KeyError):
        bounds = {}
    return audit_run(out, **bounds)


def make_audit(evidence: Evidence, *, gate: float, abort_at: float) -> Audit:
    """The report of what was read; pure."""
    plan, records, findings = evidence.plan, evidence.records, evidence.settled
    trial_ids = list(records)
    tasks = [str(records[trial_id].get("task_id", "")) for trial_id in trial_ids]
    kinds = [findings[trial_id].failure if trial_id in findings else None for trial_id in trial_ids]
    broke = rate([records[trial_id].get("outcome") in BROKEN for trial_id in trial_ids], tasks)
    non_model = rate([kind is not None and kind != "model" for kind in kinds], tasks)
    is_over = broke["count"] > abort_at * plan.num_trials
    finished = len(trial_ids) == plan.num_trials
    verdict = "not judged" if is_over or not finished else "pass" if non_model["share"] <= gate else "fail"
    rewards = [r["reward"] for r in records.values() if r.get("reward") is not None]
    out_of_context = [records[trial_id].get("stop_reason") == "limit.context" for trial_id in trial_ids]
    return {
        "schema_version": 1,
        "out": str(evidence.out),
        "boundary": boundary(evidence),
        "verdict": verdict,
        "gate": gate,
        "abort_at": abort_at,
        "planned": plan.num_trials,
        "ended": len(trial_ids),
        "non_model_errors": non_model,
        "broken": broke,
        "failures": {name: rate([kind == name for kind in kinds], tasks) for name in CLASSES},
        "mean_reward": {"mean": sum(rewards) / len(rewards) if rewards else None, "n": len(rewards)},
        "context_exhausted": rate(out_of_context, tasks) if plan.kind == "model" else None,
        "outcomes": dict(Counter(str(r.get("outcome")) for r in records.values())),
        "operations": operations(evidence),
        "calls": calls(evidence),
        "drops": drops(evidence),
        "defects": [defect(evidence, found) for found in list(failed_with(findings).values())[:TOP_DEFECTS]],
        "findings": [
            {**findings[trial_id].as_json(), "classifier": evidence.findings[trial_id].failure}
            for trial_id in sorted(findings)
        ],
        "triage": agreement(list(evidence.findings.values()), evidence.triage),
    }


def boundary(evidence: Evidence) -> dict[str, Any]:
    """What the figures were measured on."""
    plan = evidence.plan
    return {
        "policy": plan.policy,
        "harness": plan.harness,
        "harness_sha256": plan.harness_sha256,
        "tasks": len(plan.tasks),
        "samples": plan.samples,
        "seed": plan.seed,
        "temperature": plan.temperature,
        "version": plan.version,
    }


def operations(evidence: Evidence) -> list[dict[str, Any]]:
    """The slowest operations by p95."""
    rows = [{"operation": name, **quantiles(values)} for name, values in durations(evidence.records.values()).items()]
    return sorted(rows, key=lambda row: -row["p95_s"])[:TOP_OPERATIONS]


def calls(evidence: Evidence) -> list[dict[str, Any]]:
    """Error rates by tool and shape of arguments, most errors first."""
    return [
        {
            "tool": entry.tool,
            "shape": entry.shape,
            "errors": rate(entry.are_errors, entry.tasks),
            "schema_errors": entry.num_schema_errors,
            "example": entry.example,
        }
        for entry in tally_calls(evidence.records.values())[:TOP_CALLS]
    ]


def drops(evidence: Evidence) -> dict[str, Any]:
    """How many trials of each group have no valid reward, and why."""
    report = drop_report(evidence.rows)
    lost = [task for task in report.tasks if task.valid < task.trials]
    return {
        "rate": report.rate,
        "groups": len(report.tasks),
        "groups_with_drops": len(lost),
        "unclassified": report.unclassified,
        "worst": [
            {"task_id": t.task_id, "trials": t.trials, "valid": t.valid, "causes": t.causes} for t in lost[:TOP_DROPS]
        ],
    }


def defect(evidence: Evidence, found: list[Finding]) -> dict[str, Any]:
    """One defect: how often, and its first trial with where it lies and how to look at it."""
    first = found[0]
    return {
        "defect": first.defect,
        "failure": first.failure,
        "trials": len(found),
        "tasks": len({finding.task_id for finding in found}),
        "evidence": first.evidence,
        "where": first.where,
        "trial_id": first.trial_id,
        "path": str(evidence.out / place_of(first.trial_id, first.attempt)),
        "show": f"journeyman dry-run show {shlex.quote(str(evidence.out))} {shlex.quote(first.trial_id)}",
    }


def exit_code(report: Audit) -> int:
    """0 passed, 1 the audit finished and the gate failed, 4 it could not be judged."""
    return {"pass": 0, "fail": 1, "not judged": 4}[str(report["verdict"])]
