"""Compare two runs: a report without what equal runs may differ in.

A run that was killed and continued must equal an uninterrupted one in every figure that does not measure time. So
fields marked ``measures`` in the schema are dropped, and so are columns, gates, curves and files that say
``measures_time``.
"""

from __future__ import annotations

from typing import Any

from pydantic.fields import FieldInfo

from journeyman.evals.score import Word
from journeyman.ladder.report.figures import Curve, Gate, Table
from journeyman.ladder.report.model import Report
from journeyman.ladder.report.sections import ManifestEntry


def without_time(report: Report) -> dict[str, Any]:
    """The report as JSON-able data without every field that measures time, memory or interruptions.

    Two runs of one recipe and seed give equal results here, however often they were interrupted.
    """
    kept = _kept(report)
    assert isinstance(kept, dict)
    return kept


def measures(field: FieldInfo) -> str | None:
    """What a field is marked to measure (``time``, ``memory``, ``interruption``), None for the others."""
    extra = field.json_schema_extra
    found = extra.get("measures") if isinstance(extra, dict) else None
    return found if isinstance(found, str) else None


def _kept(part: Any) -> Any:
    if isinstance(part, Table):
        part = _without_timed_columns(part)
    if isinstance(part, Word):
        dropped = {"value", "passed", "detail"} if isinstance(part, Gate) and part.measures_time else set()
        return {
            name: _kept(getattr(part, name))
            for name, field in type(part).model_fields.items()
            if measures(field) is None and name not in dropped
        }
    if isinstance(part, dict):
        return {key: _kept(value) for key, value in part.items()}
    if isinstance(part, tuple | list):
        return [_kept(item) for item in part if not (isinstance(item, Curve | ManifestEntry) and item.measures_time)]
    return part


def _without_timed_columns(table: Table) -> Table:
    kept = [i for i, column in enumerate(table.columns) if not column.measures_time]
    return table.model_copy(
        update={
            "columns": tuple(table.columns[i] for i in kept),
            "rows": tuple(tuple(row[i] for i in kept) for row in table.rows),
        }
    )
