"""What the published recipe tried beside loss and reduction, as data: one that helped and three that did not.

Each is off unless said otherwise, none knows a trainer or a loop: a function turns the switch into an engine's or
harness's option, a penalty per trial, or a shorter list of rows. Published effects: nudge +2.95 points, overlong
filtering -1.5, length penalty neutral to negative, fresh keys and values no gain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field

from journeyman.engines import KvMode
from journeyman.errors import InputError
from journeyman.harness.spec import HarnessSpec

Row = TypeVar("Row")


class _Switch(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LengthPenalty(_Switch):
    """Length that costs reward, more of it where the Group solves its task (arXiv 2506.05256).

    ``penalty = max(mean reward of the Group, floor) (generated g + environment e) / budget_tokens`` with g sampled
    and e given tokens of the trial.
    """

    generated: float = Field(0.0, ge=0)
    """Reward that ``budget_tokens`` sampled tokens cost in a Group that always succeeds."""
    environment: float = Field(0.0, ge=0)
    """Reward that ``budget_tokens`` tokens of tool results and other given text cost there."""
    budget_tokens: int = Field(32768, gt=0)
    """Tokens that both coefficients refer to: a constant of the recipe, never the batch's longest trial."""
    floor: float = Field(0.0, ge=0, le=1)
    """Least share of the penalty that a Group without success pays."""


class Switches(_Switch):
    """The switches of one training run."""

    context_nudge: bool = False
    """A notice inside the tool result once ``nudge_share`` of the context is used; in training trials only."""
    nudge_share: float = Field(0.8, gt=0, lt=1)
    """Share of the context budget: a share, so that training and evaluation may have unequal contexts."""
    overlong: Literal["train", "filter"] = "train"
    """Trials cut at a limit: trained on with their verdict, or left out of the loss after the baseline."""
    length_penalty: LengthPenalty | None = None
    """None takes nothing off a reward."""
    kv_on_update: KvMode = "keep"
    """Keys and values of running trials when weights change: kept, or computed anew under the new weights."""


def training_harness(spec: HarnessSpec, switches: Switches) -> HarnessSpec:
    """The harness of training trials."""
    return replace(spec, nudge=switches.context_nudge, nudge_share=switches.nudge_share)


def evaluation_harness(spec: HarnessSpec) -> HarnessSpec:
    """The harness of evaluation trials: never nudged, whatever training did."""
    return replace(spec, nudge=False)


def length_penalties(
    rewards: ArrayLike,
    groups: ArrayLike,
    generated: ArrayLike,
    environment: ArrayLike,
    penalty: LengthPenalty | None,
) -> NDArray[np.float64]:
    """What each trial's length costs: give it to ``group_advantages`` as ``penalties``.

    Args:
        rewards: [trials], as the verifier gave them, 0 to 1.
        groups: [trials], equal values belong together.
        generated, environment: tokens [trials] that were sampled and that were given after the prompt.

    Returns:
        float64 [trials], in units of reward, at least 0.

    Raises:
        InputError: columns of unequal length.
    """
    r, g = np.asarray(rewards, dtype=np.float64), np.asarray(groups)
    tokens = [np.asarray(column, dtype=np.float64) for column in (generated, environment)]
    if not r.shape == g.shape == tokens[0].shape == tokens[1].shape or r.ndim != 1:
        shapes = [column.shape for column in (r, g, *tokens)]
        raise InputError("length_penalties", f"columns of shapes {shapes}", allowed="equal lengths")
    if penalty is None:
        return np.zeros(len(r))
    _, index, count = np.unique(g, return_inverse=True, return_counts=True)
    solved = np.maximum(np.bincount(index, r) / count, penalty.floor)[index] if len(r) else r
    cost = penalty.generated * tokens[0] + penalty.environment * tokens[1]
    return np.asarray(solved * cost / penalty.budget_tokens, dtype=np.float64)


def kept_rows(rows: Sequence[Row], truncated: Sequence[bool], switches: Switches) -> list[Row]:
    """The rows that reach the loss. Left-out trials have already counted in their Group's baseline.

    Args:
        rows: one for each trial, advantages set.
        truncated: per row, whether its trial was cut at a limit of context, turns or tokens.
    """
    if len(rows) != len(truncated):
        raise InputError("truncated", f"{len(truncated)} values for {len(rows)} rows", allowed="one for each row")
    if switches.overlong == "train":
        return list(rows)
    return [row for row, cut in zip(rows, truncated, strict=True) if not cut]
