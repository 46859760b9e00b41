"""Dollars of a step: tokens, cores, GPUs and hours at the prices of the recipe."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Spent:
    """What a run used since the record before.

    Attributes:
        wall_s: time passed.
        sampled, prefilled: tokens.
        cpu_s: seconds of cores, of all processes of the run that tell.
    """

    wall_s: float = 0.0
    sampled: int = 0
    prefilled: int = 0
    cpu_s: float = 0.0


@dataclass(frozen=True)
class Prices:
    """Dollars per unit; 0 where something costs nothing or is paid for elsewhere.

    Attributes:
        per_million_sampled, per_million_prefilled: tokens.
        per_cpu_second: of one core. per_gpu_second: of one GPU, by wall time.
        gpus: GPUs that the run holds.
        per_hour: of wall time, for everything together.
    """

    per_million_sampled: float = 0.0
    per_million_prefilled: float = 0.0
    per_cpu_second: float = 0.0
    per_gpu_second: float = 0.0
    gpus: int = 0
    per_hour: float = 0.0

    def dollars(self, spent: Spent) -> dict[str, float]:
        """``usd/tokens``, ``usd/cpu``, ``usd/gpu`` and ``usd/machines`` (the hourly price)."""
        sampled, prefilled = self.per_million_sampled * spent.sampled, self.per_million_prefilled * spent.prefilled
        return {
            "usd/tokens": (sampled + prefilled) / 1e6,
            "usd/cpu": self.per_cpu_second * spent.cpu_s,
            "usd/gpu": self.per_gpu_second * self.gpus * spent.wall_s,
            "usd/machines": self.per_hour * spent.wall_s / 3600,
        }
