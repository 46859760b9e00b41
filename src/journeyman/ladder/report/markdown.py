"""``report.md``: the report as text that reads well in a terminal and on a code host."""

from __future__ import annotations

import json
import re

from journeyman.ladder.report import grids, grids_run
from journeyman.ladder.report.grid import Grid, GridCell
from journeyman.ladder.report.model import Report, Step
from journeyman.ladder.report.replay import Trajectory
from journeyman.ladder.report.wording import MARKS, duration, gate_text, gate_word, size, verdict_sentence

_SPECIAL = re.compile(
    r"""[\\`*|]                                  # always
    |<(?=[A-Za-z/!?])|&(?=\#?\w+;)               # tags, entities
    |\[(?=\^|[^\]]*\][(\[:])|^\[                 # links, footnotes
    |(?<!\w)_|_(?!\w)|~                          # emphasis
    |^[\#+=-](?=[\#+=-]*(?:\s|$))|^>          # headings, lists, quotes
    """,
    re.VERBOSE,
)
_NUMBERED = re.compile(r"^(\d+)([.)])(?=\s|$)")


def render_markdown(report: Report) -> str:
    """The whole report as GitHub-flavoured Markdown; text of documents and models is escaped."""
    parts = [
        f"# {escape(report.run.name)}: {MARKS[report.status]} {report.status}",
        verdict_sentence(report),
        _run_line(report),
        *(f"> **Warning.** {escape(line)}" for line in report.warnings),
        _grid(grids_run.steps(report)),
        *_results(report),
        *_learning(report),
        *_evidence(report),
        *([_replay(report.replay)] if report.replay else []),
        *_provenance(report),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(text: str) -> str:
    """Text that Markdown shows as it is, on one line; what has no meaning to Markdown stays readable as it was."""
    return _NUMBERED.sub(r"\1\\\2", _SPECIAL.sub(r"\\\g<0>", " ".join(text.split())))


def _run_line(report: Report) -> str:
    run = report.run
    facts = [
        f"seed {run.seed}",
        f"profile {run.profile}",
        f"journeyman {run.version}",
        f"wall {duration(run.wall_s)}",
        f"CPU {duration(run.cpu_s)}" + (f" ({run.cpu_source})" if run.cpu_source else ""),
        f"peak memory {size(run.peak_memory_mb)}",
    ]
    return escape(" · ".join(facts)) + f"  \nRun again: `{run.command.replace('`', '')}`"


def _results(report: Report) -> list[str]:
    honesty = "\n".join(f"> - {escape(line)}" for line in report.honesty)
    parts = ["## Result", f"> **Before you believe a number**\n>\n{honesty}"]
    if report.models:
        parts.append(_grid(grids.models(report)))
    if report.transfer:
        parts.append(_grid(grids.transfer(report)))
    return parts


def _learning(report: Report) -> list[str]:
    parts = []
    if report.reward_curve:
        parts += ["## Learning curve", _grid(grids.curve(report.reward_curve))]
    if report.families:
        parts += ["## By task family", _grid(grids.families(report))]
    if report.behaviour:
        parts += ["## Behaviour", _grid(grids.behaviour(report))]
    if report.ablation:
        parts += ["## Ablation", _grid(grids.ablation(report.ablation)), escape(report.ablation.conclusion)]
    return parts


def _evidence(report: Report) -> list[str]:
    parts = ["## Gates and evidence", *(part for step in report.steps for part in _step(step))]
    if report.errors:
        parts += ["## Errors", _grid(grids_run.errors(report.errors))]
    if report.logprob_gaps:
        parts += ["## Logprob gap", _grid(grids_run.gaps(report))]
    parts += [_grid(grids.curve(curve)) for curve in report.curves]
    return parts


def _step(step: Step) -> list[str]:
    parts = [f"### {step.number} {escape(step.name)}: {MARKS[step.status]} {step.status}", escape(step.summary)]
    if step.gate:
        parts.append(f"Gate: {escape(step.gate.metric)}: {escape(gate_text(step.gate))}, {gate_word(step.gate)}.")
    if step.gate or step.checks:
        parts.append(_grid(grids_run.gates(step)))
    facts = {**step.evidence, **step.timing}
    lines = [f"- {escape(key)}: {escape(json.dumps(value, ensure_ascii=False))}" for key, value in facts.items()]
    parts.append("\n".join(lines))
    return [*parts, *(_grid(grids_run.table(table)) for table in step.tables)]


def _replay(replay: Trajectory) -> str:
    verdict = replay.verdict
    lines = [
        "## One trial, token by token",
        f"{escape(replay.task_id)} ({escape(replay.family)}, {escape(replay.split)}): {escape(replay.instruction)}",
        escape(replay.why),
    ]
    for turn in replay.turns:
        text = "".join(token.text for token in turn.tokens)
        lines.append(f"**{turn.role}**, turn {turn.index}, {len(turn.tokens)} tokens")
        lines.append("\n".join(f"    {line}" for line in text.splitlines() or [""]))
    reward = "no reward" if verdict.reward is None else f"reward {verdict.reward:g}"
    lines.append(f"Verdict: {verdict.kind}, {reward}. {escape(verdict.explain)}")
    if verdict.checks:
        lines.append(_grid(grids.checks(replay)))
    return "\n\n".join(line for line in lines if line)


def _provenance(report: Report) -> list[str]:
    parts = [
        "## Test split",
        _grid(grids_run.openings(report)) if report.openings else "The test split was never opened.",
    ]
    if report.boundaries:
        parts += ["## Systems", _grid(grids_run.boundaries(report))]
    if report.run.machine:
        parts.append("\n".join(f"- {escape(name)}: {escape(value)}" for name, value in report.run.machine.items()))
    if report.manifest:
        parts += ["## Files", _grid(grids_run.manifest(report))]
    return parts


def _grid(grid: Grid) -> str:
    heads = [escape(head) for head in grid.heads]
    rule = ["---:" if i in grid.numeric else "---" for i in range(len(heads))]
    rows = [[_cell(cell) for cell in row] for row in grid.rows]
    lines = ["| " + " | ".join(line) + " |" for line in [heads, rule, *rows]]
    notes = [f"*{escape(note)}*" for note in grid.notes]
    return "\n\n".join([f"**{escape(grid.caption)}**", "\n".join(lines), *notes])


def _cell(cell: GridCell) -> str:
    return escape(cell.plain)
