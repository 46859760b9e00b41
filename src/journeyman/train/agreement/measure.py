"""The figures of agreement: pure functions on arrays.

Definitions: with mu the engine's and pi the trainer's probability of a sampled token, gap = abs(log mu - log pi);
k1 = mean(log mu - log pi); k3 = mean(w - log w - 1) with w = pi / mu (Schulman 2020, approximating KL divergence).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Key = TypeVar("Key")

POSITION_BINS = (0, 16, 64, 256, 1024, 4096, 16384, 65536)
"""Lower ends of the context positions that the table tells apart."""


@dataclass(frozen=True)
class Sampled:
    """One trial's context with both sides' logprobs.

    Attributes:
        mask: uint8 [tokens], 1 where the engine sampled the token.
        engine, trainer: float32 [tokens], natural logs; read where ``mask`` is 1.
        version: int32 [tokens], weight version under which the token was sampled or, for a token that was given,
            computed.
        source: uint8 [tokens], who wrote the token (``tokens.context``).
        leg: uint8 [tokens], part of the probe that sampled it; an index into the names given to ``agreement``.
        kept: keys and values stayed when weights changed, so a prefix may be of several versions; else the engine
            computed the prefix anew under the version it sampled with.
    """

    mask: NDArray[np.uint8]
    engine: NDArray[np.float32]
    trainer: NDArray[np.float32]
    version: NDArray[np.int32]
    source: NDArray[np.uint8]
    leg: NDArray[np.uint8]
    kept: bool = False


@dataclass(frozen=True)
class Figures:
    """The gap over some tokens, in nats; NaN where nothing was compared or a value is not finite."""

    n: int
    mean: float
    q99: float
    max: float
    k1: float
    k3: float

    def __str__(self) -> str:
        return f"mean {self.mean:.2e}, 99 % {self.q99:.2e}, max {self.max:.2e} over {self.n} tokens"


@dataclass(frozen=True)
class Span:
    """A run of tokens sampled under one weight version.

    Attributes:
        trial: position of the trial in what was measured.
        start, end: half-open range of positions in its context.
    """

    trial: int
    start: int
    end: int
    version: int
    figures: Figures


@dataclass(frozen=True)
class Agreement:
    """What was measured.

    Attributes:
        whole: tokens whose whole prefix has one weight version.
        mixed: the others.
        by_position: per range of context positions, over ``whole``'s tokens, like all that follow.
        by_source: per writer of the token before: the first token after a prompt or a tool result, or any later one.
        by_version: per weight version.
        by_leg: per part of the probe.
        spans: the runs of one version.
    """

    whole: Figures
    mixed: Figures
    by_position: dict[str, Figures] = field(default_factory=dict)
    by_source: dict[str, Figures] = field(default_factory=dict)
    by_version: dict[int, Figures] = field(default_factory=dict)
    by_leg: dict[str, Figures] = field(default_factory=dict)
    spans: tuple[Span, ...] = ()

    def worst_span(self, min_tokens: int) -> Span | None:
        """The span of at least this many tokens with the largest mean; NaN counts as largest."""
        long = [span for span in self.spans if span.end - span.start >= min_tokens]
        return max(long, key=lambda s: np.inf if np.isnan(s.figures.mean) else s.figures.mean, default=None)


def agreement(samples: Sequence[Sampled], sources: Sequence[str], legs: Sequence[str]) -> Agreement:
    """Everything the gate and the table need.

    Args:
        samples: trials, each with columns of equal length.
        sources, legs: names of the values of ``Sampled.source`` and ``Sampled.leg``.

    Raises:
        ValueError: columns of unequal length, or no sampled token at all: agreement over nothing proves nothing.
    """
    for sample in samples:
        columns = (sample.mask, sample.engine, sample.trainer, sample.version, sample.source, sample.leg)
        lengths = {len(column) for column in columns}
        if len(lengths) != 1:
            raise ValueError(f"columns of unequal length: {sorted(lengths)}")
    picked = [np.flatnonzero(sample.mask) for sample in samples]
    if not sum(map(len, picked)):
        raise ValueError("no sampled token: there is nothing to compare")
    engine, trainer = _flat(samples, picked, "engine"), _flat(samples, picked, "trainer")
    position = np.concatenate(picked)
    before = np.concatenate([s.source[np.maximum(p - 1, 0)] for s, p in zip(samples, picked, strict=True)])
    version = _flat(samples, picked, "version").astype(np.int64)
    pure = np.concatenate([_pure(s)[p] for s, p in zip(samples, picked, strict=True)])
    leg = _flat(samples, picked, "leg")

    def over(chosen: NDArray[np.bool_]) -> Figures:
        return figures(engine[chosen], trainer[chosen])

    bins = np.digitize(position, POSITION_BINS) - 1
    return Agreement(
        whole=over(pure),
        mixed=over(~pure),
        by_position=_parts(bins, pure, over, lambda i: _range(int(i))),
        by_source=_parts(before, pure, over, lambda i: sources[int(i)]),
        by_version=_parts(version, pure, over, int),
        by_leg=_parts(leg, pure, over, lambda i: legs[int(i)]),
        spans=tuple(span for n, sample in enumerate(samples) for span in _spans(n, sample)),
    )


def figures(engine: NDArray[Any], trainer: NDArray[Any]) -> Figures:
    """Compare two [n] arrays of logprobs; float64 inside."""
    mu, pi = engine.astype(np.float64), trainer.astype(np.float64)
    if not len(mu):
        return Figures(0, *[float("nan")] * 5)
    sound = np.isfinite(mu) & np.isfinite(pi)
    difference = np.where(sound, mu, np.nan) - np.where(sound, pi, np.nan)
    gap = np.abs(difference)
    k3 = np.exp(-difference) + difference - 1
    return Figures(
        n=len(mu),
        mean=float(gap.mean()),
        q99=float(np.quantile(gap, 0.99)),
        max=float(gap.max()),
        k1=float(difference.mean()),
        k3=float(k3.mean()),
    )


def _flat(samples: Sequence[Sampled], picked: Sequence[NDArray[np.intp]], column: str) -> NDArray[Any]:
    return np.concatenate([getattr(s, column)[p] for s, p in zip(samples, picked, strict=True)])


def _pure(sample: Sampled) -> NDArray[np.bool_]:
    """Per token: everything it was conditioned on was computed under its own version."""
    if not sample.kept:
        return np.ones(len(sample.mask), dtype=bool)
    low, high = np.minimum.accumulate(sample.version), np.maximum.accumulate(sample.version)
    return np.asarray((low == sample.version) & (high == sample.version))


def _spans(trial: int, sample: Sampled) -> list[Span]:
    found = []
    pure = _pure(sample)
    edges = np.flatnonzero((np.diff(sample.version) != 0) | (np.diff(sample.mask.astype(np.int8)) != 0)) + 1
    ends = [0, *edges.tolist(), len(sample.mask)]
    for start, end in pairwise(ends):
        if start < end and sample.mask[start] and pure[start:end].all():
            measured = figures(sample.engine[start:end], sample.trainer[start:end])
            found.append(Span(trial, start, end, int(sample.version[start]), measured))
    return found


def _parts(
    values: NDArray[Any],
    pure: NDArray[np.bool_],
    over: Callable[[NDArray[np.bool_]], Figures],
    name: Callable[[Any], Key],
) -> dict[Key, Figures]:
    return {name(value): over(pure & (values == value)) for value in np.unique(values[pure])}


def _range(bin_: int) -> str:
    low = POSITION_BINS[bin_]
    return f"{low}-{POSITION_BINS[bin_ + 1] - 1}" if bin_ + 1 < len(POSITION_BINS) else f"{low}-"
