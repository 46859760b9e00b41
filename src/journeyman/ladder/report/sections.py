"""The rows of the report's sections: models, transfer, families, behaviour, ablation, errors, openings, gaps, files."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, FiniteFloat, field_validator, model_validator

from journeyman.evals.score import Difference, Ratio, Score, Word
from journeyman.ladder.report.figures import measured


class Scores(Word):
    """The two kinds that every table prints, side by side and never mixed."""

    mean_reward: Score
    pass_1: Score

    @model_validator(mode="after")
    def _kinds(self) -> Scores:
        if (self.mean_reward.kind, self.pass_1.kind) != ("mean_reward", "pass@1"):
            raise ValueError(f"kinds {self.mean_reward.kind}, {self.pass_1.kind}; expected mean_reward, pass@1")
        return self


class Gains(Word):
    """Paired differences in both kinds, B - A over common tasks."""

    mean_reward: Difference
    pass_1: Difference

    @model_validator(mode="after")
    def _kinds(self) -> Gains:
        if (self.mean_reward.kind, self.pass_1.kind) != ("mean_reward", "pass@1"):
            raise ValueError(f"kinds {self.mean_reward.kind}, {self.pass_1.kind}; expected mean_reward, pass@1")
        return self


ModelRole = Literal["clean_base", "warm_start", "trained", "fresh"]


class ModelRow(Word):
    """One model under one harness on held-out worlds; ``label`` is how it is printed."""

    role: ModelRole
    label: str
    harness: str
    decoding: str
    scores: Scores


class Transfer(Word):
    """Trained minus warm start under one harness; ``trained_under`` tells whether RL ever saw this harness."""

    harness: str
    trained_under: bool
    gains: Gains


class FamilyRow(Word):
    """One task family before (warm start) and after training, held-out worlds, training harness."""

    family: str
    before: Scores
    after: Scores
    gains: Gains


class BehaviourRow(Word):
    """One behaviour metric before and after; ``metric`` is its name in ``evals/behaviour.py``."""

    metric: str
    meaning: str
    unit: str = ""
    before: Ratio
    after: Ratio


class AblationRow(Word):
    """One arm under one training seed; ``gains`` is arm minus control of the same seed, None for the control."""

    arm: str
    seed: int
    is_control: bool
    dev: Scores
    gains: Gains | None = None


class Ablation(Word):
    """A declared comparison of arms on dev worlds.

    Attributes:
        factor: what differs between arms.
        family: which comparisons Holm corrects for, declared before the run.
        conclusion: a winner, or that no difference could be told at this n.
    """

    factor: str
    family: str
    rows: tuple[AblationRow, ...]
    conclusion: str


class ErrorRow(Word):
    """One row of the error table, also when ``n_trials`` is 0."""

    cause: str
    n_trials: int = Field(ge=0)
    retry: bool
    grade: bool
    reward_valid: bool
    meaning: str = ""
    example: str = ""


class ErrorTable(Word):
    """Every cause by name.

    Attributes:
        n_trials: all Trials that the figures of the run stand on, failed ones included.
        system_error_share: share that ended in a system or verifier error.
        low, high: its 95 % Wilson interval.
    """

    n_trials: int = Field(ge=0)
    rows: tuple[ErrorRow, ...]
    system_error_share: FiniteFloat | None = None
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None


class Opening(Word):
    """One use of the test split; ``n_times`` is above 1 when an interrupted evaluation was redone."""

    by: str
    purpose: str
    n_worlds: int = Field(ge=0)
    n_tasks: int = Field(ge=0)
    opened_at: str = measured("time")
    n_times: int = measured("interruption", 1, ge=1)


class GapPoint(Word):
    """Absolute logprob difference engine - trainer over the sampled tokens of one RL step."""

    step: int = Field(ge=0)
    mean: FiniteFloat = Field(ge=0)
    q99: FiniteFloat = Field(ge=0)
    q999: FiniteFloat | None = Field(default=None, ge=0)
    max: FiniteFloat = Field(ge=0)
    n_tokens: int = Field(ge=0)


class ManifestEntry(Word):
    """One file or object that made the result, by digest; ``name`` is relative to the run directory."""

    name: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size_bytes: int | None = Field(default=None, ge=0)
    role: str = ""
    measures_time: bool = False

    @field_validator("name")
    @classmethod
    def _relative(cls, name: str) -> str:
        if name.startswith(("/", "~")) or ".." in name.split("/"):
            raise ValueError(f"manifest name must be relative: {name}")
        return name
