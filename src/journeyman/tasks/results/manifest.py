"""``artifacts/manifest.json``: what was to be collected, where it lies, and whether it is there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, Literal

from pydantic import ValidationError

from journeyman.errors import InputError
from journeyman.tasks.results.trial_result import Part
from journeyman.tasks.task_sections import Artifact

CONVENTION = "/logs/artifacts"
"""Collected from the main container of every task, declared or not."""


class ManifestEntry(Part):
    """One artifact.

    Attributes:
        source: where it was, inside.
        destination: where it is, below the trial's directory.
        service: None is ``main``.
        exclude: patterns that were left out; None in old manifests.
    """

    source: str
    destination: str
    type: Literal["file", "directory"]
    status: Literal["ok", "failed", "empty", "skipped"]
    service: str | None = None
    exclude: list[str] | None = None


def parse_manifest(data: bytes, where: str) -> tuple[ManifestEntry, ...]:
    """The entries of a manifest. Raises InputError when it is none."""
    try:
        rows = json.loads(data)
        if not isinstance(rows, list):
            raise InputError(where, f"is no list of artifacts but a {type(rows).__name__}")
        return tuple(ManifestEntry.model_validate(row) for row in rows)
    except (ValueError, RecursionError, ValidationError) as error:
        raise InputError(where, f"is no list of artifacts: {error}") from error


def manifest_json(entries: Sequence[ManifestEntry]) -> list[dict[str, Any]]:
    """The manifest as JSON-able data."""
    return [entry.model_dump(mode="json") for entry in entries]


def place_of(artifact: Artifact) -> PurePosixPath:
    """Where an artifact goes below ``artifacts/``: its destination, or its source without the leading slash."""
    return PurePosixPath(
        *(part for part in PurePosixPath(artifact.destination or artifact.source).parts if part != "/")
    )


def collected(artifacts: Sequence[Artifact]) -> list[Artifact]:
    """What a collection pass takes: the conventional directory first, unless an entry names it itself."""
    named = any(a.source.rstrip("/") == CONVENTION and a.service == "main" for a in artifacts)
    return [*artifacts] if named else [Artifact(source=CONVENTION), *artifacts]


def overlapping(artifacts: Sequence[Artifact]) -> list[tuple[Artifact, Artifact]]:
    """Pairs that would write to the same place; of such a pair the first is kept and the second skipped."""
    found = []
    taken = collected(artifacts)
    for number, first in enumerate(taken):
        for second in taken[number + 1 :]:
            if _covers(first, second):
                continue
            left, right = place_of(first), place_of(second)
            if left == right or left in right.parents or right in left.parents:
                found.append((first, second))
    return found


def _covers(first: Artifact, second: Artifact) -> bool:
    """Whether collecting ``first`` already puts ``second`` where it belongs."""
    outer, inner = PurePosixPath(first.source), PurePosixPath(second.source)
    if first.service != second.service or not inner.is_relative_to(outer):
        return False
    if inner == outer and place_of(first) == place_of(second):
        return first.exclude == second.exclude
    return not first.exclude and place_of(second) == place_of(first) / inner.relative_to(outer)
