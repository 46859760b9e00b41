"""Routed experts on their way: as arrays, as stored bytes, and as vLLM's answers spell them."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import pytest

from journeyman.engines import EngineError, Sampling
from journeyman.engines.experts import packed, unpacked
from journeyman.engines.vllm import wire


def npy(rows: Any) -> str:
    sink = io.BytesIO()
    np.save(sink, rows)
    return base64.b64encode(sink.getvalue()).decode()


def reply(experts: str | None) -> dict[str, Any]:
    content = [{"token_id": 5, "logprob": -0.5}, {"token_id": 6, "logprob": -0.25}]
    choice = {"token_ids": [5, 6], "finish_reason": "length", "logprobs": {"content": content}}
    return {"choices": [choice | ({"routed_experts": experts} if experts else {})]}


@pytest.mark.parametrize(("experts", "dtype"), [(128, np.uint8), (256, np.uint8), (512, np.uint16)])
def test_rows_come_back_as_they_were_in_the_smallest_type(experts: int, dtype: Any) -> None:
    rows = np.random.default_rng(experts).integers(0, experts, (50, 4, 8)).astype(np.int32)
    rows[0, 0, 0] = experts - 1
    back = unpacked(packed(rows))
    assert back.dtype == dtype
    assert np.array_equal(back, rows)


def test_compressed_they_are_no_larger_than_raw_and_small_where_routing_repeats() -> None:
    even = np.zeros((1000, 48, 8), np.uint8)
    assert len(packed(even)) < even.nbytes / 100


@pytest.mark.parametrize(
    "bad", [np.zeros((3, 4)), np.zeros((3, 4, 2)), np.full((3, 4, 2), -1), np.full((1, 1, 1), 70_000)]
)
def test_what_are_no_experts_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="routed experts"):
        packed(bad)


@pytest.mark.parametrize("bad", [b"", b"no zlib", packed(np.zeros((1, 1, 1), np.uint8))[:-9]])
def test_bytes_that_hold_none_are_refused(bad: bytes) -> None:
    with pytest.raises(ValueError, match="packed experts"):
        unpacked(bad)


def test_an_answer_of_vllm_is_read_as_it_was_written() -> None:
    rows = np.arange(24, dtype=np.uint16).reshape(3, 4, 2) + 250
    found = wire.parse_tokens(reply(npy(rows)), 0, 0).routed_experts
    assert found is not None and np.array_equal(found, rows)
    assert wire.parse_tokens(reply(None), 0, 0).routed_experts is None


@pytest.mark.parametrize("bad", ["???", base64.b64encode(b"nothing").decode(), npy(np.zeros((2, 2)))])
def test_an_answer_with_other_experts_is_an_error_of_the_server(bad: str) -> None:
    with pytest.raises(EngineError, match="routed experts"):
        wire.parse_tokens(reply(bad), 0, 0)


def test_only_a_server_that_tells_experts_is_asked_where_to_begin() -> None:
    sampling = Sampling(4, 1.0, frozenset())
    assert "routed_experts_prompt_start" not in wire.sampling_params(sampling, 1)
    assert wire.sampling_params(sampling, 1, 7)["routed_experts_prompt_start"] == 7
