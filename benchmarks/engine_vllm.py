"""The embedded engine beside vLLM's CPU build, both in process on two threads, same weights, prompts and lengths, warm.

    make vllm-venv
    python benchmarks/engine_vllm.py --python .venv-vllm/bin/python [--shape tinyq smol] [--dtype float32 bfloat16]

Requests of 230 random tokens, 64 new tokens each, 32 rows at a time, temperature 1, logprob of every sampled id.
Output tokens per wall second count on an idle machine; those per CPU-second hold while others use it. Weights are
random: speed does not depend on them. Exit code 1 when a gate is missed: vLLM's wall throughput on the 15.7M shape, 0.7
of it on SmolLM2-135M's (float32; bfloat16 is printed beside it).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

GATES = {"tinyq": 1.0, "smol": 0.7}


def vllm_side(options: argparse.Namespace, model: Path, prompts: Path, dtype: str) -> dict[str, float]:
    """Run ``vllm_inside.py`` under the other environment's Python."""
    from engine_peers import NEW, ROWS

    program = Path(__file__).with_name("vllm_inside.py")
    words = [options.python, program, model, prompts, dtype, NEW, ROWS, options.rounds]
    home = {"VLLM_CONFIG_ROOT": str(model / "vllm"), "VLLM_CACHE_ROOT": str(model / "vllm")}
    done = subprocess.run(
        [str(word) for word in words],
        env={**os.environ, **home, "OMP_NUM_THREADS": str(options.threads)},
        capture_output=True,
        text=True,
        timeout=options.limit_s,
    )
    line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
    if line is None:
        raise SystemExit(f"vLLM said no result (exit {done.returncode}):\n{done.stderr[-3000:]}")
    found: dict[str, float] = json.loads(line.removeprefix("RESULT "))
    return found


def side_by_side(options: argparse.Namespace, shape: str, dtype: str) -> dict[str, Any]:
    """One shape in one dtype on both sides."""
    import torch
    from engine_peers import SHAPES, embedded, random_prompts

    torch.set_num_threads(options.threads)
    model = SHAPES[shape]()
    prompts = random_prompts(options.requests, model.config.vocab_size)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        path = Path(folder) / "prompts.json"
        path.write_text(json.dumps(prompts))
        theirs = vllm_side(options, Path(folder), path, dtype)
        ours = asdict(embedded(model, prompts, getattr(torch, dtype), options.rounds))
    return {
        "shape": shape,
        "dtype": dtype,
        "embedded": ours["per_wall_s"],
        "vllm": theirs["per_wall_s"],
        "wall_ratio": ours["per_wall_s"] / theirs["per_wall_s"],
        "cpu_ratio": ours["per_cpu_s"] / theirs["per_cpu_s"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, required=True, help="Python of the environment that holds vLLM")
    parser.add_argument("--shape", nargs="+", choices=list(GATES), default=list(GATES), help="which shapes")
    parser.add_argument("--dtype", nargs="+", choices=["float32", "bfloat16"], default=["float32", "bfloat16"])
    parser.add_argument("--requests", type=int, default=64, help="requests in one round")
    parser.add_argument("--rounds", type=int, default=2, help="rounds after the one that warms up; the best counts")
    parser.add_argument("--threads", type=int, default=2, help="of either side; 1 on a machine that others use")
    parser.add_argument("--limit-s", type=float, default=1800.0, help="seconds that vLLM may take for one row")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    options = parser.parse_args()
    rows = []
    print(f"{'shape':<6} {'dtype':<9} {'embedded':>9} {'vLLM':>7} {'wall ratio':>11} {'CPU ratio':>10}")
    for shape in options.shape:
        for dtype in options.dtype:
            row = side_by_side(options, shape, dtype)
            rows.append(row)
            print(
                f"{shape:<6} {dtype:<9} {row['embedded']:>9,.0f} {row['vllm']:>7,.0f} {row['wall_ratio']:>10.2f}x "
                f"{row['cpu_ratio']:>9.2f}x",
                flush=True,
            )
    print(f"output tokens per wall second, {options.threads} threads; CPU ratio: the same per CPU-second")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    fp32 = [row for row in rows if row["dtype"] == "float32"]
    return 0 if all(row["wall_ratio"] >= GATES[row["shape"]] for row in fp32) else 1


if __name__ == "__main__":
    sys.exit(main())
