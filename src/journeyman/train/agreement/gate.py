"""What a deployment must keep to be trained on, and what to look at when it does not.

The mean alone lets a stale output head pass: measured 0.027 to 0.029 nats where the published line is 0.03. So three
more conditions stand beside it: a high quantile, the worst weight span, and the excess over the gap before any push.
"""

from __future__ import annotations

from dataclasses import dataclass

from journeyman.train.agreement.measure import Agreement


@dataclass(frozen=True)
class Limits:
    """Upper bounds, in nats.

    Attributes:
        mean: of the gap over tokens whose prefix has one version.
        q99: of its 99 % quantile.
        span_mean: of the mean over any span of ``span_tokens`` or more.
        push_ratio: the mean after a push, divided by the mean before any; only where the latter is above ``floor``.
        floor: gaps below this are rounding, and their ratio says nothing.
    """

    mean: float
    q99: float
    span_mean: float
    span_tokens: int = 8
    push_ratio: float = 2.0
    floor: float = 1e-4


LIMITS: dict[str, Limits] = {
    "float32": Limits(mean=1e-4, q99=1e-3, span_mean=3e-4),
    "bfloat16": Limits(mean=0.03, q99=0.15, span_mean=0.05),
}
"""Per dtype of the engine: the published means; quantile and span are three to ten times the mean of a sound engine."""

OPENED, PUSHED, IN_FLIGHT = "as opened", "after a push", "pushed within a turn"
LEGS = (OPENED, PUSHED, IN_FLIGHT)
"""The legs of the probe, in the order of ``Sampled.leg``; the push ratio compares the first two."""


@dataclass(frozen=True)
class Finding:
    """One condition that does not hold."""

    condition: str
    value: float
    limit: float
    look_at: str

    def __str__(self) -> str:
        return f"{self.condition}: {self.value:.3g}, allowed {self.limit:.3g}; {self.look_at}"


def findings(found: Agreement, limits: Limits) -> tuple[Finding, ...]:
    """The conditions that do not hold, empty when all do. A figure that is not a number never passes."""
    rows = [
        (
            "mean gap",
            found.whole.mean,
            limits.mean,
            "different weights, dtype, temperature, or a mask that is off by one",
        ),
        ("99 % quantile of the gap", found.whole.q99, limits.q99, "few tokens, far off: a stale tensor or prefix"),
    ]
    span = found.worst_span(limits.span_tokens)
    if span is not None:
        where = f"version {span.version}, trial {span.trial}, tokens {span.start} to {span.end}"
        rows.append((f"mean gap of the worst span ({where})", span.figures.mean, limits.span_mean, "a push went wrong"))
    before, after = found.by_leg.get(OPENED), found.by_leg.get(PUSHED)
    if before is not None and after is not None and not after.mean <= limits.floor:
        ratio = after.mean / max(before.mean, limits.floor)
        look = "the engine did not take every tensor (a tied head?), or kept a prefix of the old weights"
        rows.append(("gap after a push over the gap before it", ratio, limits.push_ratio, look))
    return tuple(Finding(*row) for row in rows if not row[1] <= row[2])
