"""The embedded engine on a 15.7M-parameter shape beside ``transformers``, and what keeping keys and values is worth.

Run through ``benchmarks/engine.py --shapes``. Figures are per CPU-second of this process, all its threads.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from journeyman.engines import Sampling, TurnRequest, TurnResult
from journeyman.engines.embedded import EmbeddedEngine
from journeyman.seeds import key64

PROMPT, NEW, ROWS = 230, 64, 32
TURNS, APPENDED, SAMPLED, TRIALS = 20, 150, 150, 2
PEER_GATE, REUSE_GATE = 2.0, 3.0


@dataclass
class PeerRow:
    """Output tokens per CPU-second and per wall second of one engine on the 15.7M shape, prefill included."""

    engine: str
    dtype: str
    per_cpu_s: float
    per_wall_s: float


@dataclass
class Reuse:
    """CPU-seconds of the same agent traffic with keys and values kept between turns, and computed again each turn."""

    kept_s: float
    again_s: float
    prefilled_kept: int
    prefilled_again: int

    @property
    def ratio(self) -> float:
        return self.again_s / self.kept_s


def tinyq() -> Any:
    """A random Qwen3 of 15.73M parameters: 4 layers, hidden 256, 4 heads over 2, vocabulary 49,152."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=49152,
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        intermediate_size=768,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
    )
    return Qwen3ForCausalLM._from_config(config, attn_implementation="sdpa").eval()


def smol() -> Any:
    """A random model of SmolLM2-135M's shape: speed does not depend on the values."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        intermediate_size=1536,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 100_000.0},
    )
    return LlamaForCausalLM(config).eval()


SHAPES = {"tinyq": tinyq, "smol": smol}


def embedded(model: Any, prompts: list[list[int]], dtype: torch.dtype = torch.float32, rounds: int = 2) -> PeerRow:
    """Our engine: every prompt submitted at once, ROWS of them decoded together."""
    engine = EmbeddedEngine(
        model.config.to_dict(), model.state_dict(), rows=ROWS, max_len=PROMPT + NEW + 2, dtype=dtype
    )
    sampling, best = Sampling(NEW, 1.0, frozenset()), PeerRow("embedded", str(dtype)[6:], 0.0, 0.0)
    for round_ in range(rounds + 1):  # the first warms up
        requests = [TurnRequest(str(n), row, key64(round_, n), sampling) for n, row in enumerate(prompts)]
        cpu, wall = time.process_time(), time.perf_counter()
        engine.converse(requests, lambda result: None)
        if round_:
            _keep_best(best, len(prompts) * NEW, time.process_time() - cpu, time.perf_counter() - wall)
    engine.close()
    return best


def generate(model: Any, prompts: list[list[int]], rounds: int = 2) -> PeerRow:
    """``generate()`` on batches of ROWS prompts of one length."""
    best = PeerRow("generate()", str(model.dtype)[6:], 0.0, 0.0)
    for _ in range(rounds):
        cpu, wall = time.process_time(), time.perf_counter()
        with torch.inference_mode():
            for at in range(0, len(prompts), ROWS):
                ids = torch.tensor(prompts[at : at + ROWS])
                model.generate(
                    ids,
                    attention_mask=torch.ones_like(ids),
                    do_sample=True,
                    top_k=0,
                    max_new_tokens=NEW,
                    min_new_tokens=NEW,
                    pad_token_id=0,
                )
        _keep_best(best, len(prompts) * NEW, time.process_time() - cpu, time.perf_counter() - wall)
    return best


def continuous(model: Any, prompts: list[list[int]], rounds: int = 1) -> PeerRow:
    """``transformers`` continuous batching with logprobs, blocks for all rows at once."""
    from transformers import ContinuousBatchingConfig, GenerationConfig

    best = PeerRow("continuous batching", str(model.dtype)[6:], 0.0, 0.0)
    sampling = GenerationConfig(
        do_sample=True, temperature=1.0, top_k=0, top_p=1.0, eos_token_id=-1, pad_token_id=2, max_new_tokens=NEW
    )
    blocks = ContinuousBatchingConfig(
        return_logprobs=True, num_blocks=4 * ROWS, page_size=128, max_batch_tokens=512, use_cuda_graph=False
    )
    for _ in range(rounds):
        cpu, wall = time.process_time(), time.perf_counter()
        found = model.generate_batch(
            prompts, generation_config=sampling, continuous_batching_config=blocks, progress_bar=False
        )
        sampled = sum(len(one.generated_tokens) for one in found.values())
        _keep_best(best, sampled, time.process_time() - cpu, time.perf_counter() - wall)
    return best


def _keep_best(best: PeerRow, tokens: int, cpu_s: float, wall_s: float) -> None:
    best.per_cpu_s, best.per_wall_s = max(best.per_cpu_s, tokens / cpu_s), max(best.per_wall_s, tokens / wall_s)


def random_prompts(count: int, vocab: int) -> list[list[int]]:
    found: list[list[int]] = np.random.default_rng(0).integers(7, vocab, (count, PROMPT)).tolist()
    return found


def peers(rounds: int) -> list[PeerRow]:
    """The 15.7M shape at ROWS rows: ours, ``generate()`` and continuous batching."""
    model = tinyq()
    prompts = random_prompts(ROWS, model.config.vocab_size)
    return [embedded(model, prompts, rounds=rounds), generate(model, prompts, rounds), continuous(model, prompts)]


def reuse(model: Any) -> Reuse:
    """TURNS turns of APPENDED + SAMPLED tokens for TRIALS trials, once kept and once computed again at each turn."""
    rng = np.random.default_rng(3)
    observations = rng.integers(7, 600, (TRIALS, TURNS, APPENDED)).tolist()
    sampling = Sampling(SAMPLED, 1.0, frozenset())

    def run(keep: bool) -> tuple[float, int]:
        engine = EmbeddedEngine(
            model.config.to_dict(), model.state_dict(), rows=TRIALS, max_len=TURNS * (APPENDED + SAMPLED) + 2
        )
        contexts: list[list[int]] = [[] for _ in range(TRIALS)]
        start = time.process_time()
        for turn in range(TURNS):
            requests = []
            for n in range(TRIALS):
                contexts[n] += observations[n][turn]
                append = observations[n][turn] if keep else contexts[n]
                requests.append(TurnRequest(str(n), append, key64(7, n, turn), sampling))
            results: list[TurnResult] = engine.generate(requests)
            for n, result in enumerate(results):
                contexts[n] += result.ids
                if not keep:
                    engine.release(str(n))
        return time.process_time() - start, engine.usage().prefilled

    kept_s, prefilled_kept = run(keep=True)
    again_s, prefilled_again = run(keep=False)
    return Reuse(kept_s, again_s, prefilled_kept, prefilled_again)
