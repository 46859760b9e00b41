"""The sections about the policy as grids: models, gains, families, curves, behaviour, ablation, trajectory.

Figures are copied from the report, never computed here.
"""

from __future__ import annotations

from journeyman.evals.score import Difference, Ratio
from journeyman.ladder.report.figures import Curve
from journeyman.ladder.report.grid import (
    Grid,
    GridCell,
    difference_cell,
    grid,
    interval_notes,
    p_text,
    real,
    score_cell,
    whole,
    word,
)
from journeyman.ladder.report.model import Report
from journeyman.ladder.report.replay import Trajectory
from journeyman.ladder.report.sections import Ablation, Gains, Scores

SCORE_HEADS = ("mean_reward", "pass@1")
_N_HEADS = ("tasks", "trials", "worlds")


def models(report: Report) -> Grid:
    """The four models side by side, grouped by harness."""
    rows = [
        (
            word(row.label),
            word(row.harness),
            score_cell(row.scores.mean_reward),
            score_cell(row.scores.pass_1, draw=True),
            *_n_cells(row.scores),
            word(row.decoding),
        )
        for row in report.models
    ]
    figures = [score for row in report.models for score in (row.scores.mean_reward, row.scores.pass_1)]
    return grid(
        "Four models on held-out worlds",
        ("model", "harness", *SCORE_HEADS, *_N_HEADS, "decoding"),
        rows,
        notes=interval_notes(figures),
        group_by=1,
    )


def transfer(report: Report) -> Grid:
    """Gain of training under each harness."""
    rows = [
        (
            word(row.harness),
            word("seen in RL" if row.trained_under else "never seen in RL"),
            *_gain_cells(row.gains),
            whole(row.gains.pass_1.n_tasks),
            whole(row.gains.pass_1.n_worlds),
        )
        for row in report.transfer
    ]
    return grid(
        "Trained minus warm start, paired over the same tasks",
        ("harness", "", "mean_reward gain", "pass@1 gain", "p (pass@1)", "result", "tasks", "worlds"),
        rows,
        notes=_gain_notes([row.gains for row in report.transfer]),
    )


def families(report: Report) -> Grid:
    """Before and after by task family."""
    rows = [
        (
            word(row.family),
            score_cell(row.before.mean_reward),
            score_cell(row.after.mean_reward),
            score_cell(row.before.pass_1),
            score_cell(row.after.pass_1),
            difference_cell(row.gains.pass_1),
            word(row.gains.pass_1.winner),
            whole(row.gains.pass_1.n_tasks),
            whole(row.gains.pass_1.n_worlds),
        )
        for row in report.families
    ]
    figures = [s for r in report.families for part in (r.before, r.after) for s in (part.mean_reward, part.pass_1)]
    heads = ("mean_reward before", "mean_reward after", "pass@1 before", "pass@1 after", "pass@1 gain", "result")
    return grid(
        "Before and after by task family, held-out worlds",
        ("family", *heads, "tasks", "worlds"),
        rows,
        notes=interval_notes([*figures, *(row.gains.pass_1 for row in report.families)]),
    )


def curve(drawn: Curve) -> Grid:
    """Table twin of a curve: one row per x, one column per series."""
    xs = sorted({point.x for series in drawn.series for point in series.points})
    by_x = [{point.x: point for point in series.points} for series in drawn.series]
    rows = []
    for x in xs:
        cells = [real(x)]
        sizes = []
        for points in by_x:
            point = points.get(x)
            ends = (point.low, point.high) if point and point.low is not None and point.high is not None else None
            interval = f"[{ends[0]:.3g}, {ends[1]:.3g}]" if ends else ""
            y = point.y if point else None
            cells.append(GridCell("n/a" if y is None else f"{y:.3g}", y, interval, ends))
            if point and point.n is not None:
                sizes.append(point.n)
        rows.append((*cells, whole(max(sizes)) if sizes else word("")))
    heads = [
        series.name if series.kind in (None, series.name) else f"{series.name} ({series.kind})"
        for series in drawn.series
    ]
    return grid(drawn.title, (drawn.x_name, *heads, "n"), rows, notes=(drawn.note,))


