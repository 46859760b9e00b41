"""Speed and memory of one training step on one device: our forward, chunked head, backward and AdamW.

Model FLOP/s count what the model needs (forward and backward, causal attention halved), not what is computed twice for
memory's sake; they are set against bf16 matrix products measured on the same device just before. The model is a
Qwen3 shape with random weights: speed does not depend on them. Every stage has its own budget of time, so that a slow
machine gives fewer figures and not none.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from journeyman.train.backends.stock import StockPolicy, padded
from journeyman.train.protocol import TrainRow

BUDGET_S = 420.0
"""No stage starts later than this after the first; ``gpu.sh`` stops everything at 480 s."""


@dataclass(frozen=True)
class Shape:
    """Of the model and of a sequence."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    tokens: int
    tied: bool = True


QWEN3_06B = Shape(1024, 28, 16, 8, 128, 3072, 151_936, 32_768)
TINY = Shape(64, 2, 4, 2, 16, 128, 512, 256)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="a small shape on the CPU")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("gpu-step.json"))
    options = parser.parse_args()
    device = torch.device("cpu" if options.tiny else "cuda")
    started = time.monotonic()
    shape = TINY if options.tiny else QWEN3_06B
    found: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "shape": asdict(shape),
        "ceiling_tflops": ceiling(device, 8192 if device.type == "cuda" else 256),
    }
    print(f"matrix products: {found['ceiling_tflops']:.1f} TFLOP/s on {found['device']}")
    found["runs"] = []
    for attention, recompute in (("sdpa", False), ("sdpa", True)):
        if time.monotonic() - started > BUDGET_S:
            print("out of time: further settings are left out")
            break
        run = measure(shape, device, attention, recompute, options.steps, found["ceiling_tflops"], started)
        found["runs"].append(run)
        print(json.dumps(run))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(options.out)


def measure(
    shape: Shape, device: torch.device, attention: str, recompute: bool, steps: int, ceiling_tflops: float, began: float
) -> dict[str, Any]:
    """Median of some steps after two that are not counted; a setting that does not fit says so."""
    setting = {"attention": attention, "layers_recomputed": recompute}
    try:
        return setting | _measure(shape, device, attention, recompute, steps, ceiling_tflops, began)
    except torch.OutOfMemoryError as error:
        return setting | {"failed": f"out of memory: {str(error).splitlines()[0]}"}
    finally:
        if device.type == "cuda":
            torch.cuda.empty_cache()


def _measure(
    shape: Shape, device: torch.device, attention: str, recompute: bool, steps: int, ceiling_tflops: float, began: float
) -> dict[str, Any]:
    policy = StockPolicy(build(shape, device, attention), checkpoint_layers=recompute)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-6, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
    batch = padded([row_of(shape)]).to(device)
    weights = torch.full((len(batch.targets),), 1 / len(batch.targets), device=device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    seconds, parts = [], []
    for number in range(steps + 2):
        if number > 2 and time.monotonic() - began > BUDGET_S:
            break
        parts.append(step(policy, optimizer, batch, weights, device))
        seconds.append(sum(parts[-1].values()))
    median = statistics.median(seconds[2:])
    flops = model_flops(shape, len(batch.targets))
    achieved = flops / median / 1e12
    peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else None
    return {
        "parameters": sum(p.numel() for p in policy.parameters()),
        "tokens": shape.tokens,
        "steps": len(seconds) - 2,
        "step_s": median,
        "step_s_all": seconds[2:],
        "parts_s": {name: statistics.median(p[name] for p in parts[2:]) for name in parts[0]},
        "tokens_per_s": shape.tokens / median,
        "model_tflops": flops / 1e12,
        "achieved_tflops": achieved,
        "share_of_ceiling": achieved / ceiling_tflops,
        "peak_memory_gb": None if peak is None else peak / 1e9,
    }


def step(
    policy: StockPolicy, optimizer: torch.optim.Optimizer, batch: Any, weights: torch.Tensor, device: torch.device
) -> dict[str, float]:
    """One step: the gradient of the weighted logprobs, then AdamW. Seconds of each part."""
    marks = [now(device)]
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        logprobs = policy(batch.ids, batch.at, batch.targets)
    loss = -(logprobs * weights).sum()
    marks.append(now(device))
    loss.backward()
    marks.append(now(device))
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    marks.append(now(device))
    return dict(zip(("forward", "backward", "optimizer"), np.diff(marks).tolist(), strict=True))


def build(shape: Shape, device: torch.device, attention: str) -> Any:
    """A Qwen3 of the shape, float32 weights, random."""
    config = transformers.Qwen3Config(
        vocab_size=shape.vocab,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        intermediate_size=shape.ffn,
        max_position_embeddings=shape.tokens,
        tie_word_embeddings=shape.tied,
        use_cache=False,
        attn_implementation=attention,
    )
    torch.manual_seed(0)
    with device:
        model = transformers.Qwen3ForCausalLM(config)
    return model.eval()


def row_of(shape: Shape) -> TrainRow:
    """A long trial: turns of 512 sampled tokens between observations of 512, as an agent's."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, shape.vocab, shape.tokens).astype(np.int32)
    turn = max(1, min(512, shape.tokens // 8))
    mask = (np.arange(shape.tokens) // turn % 2 == 1).astype(np.uint8)
    mask[0] = 0
    return TrainRow(ids, mask, np.zeros(shape.tokens, np.float32), 1.0, 0)


def model_flops(shape: Shape, trained: int) -> float:
    """Forward and backward of one sequence: 6 per weight and token, the head at the trained tokens only, and causal
    attention 6 L T^2 heads head_dim."""
    query, key = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    layer = shape.hidden * (2 * query + 2 * key) + 3 * shape.hidden * shape.ffn
    matrices = 6 * (shape.layers * layer * shape.tokens + shape.vocab * shape.hidden * trained)
    return float(matrices + 6 * shape.layers * shape.tokens**2 * query)


def ceiling(device: torch.device, size: int) -> float:
    """TFLOP/s of square matrix products: bf16 on a GPU, float32 on a CPU; the best of five rounds."""
    kind = torch.bfloat16 if device.type == "cuda" else torch.float32
    a, b = (torch.randn(size, size, device=device, dtype=kind) for _ in range(2))
    best = 0.0
    for _ in range(6):  # the first one warms up
        began = now(device)
        for _ in range(20):
            a @ b
        best = max(best, 20 * 2 * size**3 / (now(device) - began) / 1e12)
    return best


def now(device: torch.device) -> float:
    """Seconds, everything queued before done."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


if __name__ == "__main__":
    main()
