"""The sections about the run as grids: steps and gates, tables of steps, errors, gaps, openings, systems, files."""

from __future__ import annotations

from journeyman.evals.score import Score
from journeyman.ladder.report.figures import Column, Gate, Table
from journeyman.ladder.report.grid import (
    Grid,
    GridCell,
    grid,
    interval_notes,
    real,
    score_cell,
    whole,
    word,
)
from journeyman.ladder.report.model import Report, Step
from journeyman.ladder.report.sections import ErrorTable
from journeyman.ladder.report.wording import MARKS, duration, gate_text, gate_word, yes


def steps(report: Report) -> Grid:
    """The seven steps with their gates."""
    rows = [
        (
            word(f"{step.number} {step.name}"),
            word(f"{MARKS[step.status]} {step.status}"),
            word(step.gate.metric if step.gate else "no gate reached"),
            word(gate_text(step.gate) if step.gate else ""),
            GridCell(duration(step.wall_s), step.wall_s),
            GridCell(duration(step.cpu_s), step.cpu_s),
        )
        for step in report.steps
    ]
    return grid("Steps and their gates", ("step", "status", "gate", "measured", "wall", "CPU"), rows)


def gates(step: Step) -> Grid:
    """Gate and checks of one step."""
    listed = [("gate", step.gate)] if step.gate else []
    return grid(
        f"Gate and checks of step {step.number}",
        ("metric", "", "measured", "condition", "result", "detail"),
        [_gate_row(role, gate) for role, gate in [*listed, *(("check", check) for check in step.checks)]],
    )


def _gate_row(role: str, gate: Gate) -> tuple[GridCell, ...]:
    condition = f"{gate.comparison} {gate.threshold:g}"
    return (word(gate.metric), word(role), real(gate.value), word(condition), word(gate_word(gate)), word(gate.detail))


def errors(found: ErrorTable) -> Grid:
    """Every row of the error table, zeros included."""
    rows = [
        (
            word(row.cause),
            whole(row.n_trials),
            word(yes(row.retry)),
            word(yes(row.grade)),
            word(yes(row.reward_valid)),
            word(row.meaning),
            word(row.example),
        )
        for row in found.rows
    ]
    heads = ("cause", "trials", "retried", "graded", "reward counts", "meaning", "first example")
    return grid("Error table", heads, rows)


def gaps(report: Report) -> Grid:
    """Engine minus trainer logprob gap per step."""
    rows = [
        (whole(row.step), real(row.mean), real(row.q99), real(row.q999), real(row.max), whole(row.n_tokens))
        for row in report.logprob_gaps
    ]
    return grid(
        "Absolute logprob gap, engine against trainer, sampled tokens",
        ("RL step", "mean", "99 % quantile", "99.9 % quantile", "max", "tokens"),
        rows,
    )


def openings(report: Report) -> Grid:
    """Who opened the test split, when, and for what."""
    rows = [
        (
            word(row.by),
            word(row.purpose),
            word(row.opened_at),
            whole(row.n_worlds),
            whole(row.n_tasks),
            whole(row.n_times),
        )
        for row in report.openings
    ]
    return grid("Openings of the test split", ("opened by", "for", "first at", "worlds", "tasks", "times"), rows)


def boundaries(report: Report) -> Grid:
    """The systems that scores were measured on."""
    rows = [
        (
            word(row.name),
            word(row.model),
            word(row.harness),
            word(", ".join(row.tools)),
            word(row.judge),
            word(", ".join(f"{name} {value:g}" for name, value in row.budgets.items())),
            word(row.decoding),
            word(row.split),
            word("no price table" if row.dollars is None else f"{row.dollars:.2f}"),
        )
        for row in report.boundaries
    ]
    heads = ("system", "model", "harness", "tools", "judge", "budgets per trial", "decoding", "worlds", "dollars")
    return grid("Systems the scores were measured on", heads, rows)


def manifest(report: Report) -> Grid:
    """Files and their digests."""
    rows = [
        (word(row.name, code=True), word(row.role), whole(row.size_bytes), word(row.sha256, code=True))
        for row in report.manifest
    ]
    return grid("Files and digests", ("file", "role", "bytes", "sha256"), rows)


def table(found: Table) -> Grid:
    """A table of a step."""
    heads = [_head(column) for column in found.columns]
    scores = [cell for row in found.rows for cell in row if isinstance(cell, Score)]
    rows = [[_plain_cell(cell) for cell in row] for row in found.rows]
    return grid(found.title, heads, rows, notes=(found.note, *interval_notes(scores)))


def _head(column: Column) -> str:
    kind = f" ({column.kind})" if column.kind and column.kind != column.name else ""
    return column.name + kind + (f", {column.unit}" if column.unit else "")


def _plain_cell(cell: Score | float | bool | str | None) -> GridCell:
    if isinstance(cell, Score):
        return score_cell(cell)
    if isinstance(cell, bool):
        return word(yes(cell))
    return word(cell) if cell is None or isinstance(cell, str) else real(cell)
