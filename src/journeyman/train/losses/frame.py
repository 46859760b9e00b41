"""The one frame around every policy loss: names and knobs, mask, correction, weights, counts.

Only trainable tokens reach a loss, so whatever stands at the others, finite or not, cannot change value or gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from journeyman.errors import InputError, nearest
from journeyman.train.losses.corrections import CORRECTIONS, WEIGHING, CorrectionKnobs
from journeyman.train.losses.protocol import Knobs, LossInputs, LossOutput
from journeyman.train.losses.table import LOSSES

if TYPE_CHECKING:
    from torch import Tensor

K = TypeVar("K", bound=BaseModel)


@dataclass(frozen=True)
class PolicyLoss:
    """A loss and a correction with checked knobs, ready to be applied to any part of a step.

    Attributes:
        name, correction: entries of ``LOSSES`` and ``CORRECTIONS`` (or "none").
        knobs, correction_knobs: their validated knobs.
        needs: columns that must be given: ``logp_rollout``, ``logp_old``, and the loss's ``extra_columns``.
    """

    name: str
    knobs: Knobs
    correction: str
    correction_knobs: CorrectionKnobs | None

    @property
    def needs(self) -> frozenset[str]:
        if self.correction == "none":
            return self.knobs.needs
        return self.knobs.needs | {"logp_old", "logp_rollout"}

    def apply(
        self,
        *,
        logp_rollout: Tensor,
        logp_old: Tensor | None,
        logp_new: Tensor,
        advantages: Tensor,
        mask: Tensor,
        weights: Tensor,
        sequence_of: Tensor,
        extra: Mapping[str, Tensor] | None = None,
    ) -> LossOutput:
        """As ``policy_loss``, with everything about names already checked; ``extra`` holds the ``extra_columns``."""
        if logp_old is None and "logp_old" in self.needs:
            hint = "give the trainer's logprobs before the step"
            raise InputError("logp_old", f"None, but {self.name} with correction {self.correction} needs it", hint=hint)
        import torch

        columns = {"logp_rollout": logp_rollout, "advantages": advantages, "mask": mask, "weights": weights}
        columns |= {"sequence_of": sequence_of} | ({} if logp_old is None else {"logp_old": logp_old})
        for field, column in columns.items():
            _check_shape(field, column, logp_new.shape)
        extra = self._extra(extra or {}, len(logp_new))
        dtype, where = logp_new.dtype, mask.bool()

        def trainable(column: Tensor) -> Tensor:
            return column.detach()[where].to(dtype)

        sequences, sequence_index = torch.unique(sequence_of[where], return_inverse=True)
        x = LossInputs(
            logp_rollout=trainable(logp_rollout),
            logp_old=None if logp_old is None else trainable(logp_old),
            logp_new=logp_new[where],
            advantages=trainable(advantages),
            sequence_index=sequence_index,
            num_sequences=len(sequences),
            extra={field: trainable(column) for field, column in extra.items()},
        )
        return self._reduce(x, trainable(weights), where)

    def _extra(self, given: Mapping[str, Tensor], tokens: int) -> Mapping[str, Tensor]:
        for field in self.knobs.extra_columns:
            if field not in given:
                raise InputError(field, f"missing, but {self.name} needs it", allowed=f"float [{tokens}, k]")
            width = given[self.knobs.extra_columns[0]].shape[-1]
            _check_shape(field, given[field], (tokens, width))
        return {field: given[field] for field in self.knobs.extra_columns}

    def _reduce(self, x: LossInputs, weights: Tensor, where: Tensor) -> LossOutput:
        token = self.knobs.token_loss(x)
        values, kept = token.values, token.kept
        counts = {
            "tokens": where,
            "dropped/high": ~kept & (x.advantages > 0),
            "dropped/low": ~kept & (x.advantages < 0),
        }
        counts |= token.flags
        if self.correction != "none":
            factor = CORRECTIONS[self.correction][1](x, self.correction_knobs)
            counts["dropped/correction"] = (factor == 0) & (x.advantages != 0)
            values, kept = values * factor, kept & (factor > 0)
        kept_of_all = where.clone()
        kept_of_all[where] = kept
        metrics = {name: float(flag.sum()) for name, flag in counts.items()}
        return LossOutput((values * weights).sum(), kept_of_all, metrics)


def resolve_loss(name: str, *, correction: str = "none", params: Mapping[str, Any] | None = None) -> PolicyLoss:
    """Check a loss, a correction and their knobs by name, without torch.

    ``params`` may hold knobs of both; each knob goes to whoever declares it.

    Raises:
        InputError: unknown name or knob (with the nearest match), a value out of range, or a pair that would count the
            same ratio twice.
    """
    loss_type = _entry("loss", name, LOSSES)
    correction_type = (
        None if correction == "none" else _entry("correction", correction, {**CORRECTIONS, "none": None})[0]
    )
    params = dict(params or {})
    correction_fields = set(correction_type.model_fields) if correction_type else set()
    shared = correction_fields & set(loss_type.model_fields)
    if shared:
        raise InputError("correction", f"{correction} and {name} both have {', '.join(sorted(shared))}", allowed="none")
    allowed = set(loss_type.model_fields) | correction_fields
    for key in params:
        if key not in allowed:
            match = nearest(key, allowed)
            hint = f"did you mean {match}?" if match else None
            names = ", ".join(sorted(allowed)) or "none"
            raise InputError(f"{name}.{key}", "is no parameter of this loss", allowed=names, hint=hint)
    knobs = _build(name, loss_type, {k: v for k, v in params.items() if k not in correction_fields})
    if correction in WEIGHING and knobs.ratio_anchor == "rollout":
        problem = f"{correction} on {name} would count old / mu twice: its ratio already starts at the rollout"
        raise InputError("correction", problem, allowed="none or a mask")
    correction_knobs = None
    if correction_type:
        given = {k: v for k, v in params.items() if k in correction_fields}
        correction_knobs = _build(correction, correction_type, given)
    return PolicyLoss(name, knobs, correction, correction_knobs)


def policy_loss(
    name: str,
    *,
    logp_rollout: Tensor,
    logp_old: Tensor | None,
    logp_new: Tensor,
    advantages: Tensor,
    mask: Tensor,
    weights: Tensor,
    sequence_of: Tensor,
    correction: str = "none",
    **params: Any,
) -> LossOutput:
    """The loss of any part of one optimizer step: the sum over its trainable tokens of weight x token loss.

    The weights are fixed before the step is split (``reductions.token_weights``), so the losses and gradients of the
    parts of any split that keeps sequences whole add up to those of the step. Tokens that a trust region or correction
    drops stay in the denominators.

    Args:
        name: entry of ``LOSSES``.
        logp_rollout: float [tokens], log-probability at sampling, under the distribution really sampled.
        logp_old: float [tokens] before the step, or None where neither loss nor correction needs it.
        logp_new: float [tokens], carries the gradient; its dtype is that of the computation.
        advantages: float [tokens].
        mask: bool or 0/1 [tokens]; elsewhere every column may hold anything.
        weights: float [tokens].
        sequence_of: int64 [tokens], the sequence of each token; the values carry no meaning.
        correction: entry of ``CORRECTIONS`` or "none".
        params: knobs of the loss and of the correction; for dppo_topk also its columns ``topk_logp_rollout`` and
            ``topk_logp_new``, float [tokens, k]: what rollout and trainer give the rollout's k likeliest tokens.

    Returns:
        LossOutput. ``loss`` is the ratio form for ppo, dppo_*, gspo, sapo, the logp form for glm5, cispo, reinforce.

    Raises:
        InputError: as ``resolve_loss``; columns of unequal shape; ``logp_old`` missing where needed.

    Source: training.md sections 4 and 6; each loss file names its paper.
    """
    names = _entry("loss", name, LOSSES).extra_columns
    extra = {field: params.pop(field) for field in names if field in params}
    return resolve_loss(name, correction=correction, params=params).apply(
        logp_rollout=logp_rollout,
        logp_old=logp_old,
        logp_new=logp_new,
        advantages=advantages,
        mask=mask,
        weights=weights,
        sequence_of=sequence_of,
        extra=extra,
    )


def _check_shape(field: str, column: Tensor, shape: tuple[int, ...]) -> None:
    if column.shape != shape:
        raise InputError(field, f"has shape {tuple(column.shape)}", allowed=f"{tuple(shape)}, as logp_new")


def _entry(kind: str, name: str, table: Mapping[str, Any]) -> Any:
    if name in table:
        return table[name]
    match = nearest(name, table)
    names = ", ".join(sorted(table))
    raise InputError(kind, f"unknown name {name!r}", allowed=names, hint=f"did you mean {match}?" if match else None)


def _build(name: str, kind: type[K], params: dict[str, Any]) -> K:
    try:
        return kind(**params)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{name}.{field}", f"got {first['input']!r}: {first['msg']}") from error