def behaviour(report: Report) -> Grid:
    """Behaviour before and after, with the parts of each ratio."""
    rows = [
        (word(row.metric), _ratio_cell(row.before), _ratio_cell(row.after), word(row.unit), word(row.meaning))
        for row in report.behaviour
    ]
    return grid("Behaviour before and after", ("metric", "before", "after", "unit", "meaning"), rows)


def ablation(found: Ablation) -> Grid:
    """Arms by training seed on dev worlds, each against the control of its seed."""
    rows = [
        (
            word(row.arm),
            whole(row.seed),
            score_cell(row.dev.mean_reward),
            score_cell(row.dev.pass_1),
            *(_gain_cells(row.gains, adjusted=True) if row.gains else (word("control"), word(""), word(""), word(""))),
            whole(row.dev.pass_1.n_tasks),
        )
        for row in found.rows
    ]
    gains = [row.gains for row in found.rows if row.gains]
    scores = [score for row in found.rows for score in (row.dev.mean_reward, row.dev.pass_1)]
    return grid(
        f"Ablation of {found.factor}, dev worlds",
        ("arm", "seed", *SCORE_HEADS, "mean_reward gain", "pass@1 gain", "p, Holm", "result", "tasks"),
        rows,
        notes=(
            "Gain: arm minus control of the same seed.",
            f"Family of comparisons, declared before the run: {found.family}.",
            *interval_notes([*scores, *(gain.pass_1 for gain in gains)]),
            *_test_notes(gains),
        ),
    )


def checks(replay: Trajectory) -> Grid:
    """Checks of the replayed Trial's verdict."""
    rows = [(word(c.id), word(c.kind), real(c.score), word(c.explain)) for c in replay.verdict.checks]
    return grid("Checks of the verifier", ("check", "kind", "score", "why"), rows)


def tokens(replay: Trajectory) -> Grid:
    """Table twin of the token view."""
    rows = [
        (
            whole(position),
            whole(turn.index),
            word(token.text.replace("\n", "⏎"), code=True),
            whole(token.id),
            word(token.source),
            whole(token.mask),
            word("") if token.logprob is None else GridCell(f"{token.logprob:.4f}", token.logprob),
            word("") if token.version is None else whole(token.version),
        )
        for position, (turn, token) in enumerate((turn, token) for turn in replay.turns for token in turn.tokens)
    ]
    heads = ("position", "turn", "text", "id", "source", "mask", "logprob", "weight version")
    return grid("Tokens of the replayed trial", heads, rows)


def _n_cells(scores: Scores) -> tuple[GridCell, ...]:
    one = scores.pass_1
    return whole(one.n_tasks), whole(one.n_trials), whole(one.n_worlds)


def _gain_cells(gains: Gains, *, adjusted: bool = False) -> tuple[GridCell, ...]:
    one = gains.pass_1
    p = one.p_adjusted if adjusted else one.p
    below = one.word != "tie" and one.mde is not None and one.value is not None and abs(one.value) < one.mde
    return (
        difference_cell(gains.mean_reward),
        difference_cell(one),
        GridCell(p_text(p), p),
        GridCell(one.winner, mark="below MDE" if below else ""),
    )


def _gain_notes(gains: list[Gains]) -> tuple[str, ...]:
    return (
        *interval_notes(figure for gain in gains for figure in (gain.mean_reward, gain.pass_1)),
        *_test_notes(gains),
    )


def _test_notes(gains: list[Gains]) -> tuple[str, ...]:
    ones: list[Difference] = [gain.pass_1 for gain in gains]
    methods = sorted({one.p_method for one in ones if one.p_method})
    detectable = [one.mde for one in ones if one.mde is not None]
    tests = f"p: {'; '.join(methods)}." if methods else ""
    smallest = f"Detectable at 80 % power: pass@1 differences of {max(detectable):.3f} or more." if detectable else ""
    unpaired = max((one.n_tasks_unpaired for one in ones), default=0)
    apart = f"At most {unpaired} tasks had no partner." if unpaired else ""
    return tests, smallest, apart


def _ratio_cell(ratio: Ratio) -> GridCell:
    parts = f"({ratio.numerator:g} / {ratio.denominator:g})"
    text = "n/a" if ratio.value is None else f"{ratio.value:.3g}"
    return GridCell(text, ratio.value, mark=parts)
