"""The columns of a Parquet part, and how each is encoded. ``docs/store.md`` explains them to readers of the files."""

from __future__ import annotations

from typing import Any

from journeyman.trials.store.schema import VERSION, VERSION_KEY

ROWS_PER_GROUP = 4
"""Trials per row group: reading one trajectory decodes one group, and a group is what zstd may find repeats in."""
ROWS_PER_PART = 256
LEVEL = 3
DICTIONARY_COLUMNS = (
    *("batch", "task_id", "world_id", "family", "split", "harness"),
    *("stop_reason", "outcome", "cause"),
)
SPLIT_COLUMNS = ("token_ids.list.element", "logprobs.list.element")
"""Written by byte (BYTE_STREAM_SPLIT): all high bytes together, all low ones together, which zstd shrinks most."""
LIGHT = (
    *("trajectory_id", "trial_id", "attempt", "batch", "task_id", "world_id", "family", "split", "harness", "sample"),
    *("temperature", "stop_reason", "outcome", "cause", "reward", "passed", "cost_usd"),
    *("n_tokens", "n_sampled", "n_calls"),
)
"""Columns that make a ``TrialRow``; cheap to read."""


def cold_schema() -> Any:
    """The Arrow schema of a part; the version is in its metadata."""
    import pyarrow as pa

    text, number = pa.string(), pa.float64()
    span = pa.struct([(name, pa.int32()) for name in ("start", "end", "source", "policy_version", "turn")])
    part = pa.struct([("name", text), ("value", number)])
    shared = pa.list_(pa.struct([("start", pa.int32()), ("end", pa.int32())]))
    segment = pa.struct([("reason", text), ("start", pa.int32()), ("shared", shared)])
    return pa.schema(
        [
            ("trajectory_id", text),
            ("trial_id", text),
            ("attempt", pa.int32()),
            *((name, text) for name in ("batch", "task_id", "world_id", "family", "split", "harness")),
            ("sample", pa.int32()),
            ("temperature", number),
            *((name, text) for name in ("stop_reason", "outcome", "cause")),
            ("reward", number),
            ("reward_parts", pa.list_(part)),
            ("passed", pa.bool_()),
            ("cost_usd", number),
            ("policy_version_min", pa.int32()),
            ("policy_version_max", pa.int32()),
            *((name, pa.int32()) for name in ("n_tokens", "n_sampled", "n_calls")),
            ("token_ids", pa.list_(pa.int32())),
            ("loss_mask", pa.list_(pa.uint8())),
            ("logprobs", pa.list_(pa.float32())),
            ("turn_spans", pa.list_(span)),
            ("segments", pa.list_(segment)),
            ("routed_experts", pa.binary()),
            ("record", text),
            ("events", text),
        ],
        metadata={VERSION_KEY: str(VERSION)},
    )


def writer_options() -> dict[str, Any]:
    """Keywords of ``pyarrow.parquet.ParquetWriter``: dictionaries for names only, ids and logprobs by byte."""
    return {
        "compression": "zstd",
        "compression_level": LEVEL,
        "use_dictionary": list(DICTIONARY_COLUMNS),
        "column_encoding": dict.fromkeys(SPLIT_COLUMNS, "BYTE_STREAM_SPLIT"),
        "write_statistics": list(LIGHT),
        "data_page_size": 1 << 20,
    }
