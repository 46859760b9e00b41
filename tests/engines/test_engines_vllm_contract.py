"""The contract of every engine, on vLLM's adapter over real sockets; the server is a small real model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import numpy as np
import pytest
import test_engines_contract as suite
from engines_fake_vllm import FakeVllm, serving
from test_engines_contract import *  # noqa: F403
from test_engines_contract import MAX_LEN, STOP, TRIALS, drain, request

from journeyman.engines import Engine, Sampling, TurnRequest, TurnResult
from journeyman.engines.vllm import VllmEngine

pytestmark = pytest.mark.thorough


@pytest.fixture(autouse=True)
def same_numbers_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server finds prefixes in its cache and ends turns as they come: equal ids, logprobs to a rounding."""

    def alike(a: list[TurnResult], b: list[TurnResult]) -> bool:
        pairs = zip(sorted(a, key=lambda r: r.trial), sorted(b, key=lambda r: r.trial), strict=True)
        return all(
            (x.trial, x.ids, x.finish, x.version) == (y.trial, y.ids, y.finish, y.version)
            and np.allclose(x.logprobs, y.logprobs, atol=1e-4)
            for x, y in pairs
        )

    monkeypatch.setattr(suite, "same", alike)


@pytest.fixture(params=["two servers", "completions"])
def engine(request: pytest.FixtureRequest, model: Any) -> Iterator[Engine]:
    two = request.param == "two servers"
    missing = set() if two else {"/inference/v1/generate"}
    with ExitStack() as stack:
        fakes = [FakeVllm(model, max_len=MAX_LEN, token_s=0.004, missing=missing) for _ in range(1 + two)]
        urls = [stack.enter_context(serving(fake)).url for fake in fakes]
        yield stack.enter_context(closing(VllmEngine(urls, version=3)))


def test_a_pause_holds_everything_and_queues_what_is_new(engine: Engine) -> None:
    """As in the suite; turns that ended before the pause reached the server may still come in."""
    if "pause_keep" not in engine.capabilities:
        pytest.skip("no route to pause")
    expected = {result.trial: result.ids for result in engine.generate([request(trial) for trial in TRIALS])}
    for trial in TRIALS:
        engine.release(trial)
    for trial in TRIALS[:4]:
        engine.submit(request(trial))
    assert engine.pause("keep") == engine.pause("keep") == []
    assert engine.paused
    for trial in TRIALS[4:]:
        engine.submit(request(trial))
    found = {result.trial: result for result in engine.step(0.1)}
    time.sleep(0.3)
    assert engine.step(0.1) == []
    assert found.keys() <= set(TRIALS[:4])
    engine.resume()
    engine.resume()
    assert not engine.paused
    found |= drain(engine, len(TRIALS) - len(found))
    assert {trial: result.ids for trial, result in found.items()} == expected


def test_a_cancelled_turn_ends_alone_and_can_be_gone_on_with(engine: Engine) -> None:
    """As in the suite, with turns long enough to be under way when the word arrives."""
    for trial in TRIALS[:3]:
        engine.submit(request(trial, limit=6 if trial != TRIALS[1] else 50))
    partial = engine.cancel(TRIALS[1])
    assert partial is not None
    assert (partial.trial, partial.finish, len(partial.logprobs)) == (TRIALS[1], "abort", len(partial.ids))
    assert len(partial.ids) < 50
    assert engine.cancel(TRIALS[1]) is None
    assert engine.cancel("never seen") is None
    assert set(drain(engine, 2)) == {TRIALS[0], TRIALS[2]}
    engine.submit(TurnRequest(TRIALS[1], [], 1, Sampling(4, 1.0, frozenset({STOP})), len(partial.ids)))
    assert drain(engine, 1)[TRIALS[1]].finish in ("stop", "length")


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
