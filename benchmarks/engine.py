"""The embedded engine beside ``transformers`` ``generate()`` on the same weights, in one run.

    python benchmarks/engine.py [--shapes] [--rounds N] [--json FILE]

Both sample the same prompts at temperature 1 on one thread, taking turns so that both see the same neighbours on the
machine; the best round of each counts. Figures are tokens per CPU-second of this process (``time.process_time``; no
other process takes part), prefill included, counted up to each row's stop token. Two kinds of traffic:

- ``turns``: what a training step asks for. Prompts of 30 to 66 tokens, each for 8 trials (padded on the left for
  ``generate()``); every turn ends at its own stop token (one token in 20 is one) or after 44. The gates apply here.
- ``lockstep``: distinct prompts of exactly 48 tokens, turns of exactly 44: the case that suits ``generate()`` best.

The logprobs of what our engine sampled are compared with the ``transformers`` forward. A last line replays one
reinforcement-learning step: 32 prompts x 8 trials of several turns with tool results between.

``--shapes`` adds a 15.7M-parameter Qwen3 shape beside ``generate()`` and continuous batching (gate: twice either), and
agent traffic of 20 turns of 150 + 150 tokens with keys and values kept and computed again (gate: 3 times). Exit code 1
when a gate is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from journeyman.engines import Sampling, TurnRequest, TurnResult
from journeyman.engines.embedded import EmbeddedEngine
from journeyman.seeds import key64

VOCAB, PROMPT, NEW, GROUP = 632, 48, 44, 8
STOPS = frozenset(range(100, 100 + VOCAB // 20))
RATIO_GATE = {32: 2.5, 256: 4.0}
LOGPROB_GATE = 1e-4


@dataclass
class Row:
    """Tokens per CPU-second of one kind of traffic at one batch size, the ratio, and the largest logprob difference."""

    traffic: str
    batch: int
    generate: float
    embedded: float
    ratio: float
    max_logprob_difference: float

    @property
    def passed(self) -> bool:
        fast = self.traffic != "turns" or self.ratio >= RATIO_GATE[self.batch]
        return fast and self.max_logprob_difference <= LOGPROB_GATE


def build_model() -> Any:
    """The quickstart's shape: 0.52M parameters, random weights with a spread of logits like a trained model's."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCAB,
        hidden_size=128,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        intermediate_size=256,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        initializer_range=0.1,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
    )
    return Qwen3ForCausalLM(config).eval()


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def largest_difference(model: Any, contexts: list[tuple[list[int], dict[int, float]]]) -> float:
    """Largest |engine logprob - forward logprob| over the sampled positions of some contexts."""
    largest = 0.0
    with torch.inference_mode():
        for ids, sampled in contexts:
            table = torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1)
            largest = max([largest, *(abs(float(table[at - 1, ids[at]]) - lp) for at, lp in sampled.items())])
    return largest


def generate_ids(model: Any, prompts: list[list[int]], stops: frozenset[int]) -> list[list[int]]:
    """What ``generate()`` samples after each prompt, cut behind the first stop token."""
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(row)) + row for row in prompts])
    seen = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in prompts])
    ending: dict[str, Any] = {"eos_token_id": sorted(stops)} if stops else {"min_new_tokens": NEW}
    with torch.inference_mode():
        out = model.generate(
            ids, attention_mask=seen, do_sample=True, top_k=0, max_new_tokens=NEW, pad_token_id=0, **ending
        )
    return [until_stop(row, stops) for row in out[:, width:].tolist()]


def until_stop(ids: list[int], stops: frozenset[int]) -> list[int]:
    return next((ids[: at + 1] for at, token in enumerate(ids) if token in stops), ids)


