"""Rubrics: criteria that a judge answers with yes or no, and the reward they make.

``tests/rubric.json`` keeps a rubric. How criteria are scored is named by the source; a way of scoring or of evaluating
that nobody here knows is a verifier error, never a guess.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from journeyman.tasks.errors import VerifierMissing

FILE = "rubric.json"
JUDGED = ("output_llm", "output_llm_lite")
"""Evaluations that a question to a judge answers: is this criterion met by the answer and the files?"""


class Criterion(BaseModel):
    """One criterion.

    Attributes:
        id: as the source names it.
        criterion: what must be true, in words.
        evaluation: how it is found out; ``JUDGED`` ones by a judge.
        weight: for ways of scoring that weigh.
        is_primary: the main objective of the task.
        depends_on: ids of other criteria, as the source names them.
        values: everything else the source says about it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    criterion: Annotated[str, Field(min_length=1)]
    evaluation: str = "output_llm"
    weight: Annotated[float, Field(allow_inf_nan=False)] = 1.0
    is_primary: bool = False
    depends_on: tuple[str, ...] = ()
    values: dict[str, Any] = Field(default_factory=dict)


class Rubric(BaseModel):
    """All criteria of a task.

    Attributes:
        scoring: name of the way they make a reward; a key of ``SCORINGS``.
        judge: what the source says about its judge (model, arguments); a hint, not a setting.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = 1
    criteria: Annotated[tuple[Criterion, ...], Field(min_length=1)]
    scoring: str = "template"
    scoring_values: dict[str, Any] = Field(default_factory=dict)
    judge: dict[str, Any] = Field(default_factory=dict)


def _mean(criteria: Sequence[Criterion], met: Mapping[str, bool]) -> float:
    return sum(met[c.id] for c in criteria) / len(criteria)


def _weighted(criteria: Sequence[Criterion], met: Mapping[str, bool]) -> float:
    weights = [max(c.weight, 0.0) for c in criteria]
    total = sum(weights)
    return sum(w * met[c.id] for w, c in zip(weights, criteria, strict=True)) / total if total else _mean(criteria, met)


SCORINGS: dict[str, Callable[[Sequence[Criterion], Mapping[str, bool]], float]] = {
    "template": _mean,
    "weighted_mean": _weighted,
}
"""Ways of making one reward in [0, 1] of criteria: Archipelago's ``template`` is the plain mean."""


def read_rubric(tests: Path) -> Rubric:
    """The rubric of a task's ``tests`` directory. Raises VerifierMissing when there is none that can be read."""
    try:
        return Rubric.model_validate_json((tests / FILE).read_bytes())
    except (OSError, ValidationError) as error:
        raise VerifierMissing(f"{tests / FILE}: {error}") from error


def rubric_json(rubric: Rubric) -> bytes:
    """As it is written."""
    return (json.dumps(rubric.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n").encode()
