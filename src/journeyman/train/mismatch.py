"""How far the trainer's probabilities are from the rollout's: pure figures over the trained tokens.

With mu the rollout's and pi the trainer's probability of a sampled token and w = pi / mu. Give the trainer's logprobs
before the step to measure the engines, those of the current weights to measure staleness as well. Tokens outside the
mask never count, whatever stands there.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from journeyman.errors import InputError

Floats = NDArray[np.float64]

LOG_LIMIT = 20.0
"""Sums of log ratios are cut here before ``exp``, as in the losses."""


@dataclass(frozen=True)
class Mismatch:
    """The gap over some tokens; NaN where nothing was compared.

    Attributes:
        abs_mean, abs_max, abs_min, abs_std: of abs(log pi - log mu), nats; std over n.
        k1: mean(log mu - log pi), nats.
        k3: mean(w - log w - 1), nats, never negative.
        ppl_ratio: mean over sequences of exp(d), d = mean_t(log mu) - mean_t(log pi).
        log_ppl_diff, log_ppl_abs_diff: mean over sequences of d and of abs(d), nats.
        chi2_token: mean(w^2) - 1.
        chi2_sequence: mean over sequences of (product of w)^2, minus 1.
        rollout_log_ppl, trainer_log_ppl: mean over sequences of -mean_t(log mu) and -mean_t(log pi), nats.
        tokens: compared.
    """

    abs_mean: float
    abs_max: float
    abs_min: float
    abs_std: float
    k1: float
    k3: float
    ppl_ratio: float
    log_ppl_diff: float
    log_ppl_abs_diff: float
    chi2_token: float
    chi2_sequence: float
    rollout_log_ppl: float
    trainer_log_ppl: float
    tokens: int


@dataclass(frozen=True)
class Drops:
    """What a trust region dropped, over tokens whose advantage is not 0.

    Attributes:
        high, low: shares dropped with A > 0 and with A < 0.
        kept_k3, dropped_k3: mean(w - log w - 1) of the kept and of the dropped tokens, nats; 0 where there are none.
        tokens: with an advantage other than 0.
    """

    high: float
    low: float
    kept_k3: float
    dropped_k3: float
    tokens: int

    @property
    def share(self) -> float:
        """Dropped of all."""
        return self.high + self.low


def mismatch(logp_rollout: ArrayLike, logp_trainer: ArrayLike, mask: ArrayLike, sequence_of: ArrayLike) -> Mismatch:
    """The figures of one batch.

    Args:
        logp_rollout, logp_trainer: [tokens], nats.
        mask: bool or 0/1 [tokens], the trained tokens.
        sequence_of: int [tokens], the sequence of each; the values carry no meaning.

    Raises:
        InputError: columns of unequal length.

    Source: training.md section 8; k3 is Schulman's estimator of the Kullback-Leibler divergence.
    """
    mu, pi, on, sequence = _columns(logp_rollout, logp_trainer, mask, sequence_of)
    mu, pi, sequence = mu[on], pi[on], sequence[on]
    if len(mu) == 0:
        nothing = dict.fromkeys((f.name for f in fields(Mismatch) if f.name != "tokens"), float("nan"))
        return Mismatch(**nothing, tokens=0)
    log_w = pi - mu
    gap = np.abs(log_w)
    _, index, count = np.unique(sequence, return_inverse=True, return_counts=True)
    mean_mu, mean_pi = np.bincount(index, mu) / count, np.bincount(index, pi) / count
    difference = mean_mu - mean_pi
    total = np.bincount(index, log_w).astype(np.float64)
    return Mismatch(
        abs_mean=float(gap.mean()),
        abs_max=float(gap.max()),
        abs_min=float(gap.min()),
        abs_std=float(gap.std()),
        k1=float(-log_w.mean()),
        k3=float(_k3(log_w).mean()),
        ppl_ratio=float(np.exp(difference).mean()),
        log_ppl_diff=float(difference.mean()),
        log_ppl_abs_diff=float(np.abs(difference).mean()),
        chi2_token=float(_ratio(2 * log_w).mean() - 1),
        chi2_sequence=float(_ratio(2 * total).mean() - 1),
        rollout_log_ppl=float(-mean_mu.mean()),
        trainer_log_ppl=float(-mean_pi.mean()),
        tokens=len(mu),
    )


def drops(
    logp_rollout: ArrayLike, logp_trainer: ArrayLike, mask: ArrayLike, advantages: ArrayLike, kept: ArrayLike
) -> Drops:
    """What was dropped, by sign, and how far the kept and the dropped tokens had moved.

    Args:
        logp_rollout, logp_trainer: [tokens], nats.
        mask: bool or 0/1 [tokens], the trained tokens.
        advantages: [tokens].
        kept: bool [tokens], as in ``LossOutput``.

    Raises:
        InputError: columns of unequal length.
    """
    mu, pi, on, a, stays = _columns(logp_rollout, logp_trainer, mask, advantages, kept)
    on = on & (np.where(on, a, 0) != 0)
    if not on.any():
        return Drops(0.0, 0.0, 0.0, 0.0, 0)
    k3, a, stays = _k3((pi - mu)[on]), a[on], stays[on].astype(bool)
    return Drops(
        high=float((~stays & (a > 0)).mean()),
        low=float((~stays & (a < 0)).mean()),
        kept_k3=float(k3[stays].mean()) if stays.any() else 0.0,
        dropped_k3=float(k3[~stays].mean()) if not stays.all() else 0.0,
        tokens=len(k3),
    )


def _k3(log_w: Floats) -> Floats:
    return _ratio(log_w) - log_w - 1


def _ratio(log_w: Floats) -> Floats:
    return np.asarray(np.exp(np.clip(log_w, -LOG_LIMIT, LOG_LIMIT)), dtype=np.float64)


def _columns(mu: ArrayLike, pi: ArrayLike, mask: ArrayLike, *others: ArrayLike) -> tuple[NDArray[Any], ...]:
    columns = [np.asarray(mu, np.float64), np.asarray(pi, np.float64), np.asarray(mask).astype(bool)]
    columns += [np.asarray(other) for other in others]
    shapes = [column.shape for column in columns]
    if len(set(shapes)) != 1 or len(shapes[0]) != 1:
        raise InputError("mismatch", f"columns of shapes {shapes}", allowed="equal lengths, one-dimensional")
    return tuple(columns)
