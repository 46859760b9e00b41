"""``report.html``: one self-contained page. No network, no script; every chart has a table twin; all text is
escaped."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from journeyman.evals.wording import difference_interval, number, score_interval, signed
from journeyman.ladder.report import charts, grids, grids_run
from journeyman.ladder.report.figures import Curve
from journeyman.ladder.report.model import Report
from journeyman.ladder.report.wording import (
    MARKS,
    compact,
    count,
    duration,
    gate_text,
    gate_word,
    size,
    verdict_sentence,
)

HEAT_STEPS = 5
"""Shades of a sampled token, from likely (0) to surprising (4)."""


def render_html(report: Report) -> str:
    """The whole report as one HTML page."""
    page = _environment().get_template("report.html.j2")
    return page.render(
        report=report,
        grids=grids,
        grids_run=grids_run,
        charts=charts,
        sentence=verdict_sentence(report),
        headline=headline(report),
        curves=[_drawn(curve) for curve in report.curves],
        reward=_drawn(report.reward_curve) if report.reward_curve else None,
        forest=charts.forest(report.families),
    )


def headline(report: Report) -> list[dict[str, str]]:
    """The key figures under the title: gain under each harness, the trained score, the cost of the run."""
    figures = []
    for row in report.transfer:
        gain = row.gains.pass_1
        seen = "harness of the training" if row.trained_under else "second harness, never trained under"
        figures.append(
            {
                "label": f"pass@1 gain, {row.harness}",
                "value": signed(gain.value),
                "interval": difference_interval(gain),
                "detail": f"{seen}; {gain.n_tasks} tasks, {gain.n_worlds} worlds",
            }
        )
    for model in [row for row in report.models if row.role == "trained"][:1]:
        score = model.scores.pass_1
        figures.append(
            {
                "label": f"pass@1 trained, {model.harness}",
                "value": number(score.value),
                "interval": score_interval(score),
                "detail": f"{model.decoding}; {score.n_tasks} tasks, {score.n_trials} trials",
            }
        )
    return figures


def heat(logprob: float | None) -> int:
    """Shade of a sampled token: 0 above probability 0.9, then 0.5, 0.1, 0.01, and below."""
    if logprob is None:
        return 0
    return sum(logprob < bound for bound in (-0.105361, -0.693147, -2.302585, -4.605170))


def _drawn(curve: Curve) -> dict[str, Any]:
    return {"curve": curve, "chart": charts.line_chart(curve), "grid": grids.curve(curve)}


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("journeyman.ladder.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["marks"] = MARKS
    environment.filters.update(
        compact=compact,
        count=count,
        duration=duration,
        gate_text=gate_text,
        gate_word=gate_word,
        heat=heat,
        json=lambda value: json.dumps(value, ensure_ascii=False),
        number=number,
        size=size,
        span_at=charts.span_at,
    )
    return environment
