"""What a trial may use, declared to the policy, and what it has used. Running out ends a trial that is graded."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from journeyman.errors import InputError
from journeyman.harness.protocol import StopReason


@dataclass(frozen=True)
class Prices:
    """Dollars per million tokens: read for the first time, read again from the engine's cache, sampled."""

    prompt_usd_per_m: float
    cached_usd_per_m: float
    sampled_usd_per_m: float


@dataclass(frozen=True)
class Budget:
    """The limits of one trial. None means no limit.

    Attributes:
        context_tokens: tokens of one context, sampled ones included.
        max_new_tokens: sampled tokens per turn.
        max_turns: model calls of the whole trial, discarded ones included.
        max_tool_calls: tool calls of the whole trial.
        calls_per_context: tool calls in one context; then ``at_limit`` decides, as when the context is full.
        max_new_tokens_total: sampled tokens of the whole trial.
        working_s: seconds of working time, by the clock the executor gives; it may stop that clock while a trial waits.
        cost_usd: dollars by ``prices``.
        prices: needed for ``cost_usd``.
    """

    context_tokens: int = 32_768
    max_new_tokens: int = 2_048
    max_turns: int = 250
    max_tool_calls: int | None = None
    calls_per_context: int | None = None
    max_new_tokens_total: int | None = None
    working_s: float | None = 3_600.0
    cost_usd: float | None = None
    prices: Prices | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name != "prices" and value is not None and not value > 0:
                raise InputError(f"budget.{name}", f"must be positive, got {value}", allowed="> 0 or none")
        if self.max_new_tokens >= self.context_tokens:
            problem = f"{self.max_new_tokens} leaves no room in a context of {self.context_tokens} tokens"
            raise InputError("budget.max_new_tokens", problem, allowed="< budget.context_tokens")
        if self.cost_usd is not None and self.prices is None:
            raise InputError("budget.cost_usd", "cannot be kept without prices", hint="give budget.prices")


@dataclass
class Spent:
    """What was used: of a trial, or of one context of it.

    Attributes:
        turns: model calls.
        tool_calls: executed calls; those a harness answers itself included, a final answer not.
        sampled_tokens: sampled.
        prompt_tokens: read by the engine for the first time.
        cached_tokens: read again, once per turn.
        working_s: seconds of the clock.
    """

    turns: int = 0
    tool_calls: int = 0
    sampled_tokens: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    working_s: float = 0.0

    def cost_usd(self, prices: Prices | None) -> float | None:
        """Dollars, or None without prices."""
        if prices is None:
            return None
        million = 1e-6
        return million * (
            self.prompt_tokens * prices.prompt_usd_per_m
            + self.cached_tokens * prices.cached_usd_per_m
            + self.sampled_tokens * prices.sampled_usd_per_m
        )

    def since(self, earlier: Spent) -> Spent:
        """What was used after ``earlier``."""
        return Spent(**{name: value - getattr(earlier, name) for name, value in asdict(self).items()})

    def copy(self) -> Spent:
        """This moment, kept."""
        return replace(self)


def exhausted(budget: Budget, spent: Spent) -> StopReason | None:
    """The first limit of the whole trial that is used up, or None. The context is no part of it."""
    cost = spent.cost_usd(budget.prices)
    checks: tuple[tuple[StopReason, float | None, float | None], ...] = (
        ("limit.turns", spent.turns, budget.max_turns),
        ("limit.calls", spent.tool_calls, budget.max_tool_calls),
        ("limit.tokens", spent.sampled_tokens, budget.max_new_tokens_total),
        ("limit.time", spent.working_s, budget.working_s),
        ("limit.cost", cost, budget.cost_usd),
    )
    for reason, used, limit in checks:
        if limit is not None and used is not None and used >= limit:
            return reason
    return None
