"""The report in words: Markdown for people who read later, a few lines for the terminal. No figure is made here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from journeyman.ladder.dryrun.triage import agreement_line
from journeyman.trials.dryrun import CLASSES


def share(found: Mapping[str, Any]) -> str:
    """A rate with its interval."""
    if found["share"] is None:
        return "no trial"
    return (
        f"{100 * found['share']:.1f} % ({found['count']} of {found['n']}), "
        f"{100 * found['low']:.1f} to {100 * found['high']:.1f} %"
    )


def headline(report: Mapping[str, Any]) -> str:
    """The verdict in a sentence."""
    found, gate = report["non_model_errors"], 100 * report["gate"]
    if report["verdict"] == "not judged":
        broke = report["broken"]
        if broke["count"] > report["abort_at"] * report["planned"]:
            bound = 100 * report["abort_at"]
            return f"not judged: {broke['count']} of {report['planned']} trials broke; at most {bound:g} % may"
        return f"not judged: {report['ended']} of {report['planned']} trials ended; the same command goes on"
    words = f"non-model errors {share(found)} ({found['interval']}); the gate allows {gate:g} %"
    if report["verdict"] == "pass" and found["high"] > report["gate"]:
        words += f"; so few trials cannot show that the rate is below {gate:g} %"
    return f"{report['verdict']}: {words}"


def lines(report: Mapping[str, Any]) -> Iterator[str]:
    """What the terminal shows."""
    at = report["boundary"]
    yield (
        f"dry run of {at['tasks']} tasks x {at['samples']}, policy {at['policy']}, harness {at['harness']} "
        f"({at['harness_sha256'][:12]}), seed {at['seed']}"
    )
    yield ""
    failures = [(name, share(report["failures"][name]), CLASSES[name]) for name in CLASSES]
    yield from aligned(("failure", "trials", "meaning"), failures)
    yield ""
    if report["operations"]:
        slow = [(o["operation"], f"{o['p50_s']:.3f}", f"{o['p95_s']:.3f}", str(o["n"])) for o in report["operations"]]
        yield from aligned(("slowest", "p50 s", "p95 s", "n"), slow)
        yield ""
    bad = [c for c in report["calls"] if c["errors"]["count"]]
    if bad:
        rows = [(c["tool"], c["shape"], share(c["errors"]), str(c["schema_errors"])) for c in bad]
        yield from aligned(("tool", "arguments", "errors", "schema"), rows)
        yield ""
    if report["context_exhausted"] is not None:
        yield f"context exhausted: {share(report['context_exhausted'])}"
    yield dropped(report["drops"])
    for number, defect in enumerate(report["defects"], start=1):
        yield f"{number}. {defect['defect']}: {counted(defect)}"
        yield f"   {defect['evidence']}"
        yield f"   {defect['path']}"
        yield f"   {defect['show']}"
    if report["findings"]:
        yield agreement_line(report["triage"])
    yield headline(report)


def markdown(report: Mapping[str, Any]) -> str:
    """The whole report as a page."""
    at = report["boundary"]
    parts = ["# Dry run", "", f"**{headline(report)}**", ""]
    parts += table(("boundary", "value"), [(name, str(value)) for name, value in at.items()])
    mean = report["mean_reward"]
    parts += ["", f"Mean reward of the {mean['n']} trials with a valid one: {number_or_none(mean['mean'])}.", ""]
    parts += ["## Failures", ""]
    parts += table(
        ("class", "trials, 95 % interval", "meaning"),
        [(name, share(report["failures"][name]), CLASSES[name]) for name in CLASSES],
    )
    parts += ["", "## Top defects", ""]
    rows = [
        (d["defect"], counted(d), d["evidence"], d["where"], f"`{d['trial_id']}`, `{d['path']}`, `{d['show']}`")
        for d in report["defects"]
    ]
    parts += table(("defect", "seen", "evidence", "where", "first trial, its folder, how to see it"), rows)
    parts += ["", "## Slowest operations", ""]
    slow = [
        (o["operation"], f"{o['p50_s']:.3f}", f"{o['p95_s']:.3f}", f"{o['max_s']:.3f}", str(o["n"]))
        for o in report["operations"]
    ]
    parts += table(("operation", "p50, s", "p95, s", "max, s", "n"), slow)
    parts += ["", "## Tool errors", ""]
    rows4 = [
        (c["tool"], c["shape"], share(c["errors"]), str(c["schema_errors"]), c["example"] or "-")
        for c in report["calls"]
    ]
    parts += table(("tool", "arguments", "errors, 95 % interval", "against the schema", "first trial"), rows4)
    parts += ["", "## Context and groups", ""]
    if report["context_exhausted"] is not None:
        parts += [f"Context exhausted: {share(report['context_exhausted'])}.", ""]
    parts += [f"{dropped(report['drops'])}.", ""]
    worst = [
        (
            d["task_id"],
            f"{d['trials'] - d['valid']} of {d['trials']}",
            ", ".join(f"{k} {n}" for k, n in d["causes"].items()),
        )
        for d in report["drops"]["worst"]
    ]
    parts += table(("group", "dropped", "causes"), worst)
    parts += ["", "## Triage", "", f"{agreement_line(report['triage'])}.", ""]
    return "\n".join(parts)


def dropped(found: Mapping[str, Any]) -> str:
    """Group drops in a sentence."""
    return (
        f"dropped without a valid reward: {100 * found['rate']:.1f} % of trials, in {found['groups_with_drops']} of "
        f"{found['groups']} groups"
    )


def counted(defect: Mapping[str, Any]) -> str:
    """How often a defect was seen."""
    trials, tasks = defect["trials"], defect["tasks"]
    return f"{trials} trial{'s' if trials != 1 else ''} of {tasks} task{'s' if tasks != 1 else ''}"


def number_or_none(value: float | None) -> str:
    """Three decimals, or a dash."""
    return "-" if value is None else f"{value:.3f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table; without rows, a line that says so."""
    body = [f"| {' | '.join(cell.replace('|', chr(92) + '|').replace(chr(10), ' ') for cell in row)} |" for row in rows]
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *body] if body else ["None."]


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A plain table in columns."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
