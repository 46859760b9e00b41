"""The contract of every engine, on vLLM's adapter over real sockets; the server is a small real model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from engines_fake_vllm import FakeVllm, serving
from test_engines_contract import *  # noqa: F403
from test_engines_contract import MAX_LEN, STOP, TRIALS, drain

from journeyman.engines import Engine, Sampling, TurnRequest
from journeyman.engines.vllm import VllmEngine


@pytest.fixture(params=["one server", "two servers", "completions"])
def engine(request: pytest.FixtureRequest, model: Any) -> Iterator[Engine]:
    missing = {"/inference/v1/generate"} if request.param == "completions" else set()
    first, second = (FakeVllm(model, max_len=MAX_LEN, token_s=0.004, missing=missing) for _ in range(2))
    with serving(first), serving(second):
        urls = [first.url, second.url] if request.param == "two servers" else [first.url]
        with closing(VllmEngine(urls, version=3)) as built:
            yield built


def test_a_pause_that_aborts_returns_what_there_is(engine: Engine) -> None:
    """As in the suite, but for an engine whose steps are turns, not tokens."""
    for trial in TRIALS:
        engine.submit(TurnRequest(trial, [4, 5, 6], 1, Sampling(50, 1.0, frozenset({STOP}))))
    ended = engine.pause("abort")
    assert sorted(result.trial for result in ended) == TRIALS
    assert "abort" in {result.finish for result in ended}
    engine.resume()
    assert engine.step(0.1) == []
    engine.submit(TurnRequest(TRIALS[0], [], 1, Sampling(4, 1.0, frozenset()), offset=1))
    assert len(drain(engine, 1)[TRIALS[0]].ids) == 4
