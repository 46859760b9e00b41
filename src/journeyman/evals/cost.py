"""Tokens by class and what a completed task cost. Dollars are computed late, from stored tokens, without any
network."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field, model_validator

from journeyman.evals.score import Word


class Usage(Word):
    """Tokens of model calls, by class.

    Attributes:
        input: all input tokens, cached ones included.
        cache_read, cache_write: parts of ``input``.
        output: all output tokens, reasoning included.
        reasoning: part of ``output``.
    """

    input: int = Field(default=0, ge=0)
    cache_read: int = Field(default=0, ge=0)
    cache_write: int = Field(default=0, ge=0)
    output: int = Field(default=0, ge=0)
    reasoning: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _parts_fit(self) -> Usage:
        if self.cache_read + self.cache_write > self.input:
            raise ValueError("cache_read + cache_write are parts of input and cannot exceed it")
        if self.reasoning > self.output:
            raise ValueError("reasoning is a part of output and cannot exceed it")
        return self

    @property
    def uncached(self) -> int:
        """Input tokens that were neither read from nor written to a cache."""
        return self.input - self.cache_read - self.cache_write

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in Usage.model_fields})


def dollars_per_completed(dollars: Iterable[float], n_solved: int) -> float | Literal["inf"]:
    """Dollars of ALL trials, failed, retried and broken ones too, per solved task; ``"inf"`` when none was solved."""
    total = sum(dollars)
    return total / n_solved if n_solved else "inf"
