"""What pushes cost: seconds of each phase, how each was proved, and the context that had to be computed again."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from journeyman.engines.protocol import KvMode, KvUsage
from journeyman.engines.vllm.proof import Proof

logger = logging.getLogger("journeyman.engines.vllm")


@dataclass(frozen=True)
class Push:
    """One push of weights.

    Attributes:
        version: pushed.
        kv: what became of running turns' keys and values.
        size_bytes, sha256: of the file, the tied head included.
        write_s, load_s: seconds to write it, and to load it on every server.
        paused_s: seconds from the pause until turns went on; 0 where the caller paused.
        proof: how it is known to be in force; None until it was looked at.
        late_turns: turns sent before it whose first token came after it: their prompt may be of the old weights.
        reprefilled_tokens: tokens of context that were in a cache and had to be computed again, by turns after it.
        reprefilled_s: what that took by the servers' own prefill times; None where they do not tell.
    """

    version: int
    kv: KvMode
    size_bytes: int
    sha256: str
    write_s: float
    load_s: float
    paused_s: float = 0.0
    proof: Proof | None = None
    late_turns: int = 0
    reprefilled_tokens: int = 0
    reprefilled_s: float | None = None


class Ledger:
    """The pushes of an engine, in order; the last one is still open."""

    def __init__(self) -> None:
        self.pushes: list[Push] = []
        self._at_push: Mapping[str, float] = {}

    def open(self, push: Push, metrics: Mapping[str, float]) -> None:
        """A new push; ``metrics`` are the servers' counters at its end."""
        self.pushes.append(push)
        self._at_push = metrics

    def proved(self, proof: Proof) -> None:
        self._change(proof=proof)

    def paused(self, seconds: float) -> None:
        self._change(paused_s=seconds)

    def late(self) -> None:
        if self.pushes:
            self._change(late_turns=self.pushes[-1].late_turns + 1)

    def reprefilled(self, tokens: int) -> None:
        if self.pushes and tokens > 0:
            self._change(reprefilled_tokens=self.pushes[-1].reprefilled_tokens + tokens)

    def settle(self, metrics: Mapping[str, float]) -> None:
        """Close the account of the last push with the servers' counters of now, and log it."""
        if not self.pushes:
            return
        push = self.pushes[-1]
        self._change(reprefilled_s=_seconds(push.reprefilled_tokens, self._at_push, metrics))
        push = self.pushes[-1]
        took = "unknown" if push.reprefilled_s is None else f"{push.reprefilled_s:.3f}"
        logger.info(
            "push v%d: %.1f MB, paused %.2f s, proof by %s (mean gap %.2g); "
            "%d tokens prefilled again, %s s; %d late turns",
            push.version,
            push.size_bytes / 1e6,
            push.paused_s,
            push.proof.by if push.proof else "nothing yet",
            push.proof.gap_mean if push.proof else float("nan"),
            push.reprefilled_tokens,
            took,
            push.late_turns,
        )

    def _change(self, **fields: object) -> None:
        self.pushes[-1] = replace(self.pushes[-1], **fields)  # type: ignore[arg-type]


PREFILL_S, PROMPT, HITS = (
    "vllm:request_prefill_time_seconds_sum",
    "vllm:prompt_tokens_total",
    "vllm:prefix_cache_hits_total",
)


def computed(metrics: Mapping[str, float]) -> float:
    """Prompt tokens computed, not found in the cache."""
    return metrics.get(PROMPT, 0.0) - metrics.get(HITS, 0.0)


def _seconds(tokens: int, before: Mapping[str, float], now: Mapping[str, float]) -> float | None:
    """The share of prefill seconds since the push that fell to ``tokens``."""
    done = computed(now) - computed(before)
    if PREFILL_S not in now or done <= 0:
        return None
    return (now[PREFILL_S] - before.get(PREFILL_S, 0.0)) * min(1.0, tokens / done)


def usage_of(metrics: Mapping[str, float], held: int) -> KvUsage:
    """Keys and values by the servers' counters, zeros where they do not tell; ``held`` tokens by our own."""
    capacity = int(metrics.get("kv_capacity", 0))
    return KvUsage(
        tokens=min(held, capacity) if capacity else held,
        capacity=capacity,
        reused=int(metrics.get(HITS, 0)),
        prefilled=int(computed(metrics)),
        preemptions=int(metrics.get("vllm:num_preemptions_total", 0)),
    )
