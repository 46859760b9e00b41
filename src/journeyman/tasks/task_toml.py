"""``task.toml`` of a Harbor task directory, schema 1.4, as models.

The models accept what Harbor 0.26 accepts and keep unknown keys, which ``unknown_keys`` lists so that a misspelt key is
reported instead of silently dropped. They are stricter where Harbor lets nonsense through: times and sizes are positive
and finite, and an unknown major version is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AliasChoices, Field, field_validator, model_validator

from journeyman.tasks.field_types import (
    SCHEMA_MAJOR,
    SCHEMA_VERSION,
    DeliverablePath,
    Finite,
    OrgName,
    SchemaVersion,
    Section,
    StepName,
    step_key,
)
from journeyman.tasks.task_sections import Agent, ArtifactEntry, Environment, Healthcheck, Verifier, VerifierMode

__all__ = ["SCHEMA_MAJOR", "SCHEMA_VERSION", "Journeyman", "Step", "TaskToml", "unknown_keys"]


class Author(Section):
    name: str
    email: str | None = None


class TaskSection(Section):
    """``[task]``: identity. ``name`` is ``org/name``."""

    name: OrgName
    version: Annotated[str, Field(min_length=1)] | None = None
    description: str = ""
    authors: tuple[Author, ...] = ()
    keywords: tuple[str, ...] = ()


class Journeyman(Section):
    """``[metadata.journeyman]``: where a task of our own comes from.

    Attributes:
        deliverables: files below ``/logs/artifacts`` that are graded; a name that ends in ``/`` is a directory.
        inputs: world files that the prompt lists, of all that the agent may open; empty lists every file.
        exit_code: what a non-zero status of the test script means: ``error`` (a verifier error) or ``ignore`` (Harbor's
            rule: a valid reward file counts).
        grading: ``script``, or ``rubric``: by a judge, from ``tests/rubric.json``.
    """

    family: str
    world_id: str
    split: str
    world_digest: str
    deliverables: tuple[DeliverablePath, ...]
    inputs: tuple[str, ...] = ()
    exit_code: Literal["error", "ignore"] = "error"
    grading: Literal["script", "rubric"] = "script"

    @model_validator(mode="after")
    def _a_script_grades_named_files(self) -> Journeyman:
        if not self.deliverables and self.grading == "script":
            raise ValueError("deliverables names no file; allowed: at least one, except with grading = 'rubric'")
        return self


class Metadata(Section):
    """``[metadata]``: a free table, of which only our own parts are typed.

    Attributes:
        reward_range: lowest and highest valid reward of the verifier, for tasks whose rewards are not in [0, 1]; what
            it gives is mapped onto [0, 1], linearly.
    """

    journeyman: Journeyman | None = None
    reward_range: tuple[Finite, Finite] | None = None

    @field_validator("reward_range")
    @classmethod
    def _the_range_is_one(cls, bounds: tuple[float, float] | None) -> tuple[float, float] | None:
        if bounds is not None and not bounds[0] < bounds[1]:
            raise ValueError(f"no range: {bounds[0]} is not below {bounds[1]}")
        return bounds


class Solution(Section):
    """``[solution]``: environment variables of the oracle."""

    env: dict[str, str] = Field(default_factory=dict)


class Step(Section):
    """``[[steps]]``: one of several instructions that follow each other in one environment.

    Attributes:
        name: its directory below ``steps/``.
        min_reward: below it the remaining steps are not run: a number for the key ``reward``, or one per key; a missing
            reward counts as minus infinity.
    """

    name: StepName
    agent: Agent = Agent()
    verifier: Verifier = Verifier()
    min_reward: Finite | dict[str, Finite] | None = None
    healthcheck: Healthcheck | None = None
    artifacts: tuple[ArtifactEntry, ...] = ()


class TaskToml(Section):
    """The whole file."""

    schema_version: SchemaVersion = Field(
        default=SCHEMA_VERSION, validation_alias=AliasChoices("schema_version", "version")
    )
    source: str | None = None
    multi_step_reward_strategy: Literal["mean", "final"] = "mean"
    artifacts: tuple[ArtifactEntry, ...] = ()
    task: TaskSection | None = None
    metadata: Metadata = Metadata()
    agent: Agent = Agent()
    environment: Environment = Environment()
    verifier: Verifier = Verifier()
    solution: Solution = Solution()
    steps: tuple[Step, ...] = ()

    @field_validator("steps")
    @classmethod
    def _names_of_steps_differ(cls, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        seen: set[str] = set()
        for step in steps:
            if step_key(step.name) in seen:
                raise ValueError(f"two steps are named {step.name!r} (case and normalisation do not count)")
            seen.add(step_key(step.name))
        return steps

    def verifier_mode(self, step: Step | None = None) -> VerifierMode:
        """Where the verifier of the task, or of a step, runs: its own word, else the task's, else ``shared``."""
        own = step.verifier.declared_mode if step is not None else None
        return own or self.verifier.declared_mode or "shared"


def unknown_keys(section: Section, prefix: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Dotted path of each key that no model knows, with the names allowed in its table; ``[metadata]`` is free."""
    allowed = tuple(type(section).model_fields)
    if not isinstance(section, Metadata):
        yield from ((f"{prefix}{key}", allowed) for key in section.model_extra or {})
    for name in allowed:
        value = getattr(section, name)
        for index, child in enumerate(value if isinstance(value, tuple) else (value,)):
            if isinstance(child, Section):
                position = f"[{index}]" if isinstance(value, tuple) else ""
                yield from unknown_keys(child, f"{prefix}{name}{position}.")
