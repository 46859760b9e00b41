"""The vLLM side of ``benchmarks/engine_vllm.py``: run by the Python of vLLM's own environment, prints one line of JSON.

.venv-vllm/bin/python benchmarks/vllm_inside.py MODEL_DIR PROMPTS.json DTYPE NEW ROWS ROUNDS
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    model, prompts_path, dtype, new, rows, rounds = sys.argv[1:]
    os.environ |= {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_PLUGINS": "",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "HF_HUB_OFFLINE": "1",
        "DO_NOT_TRACK": "1",
    }
    from vllm import LLM, SamplingParams

    prompts: list[list[int]] = json.loads(Path(prompts_path).read_text())
    llm = LLM(
        model,
        dtype=dtype,
        max_model_len=len(prompts[0]) + int(new) + 2,
        max_num_seqs=int(rows),
        enforce_eager=True,
        gpu_memory_utilization=0.1,
        skip_tokenizer_init=True,
        enable_prefix_caching=False,
        disable_log_stats=True,
    )
    sampling = SamplingParams(max_tokens=int(new), temperature=1.0, ignore_eos=True, logprobs=0, detokenize=False)
    asked: list[Any] = [{"prompt_token_ids": row} for row in prompts]
    best_cpu = best_wall = 0.0
    for round_ in range(int(rounds) + 1):  # the first warms up
        cpu, wall = time.process_time(), time.perf_counter()
        outputs = llm.generate(asked, sampling, use_tqdm=False)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        sampled = sum(len(output.outputs[0].token_ids) for output in outputs)
        if round_:
            best_cpu, best_wall = max(best_cpu, sampled / cpu), max(best_wall, sampled / wall)
    print("\nRESULT " + json.dumps({"per_cpu_s": best_cpu, "per_wall_s": best_wall}))


if __name__ == "__main__":
    main()
