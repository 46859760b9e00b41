"""NaN quarantine: a batch whose numbers are not finite takes no step, and is kept for whoever looks for the cause."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.durable import publish_directory, storage_error
from journeyman.train.protocol import TrainRow

SURELY_A_PROBABILITY = 1e-4
"""A rollout logprob above this is no rounding error: the engine reported no probability."""


def offending_rows(rows: Sequence[TrainRow]) -> dict[int, str]:
    """Rows that no step may take in, by index, with the reason; the trained tokens alone are looked at."""
    found: dict[int, str] = {}
    for index, row in enumerate(rows):
        logprobs = row.logprobs[row.mask.astype(bool)]
        if not np.isfinite(row.advantage):
            found[index] = f"advantage {row.advantage}"
        elif not np.isfinite(logprobs).all():
            found[index] = f"{int((~np.isfinite(logprobs)).sum())} rollout logprobs are not finite"
        elif len(logprobs) and float(logprobs.max()) > SURELY_A_PROBABILITY:
            found[index] = f"a rollout logprob is {float(logprobs.max()):.3g}: no probability is above 1"
    return found


def keep_batch(directory: Path, rows: Sequence[TrainRow], facts: dict[str, Any]) -> Path:
    """Write a batch durably: ``rows.npz`` (flat columns and offsets) and ``why.json``.

    Args:
        directory: of this batch; an existing one is replaced.
        rows: the whole batch.
        facts: JSON: the step, the reason, the positions of its Groups.

    Raises:
        StorageError: it cannot be written.
    """
    staging = directory.with_name(f".{directory.name}.tmp")
    try:
        staging.mkdir(parents=True, exist_ok=True)
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(row, name) for row in rows]) for name in ("ids", "mask", "logprobs")
        }
        np.savez(
            staging / "rows.npz",
            offsets=np.cumsum([0, *(len(row.ids) for row in rows)]),
            advantages=np.array([row.advantage for row in rows]),
            prompts=np.array([row.prompt for row in rows]),
            **columns,
        )
        (staging / "why.json").write_text(json.dumps(facts, indent=1, default=str) + "\n")
    except OSError as error:
        raise storage_error(directory, error) from error
    publish_directory(staging, directory)
    return directory