def side_by_side(model: Any, traffic: str, batch: int, rounds: int) -> Row:
    """One kind of traffic at one batch size, on both sides."""
    rng = np.random.default_rng(batch)
    stops = STOPS if traffic == "turns" else frozenset[int]()
    if traffic == "turns":
        tasks = [rng.integers(7, 100, length).tolist() for length in rng.integers(30, 67, batch // GROUP)]
        prompts = [prompt for prompt in tasks for _ in range(GROUP)]
    else:
        prompts = rng.integers(7, 100, (batch, PROMPT)).tolist()
    engine = EmbeddedEngine(model.config.to_dict(), model.state_dict(), rows=batch, max_len=384)
    best = {"generate": 0.0, "embedded": 0.0}
    results: list[TurnResult] = []
    for round_ in range(rounds):
        torch.manual_seed(round_)
        start = time.process_time()
        sampled = sum(map(len, generate_ids(model, prompts, stops)))
        best["generate"] = max(best["generate"], sampled / (time.process_time() - start))
        sampling = Sampling(NEW, 1.0, stops)
        requests = [TurnRequest(str(n), row, key64(round_, n), sampling) for n, row in enumerate(prompts)]
        start = time.process_time()
        results = engine.generate(requests)
        spent = time.process_time() - start
        best["embedded"] = max(best["embedded"], sum(len(result.ids) for result in results) / spent)
        for n in range(batch):
            engine.release(str(n))
    contexts = [
        (row + result.ids, {len(row) + k: float(lp) for k, lp in enumerate(result.logprobs)})
        for row, result in zip(prompts[::8], results[::8], strict=True)
    ]
    ratio = best["embedded"] / best["generate"]
    return Row(traffic, batch, best["generate"], best["embedded"], ratio, largest_difference(model, contexts))


class Traffic:
    """One synchronous step of the quickstart: 32 prompts x 8 trials, 2 to 5 turns of 15 to 26 tokens, results of 17."""

    def __init__(self, model: Any) -> None:
        self.rng = np.random.default_rng(7)
        self.engine = EmbeddedEngine(model.config.to_dict(), model.state_dict(), rows=256, max_len=384)
        self.prompts = self.rng.integers(7, VOCAB, (256 // GROUP, PROMPT))
        self.turns_left: dict[str, int] = {}
        self.contexts: dict[str, tuple[list[int], dict[int, float]]] = {}
        self.appended = self.sampled = 0

    def request(self, trial: str, append: list[int]) -> TurnRequest:
        self.appended += len(append)
        turn, number = self.turns_left[trial], int(trial)
        rng = np.random.default_rng([number, turn])
        self.contexts.setdefault(trial, ([], {}))[0].extend(append)
        return TurnRequest(
            trial, append, key64(0, "bench", number, turn), Sampling(int(rng.integers(15, 27)), 1.0, frozenset({2}))
        )

    def respond(self, result: TurnResult) -> TurnRequest | None:
        ids, sampled = self.contexts[result.trial]
        sampled.update({len(ids) + n: float(lp) for n, lp in enumerate(result.logprobs)})
        ids.extend(result.ids)
        self.sampled += len(result.ids)
        self.turns_left[result.trial] -= 1
        if not self.turns_left[result.trial]:
            return None
        return self.request(result.trial, [2] * (result.finish == "length") + list(range(20, 36)))

    def run(self) -> float:
        """CPU-seconds of the whole step."""
        self.contexts, self.appended, self.sampled = {}, 0, 0
        turns = np.random.default_rng(1).integers(2, 6, 256)
        self.turns_left = {str(n): int(turns[n]) for n in range(256)}
        opening = [self.request(str(n), self.prompts[n // GROUP].tolist()) for n in range(256)]
        return cpu_seconds(lambda: self.engine.converse(opening, self.respond))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="rounds per batch size; the best one counts")
    parser.add_argument("--shapes", action="store_true", help="also the 15.7M shape and reuse between turns; minutes")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = build_model()
    rows = [side_by_side(model, kind, size, options.rounds) for kind in ("turns", "lockstep") for size in (32, 256)]
    traffic = Traffic(model)
    step_s = min(traffic.run() for _ in range(options.rounds))
    gap = largest_difference(model, list(traffic.contexts.values())[::16])
    print(f"{'traffic':<9} {'batch':>5} {'generate()':>11} {'embedded':>9} {'ratio':>7} {'max |d logprob|':>16}")
    for row in rows:
        print(
            f"{row.traffic:<9} {row.batch:>5} {row.generate:>11,.0f} {row.embedded:>9,.0f} {row.ratio:>6.2f}x "
            f"{row.max_logprob_difference:>16.1e}"
        )
    print("tokens per CPU-second, one thread")
    print(
        f"one step of 256 trials: {traffic.sampled:,} tokens sampled and {traffic.appended:,} appended in "
        f"{step_s:.2f} CPU-s ({traffic.sampled / step_s:,.0f} sampled per CPU-s), max |d logprob| {gap:.1e}"
    )
    passed = all(row.passed for row in rows) and gap <= LOGPROB_GATE
    further: dict[str, object] = {}
    if options.shapes:
        passed = shapes(model, options.rounds, further) and passed
    if options.json:
        figures = {
            **further,
            "rows": [asdict(row) for row in rows],
            "step": {
                "cpu_s": step_s,
                "sampled": traffic.sampled,
                "appended": traffic.appended,
                "max_logprob_difference": gap,
            },
        }
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if passed else 1


def shapes(model: Any, rounds: int, figures: dict[str, object]) -> bool:
    """The larger shape beside its peers, and reuse between turns; whether their gates hold."""
    from engine_peers import PEER_GATE, REUSE_GATE, peers, reuse

    ours, *others = peers(rounds)
    print("15.7M Qwen3 shape, 32 rows, prompts of 230 and 64 new tokens, float32; output tokens per CPU-second")
    for row in (ours, *others):
        print(f"  {row.engine:<20} {row.per_cpu_s:>7,.0f}   ours / this {ours.per_cpu_s / row.per_cpu_s:>5.2f}x")
    kept = reuse(model)
    print(
        f"20 turns of 150 + 150 tokens: {kept.kept_s:.1f} CPU-s with keys and values kept ({kept.prefilled_kept:,} "
        f"tokens prefilled), {kept.again_s:.1f} without ({kept.prefilled_again:,}): {kept.ratio:.2f}x"
    )
    figures |= {"shape": [asdict(row) for row in (ours, *others)], "reuse": asdict(kept)}
    return kept.ratio >= REUSE_GATE and all(ours.per_cpu_s >= PEER_GATE * row.per_cpu_s for row in others)


if __name__ == "__main__":
    sys.exit(main())
