"""The parts every step may use: gates, tables, curves. All frozen, unknown fields refused, no NaN.

A field that would differ between two equal runs carries ``json_schema_extra={"measures": ...}`` (``measured``):
``time``, ``memory`` or ``interruption``. Columns, gates, curves and files that do so as a whole say
``measures_time=True``.
"""

from __future__ import annotations

import math
import re
from typing import Any, Literal

from pydantic import Field, FiniteFloat, JsonValue, model_validator

from journeyman.evals.score import Score, Word, check_kind
from journeyman.evals.table import check_column, check_pair

Measure = Literal["time", "memory", "interruption"]
Comparison = Literal[">=", ">", "<=", "<", "=="]
Status = Literal["passed", "failed", "skipped", "running"]

_HOLDS = {
    ">=": lambda value, threshold: value >= threshold,
    ">": lambda value, threshold: value > threshold,
    "<=": lambda value, threshold: value <= threshold,
    "<": lambda value, threshold: value < threshold,
    "==": lambda value, threshold: value == threshold,
}

TIME_NAME = re.compile(r"(?:^|_)(?:s|ms|min|at|seconds|per_second|per_s|per_cpu_s)$")
"""Names that measure time: durations ``*_s``, instants ``*_at``, rates ``*_per_second``."""


def measured(what: Measure, default: Any = ..., **constraints: Any) -> Any:
    """A pydantic field that two equal runs may differ in; ``without_time`` removes it."""
    return Field(default, json_schema_extra={"measures": what}, **constraints)


class Gate(Word):
    """One condition and what was measured against it.

    Attributes:
        metric: what was measured, in words or as a metric path.
        value: the measurement, None when it could not be made.
        threshold, comparison: the condition ``value comparison threshold``.
        passed: whether it holds; None when ``value`` is None. ``Gate.of`` computes it and the model refuses another.
        detail: n, interval, what to look at; one sentence.
        measures_time: the metric depends on speed, so ``value`` and ``passed`` are left out of comparisons of runs.
    """

    metric: str = Field(min_length=1)
    value: FiniteFloat | None
    threshold: FiniteFloat
    comparison: Comparison
    passed: bool | None
    detail: str = ""
    measures_time: bool = False

    @classmethod
    def of(
        cls,
        metric: str,
        value: float | None,
        comparison: Comparison,
        threshold: float,
        *,
        detail: str = "",
        measures_time: bool = False,
    ) -> Gate:
        """A judged gate. A measurement that is not a finite number is none: the gate does not pass and says so."""
        if value is not None and not math.isfinite(value):
            value, detail = None, f"measured {value}" + (f"; {detail}" if detail else "")
        passed = None if value is None else bool(_HOLDS[comparison](value, threshold))
        return cls(
            metric=metric,
            value=value,
            threshold=threshold,
            comparison=comparison,
            passed=passed,
            detail=detail,
            measures_time=measures_time,
        )

    @model_validator(mode="after")
    def _consistent(self) -> Gate:
        expected = None if self.value is None else bool(_HOLDS[self.comparison](self.value, self.threshold))
        if self.passed is not expected:
            raise ValueError(
                f"gate {self.metric}: passed = {self.passed}, but {self.value} {self.comparison} {self.threshold} "
                f"is {expected}"
            )
        return self


class Column(Word):
    """One column of a table.

    Attributes:
        name: heading.
        kind: score kind of every Score in it; None for a column without scores.
        unit: e.g. ``s``, ``tokens``; empty for a share or a word.
        measures_time: the whole column is left out when two runs are compared; required for units of time.
    """

    name: str = Field(min_length=1)
    kind: str | None = None
    unit: str = ""
    measures_time: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> Column:
        if self.kind is not None:
            check_kind(self.kind)
        timed = self.unit in ("s", "ms", "min", "h") or self.unit.endswith(("/s", "/cpu-s", "cpu-s"))
        if (timed or TIME_NAME.search(self.name)) and not self.measures_time:
            raise ValueError(f'column "{self.name}" measures time; set measures_time=True')
        return self


Cell = Score | FiniteFloat | int | bool | str | None


class Table(Word):
    """A table as data. A Score stands only in a column of its kind; ``mean_reward`` and ``pass@1`` come together.

    Attributes:
        title: caption.
        columns, rows: every row has one cell per column.
        note: footer: estimator, cluster unit, what is left out.
    """

    title: str = Field(min_length=1)
    columns: tuple[Column, ...] = Field(min_length=1)
    rows: tuple[tuple[Cell, ...], ...] = ()
    note: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> Table:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f'table "{self.title}": {len(row)} cells in a row of {len(self.columns)} columns')
            for cell, column in zip(row, self.columns, strict=True):
                check_column(column.name, column.kind, [cell] if isinstance(cell, Score) else [])
        check_pair(column.kind for column in self.columns)
        return self


class Point(Word):
    """One point of a curve: ``y`` with its interval and n; None where nothing could be measured."""

    x: FiniteFloat
    y: FiniteFloat | None
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None
    n: int | None = Field(default=None, ge=0)


class Series(Word):
    """One line of a curve; ``kind`` is its score kind, None when it shows no score (a loss, a gap)."""

    name: str = Field(min_length=1)
    kind: str | None = None
    points: tuple[Point, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Series:
        if self.kind is not None:
            check_kind(self.kind)
        return self


class Curve(Word):
    """Lines over one x axis, drawn and printed as a table.

    Attributes:
        x_name, y_name: axis titles with their units.
        series: at most four lines, so that each can have its own dash and marker.
        y_scale: ``log`` for losses and gaps; points that are not above 0 are then left out of the drawing.
        note: what a point averages over.
    """

    title: str = Field(min_length=1)
    x_name: str
    y_name: str
    series: tuple[Series, ...] = Field(min_length=1, max_length=4)
    y_scale: Literal["linear", "log"] = "linear"
    note: str = ""
    measures_time: bool = False


def check_evidence(evidence: dict[str, JsonValue], where: str) -> None:
    """Refuse (ValueError) keys named like a measurement of time, at any depth, and numbers that are not finite."""
    for key, value in evidence.items():
        if TIME_NAME.search(key):
            raise ValueError(f"{where}.{key} measures time; put it into timing, which comparisons of runs leave out")
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                check_evidence(item, f"{where}.{key}")
            if isinstance(item, float) and not math.isfinite(item):
                raise ValueError(f"{where}.{key} is {item}; write null for what could not be measured")
