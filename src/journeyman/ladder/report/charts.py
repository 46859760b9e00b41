"""Where the lines of a chart go: plain geometry in SVG user units, drawn by the template. Every chart has a table
twin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from journeyman.evals.score import Score
from journeyman.evals.wording import clipped
from journeyman.ladder.report.figures import Curve, Point, Series
from journeyman.ladder.report.sections import FamilyRow

WIDTH, HEIGHT = 680, 308
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 14, 52
FOREST_LEFT, FOREST_BOTTOM = 130, 52
_TICKS = 8


@dataclass(frozen=True)
class Tick:
    """Position along an axis and its label."""

    at: float
    label: str


@dataclass(frozen=True)
class Line:
    """One drawn series: the path through its points, the outline of its interval band, and its markers."""

    name: str
    path: str
    band: str
    markers: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class LineChart:
    """A curve in a frame of ``WIDTH`` x ``HEIGHT`` units."""

    curve: Curve
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Whisker:
    """One interval of a forest plot; ``low`` and ``high`` are None when there is no interval."""

    which: str
    y: float
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Forest:
    """Before and after by family on a scale from 0 to 1."""

    height: int
    labels: tuple[Tick, ...]
    ticks: tuple[Tick, ...]
    whiskers: tuple[Whisker, ...]


def line_chart(curve: Curve) -> LineChart | None:
    """Geometry of a curve; None when no point can be drawn."""
    log = curve.y_scale == "log"
    shown = [[point for point in series.points if _drawable(point, log)] for series in curve.series]
    points = [point for series in shown for point in series]
    if not points:
        return None
    scores = all(series.kind for series in curve.series)
    x_low, x_high, x_ticks = _axis([point.x for point in points], log=False)
    heights = [v for p in points for v in (p.y, p.low, p.high) if v is not None and not (log and v <= 0)]
    y_low, y_high, y_ticks = (0.0, 1.0, [0.0, 0.25, 0.5, 0.75, 1.0]) if scores else _axis(heights, log=log)

    def x_at(value: float) -> float:
        return round(LEFT + (value - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT), 2)

    def y_at(value: float) -> float:
        low, high, v = (math.log10(max(u, 1e-300)) if log else u for u in (y_low, y_high, value))
        share = min(1.0, max(0.0, (v - low) / (high - low)))
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 2)

    return LineChart(
        curve=curve,
        x_ticks=tuple(Tick(x_at(v), f"{v:g}") for v in x_ticks),
        y_ticks=tuple(Tick(y_at(v), f"{v:g}") for v in y_ticks),
        lines=tuple(
            _line(
                series,
                [(x_at(p.x), y_at(p.y or 0.0)) for p in kept],
                [(x_at(p.x), y_at(p.low), y_at(p.high)) for p in kept if p.low is not None and p.high is not None],
            )
            for series, kept in zip(curve.series, shown, strict=True)
        ),
    )


def forest(rows: Sequence[FamilyRow]) -> Forest | None:
    """Forest plot of pass@1 before and after by family; None without rows."""
    if not rows:
        return None
    step, top = 44, 10
    labels, whiskers = [], []
    for i, row in enumerate(rows):
        middle = top + step * i + step / 2
        labels.append(Tick(middle, row.family))
        for which, score, offset in (("before", row.before.pass_1, -8), ("after", row.after.pass_1, 8)):
            whisker = _whisker(which, score, middle + offset)
            if whisker:
                whiskers.append(whisker)
    ticks = tuple(Tick(_forest_x(v), f"{v:g}") for v in (0, 0.25, 0.5, 0.75, 1))
    return Forest(top + step * len(rows) + FOREST_BOTTOM, tuple(labels), ticks, tuple(whiskers))


def span_at(share: float) -> float:
    """Position of a share in a small interval plot of 100 units with a margin of 4."""
    return round(4 + 92 * min(1.0, max(0.0, share)), 2)


def _forest_x(share: float) -> float:
    return round(FOREST_LEFT + share * (WIDTH - FOREST_LEFT - RIGHT), 2)


def _whisker(which: str, score: Score, y: float) -> Whisker | None:
    if score.value is None:
        return None
    ends = clipped(score)
    low, high = (_forest_x(ends[0]), _forest_x(ends[1])) if ends else (None, None)
    return Whisker(which, y, _forest_x(score.value), low, high)


def _drawable(point: Point, log: bool) -> bool:
    return point.y is not None and not (log and point.y <= 0)


def _line(series: Series, points: Sequence[tuple[float, float]], band: Sequence[tuple[float, float, float]]) -> Line:
    outline = [(x, high) for x, _, high in band] + [(x, low) for x, low, _ in reversed(band)]
    return Line(series.name, _path(points), _path(outline) + "Z" if len(band) > 1 else "", tuple(points))


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points) if points else ""


def _axis(values: Sequence[float], *, log: bool) -> tuple[float, float, list[float]]:
    """Ends and round ticks that hold all values; decades on a log axis."""
    low, high = min(values), max(values)
    if log:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        last = max(last, first + 1)
        stride = max(1, (last - first) // _TICKS)
        return 10.0**first, 10.0**last, [10.0**e for e in range(first, last + 1, stride)]
    if low == high:
        low, high = low - 0.5, high + 0.5
    step = _round_step((high - low) / _TICKS)
    ticks = [step * i for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    return low, high, [round(tick, 12) for tick in ticks]


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
