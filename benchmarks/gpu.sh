#!/bin/sh
# The training step on one GPU, in at most 8 minutes, with PyTorch, Triton and transformers only; nothing is downloaded.
#
#   sh benchmarks/gpu.sh              a 0.6B Qwen3 shape, 32K-token sequences, on the GPU
#   sh benchmarks/gpu.sh --tiny       the same program on a CPU in seconds, to see that it runs
#
# Figures go to stdout and, as JSON, to ${OUT:-.}/gpu-step.json.
set -eu
cd "$(dirname "$0")/.."
export PYTHONPATH="src${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
export PYTORCH_CUDA_ALLOC_CONF="${PYTORCH_CUDA_ALLOC_CONF:-expandable_segments:True}"
exec timeout 480 "${PYTHON:-python3}" benchmarks/gpu_step.py --out "${OUT:-.}/gpu-step.json" "$@"
