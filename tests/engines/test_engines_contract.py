"""One suite for every engine in ENGINES: a new entry is tested by existing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from journeyman.engines import ENGINES, ContextOverflow, Engine, EngineError, Sampling, TurnRequest, TurnResult
from journeyman.errors import SystemFault

STOP = 2
MAX_LEN = 64
TRIALS = [f"trial-{n}" for n in range(7)]
WORDS = [[11, 12, 13, STOP], [14, STOP], [15, 16, 17, 18, 19, 20, 21, 22]]


def _embedded(model: Any) -> Engine:
    engine: Engine = ENGINES["embedded"]()(
        model.config.to_dict(), model.state_dict(), rows=8, max_len=MAX_LEN, version=3
    )
    return engine


def _scripted(model: Any) -> Engine:
    scripts = {trial: [WORDS[(n + turn) % 3] for turn in range(8)] for n, trial in enumerate(TRIALS)}
    engine: Engine = ENGINES["scripted"]()(scripts, version=3, max_len=MAX_LEN)
    return engine


BUILD: dict[str, Callable[[Any], Engine]] = {"embedded": _embedded, "scripted": _scripted}


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest, model: Any) -> Engine:
    return BUILD[request.param](model)


def request(trial: str, append: list[int] | None = None, *, key: int = 1, limit: int = 6) -> TurnRequest:
    return TurnRequest(trial, append or [4, 5, 6], key, Sampling(limit, 1.0, frozenset({STOP})))


def talk(engine: Engine, turns: int) -> list[TurnResult]:
    """A conversation of every trial over some turns; everything that was answered."""
    results: list[TurnResult] = []
    done = dict.fromkeys(TRIALS, 0)

    def respond(result: TurnResult) -> TurnRequest | None:
        results.append(result)
        done[result.trial] += 1
        if done[result.trial] == turns:
            return None
        return request(result.trial, [7, 8], key=hash((result.trial, done[result.trial])))

    engine.converse([request(trial, [4, 5, 6 + n], key=n) for n, trial in enumerate(TRIALS)], respond)
    return results


def same(a: list[TurnResult], b: list[TurnResult]) -> bool:
    def rows(results: list[TurnResult]) -> list[Any]:
        return [(r.trial, r.ids, r.logprobs.tobytes(), r.finish, r.version) for r in results]

    return rows(a) == rows(b)


def test_a_turn_has_one_logprob_per_id_and_ends_at_its_stop_id_or_its_limit(engine: Engine) -> None:
    for result in talk(engine, 3):
        assert result.logprobs.dtype == np.float32
        assert result.logprobs.shape == (len(result.ids),)
        assert (result.logprobs <= 0).all()
        assert np.isfinite(result.logprobs).all()
        assert STOP not in result.ids[:-1]
        if result.finish == "stop":
            assert result.ids[-1] == STOP
        else:
            assert len(result.ids) == 6
            assert result.ids[-1] != STOP
        assert result.version == engine.version == 3


def test_every_turn_of_every_trial_is_answered_once(engine: Engine) -> None:
    results = talk(engine, 3)
    assert sorted(r.trial for r in results) == sorted(TRIALS * 3)


def test_the_same_requests_give_the_same_results_in_the_same_order_bit_for_bit(engine: Engine) -> None:
    assert same(talk(engine, 4), talk(engine, 4))


def test_generate_answers_in_the_order_of_the_requests_and_remembers_until_release(engine: Engine) -> None:
    requests = [request(trial) for trial in reversed(TRIALS)]
    first = engine.generate(requests)
    assert [r.trial for r in first] == TRIALS[::-1]
    assert not same(engine.generate(requests), first)
    for trial in (*TRIALS, "never seen"):
        engine.release(trial)
    assert same(engine.generate(requests), first)


def test_two_turns_by_generate_equal_the_same_two_turns_by_converse(engine: Engine) -> None:
    results: list[TurnResult] = []

    def respond(result: TurnResult) -> TurnRequest | None:
        results.append(result)
        return request(TRIALS[2], [7], key=9) if len(results) == 1 else None

    engine.converse([request(TRIALS[2])], respond)
    by_hand = [*engine.generate([request(TRIALS[2])]), *engine.generate([request(TRIALS[2], [7], key=9)])]
    assert same(results, by_hand)


def test_a_context_that_would_not_fit_is_a_system_error_that_names_the_trial(engine: Engine) -> None:
    with pytest.raises(ContextOverflow, match="trial-0") as caught:
        engine.generate([request(TRIALS[0], [4] * (MAX_LEN - 5), limit=6)])
    assert (caught.value.needed, caught.value.limit) == (MAX_LEN + 1, MAX_LEN)
    assert isinstance(caught.value, SystemFault)
    assert caught.value.cause == "engine_failed"
    engine.generate([request(TRIALS[0], [4] * (MAX_LEN - 6), limit=6)])


def test_sampled_tokens_count_towards_the_context(engine: Engine) -> None:
    (first,) = engine.generate([request(TRIALS[0])])
    room = MAX_LEN - 3 - len(first.ids) - 6
    with pytest.raises(ContextOverflow):
        engine.generate([request(TRIALS[0], [4] * (room + 1))])


@pytest.mark.parametrize("bad", ["twice", "nothing", "other trial"])
def test_a_request_that_makes_no_sense_is_refused_and_the_engine_goes_on(engine: Engine, bad: str) -> None:
    expected = talk(engine, 2)
    with pytest.raises(EngineError):
        if bad == "twice":
            engine.generate([request(TRIALS[0]), request(TRIALS[0])])
        elif bad == "nothing":
            engine.generate([TurnRequest(TRIALS[0], [], 1, Sampling(4, 1.0, frozenset({STOP})))])
        else:
            engine.converse([request(TRIALS[0])], lambda result: request(TRIALS[1]))
    assert same(talk(engine, 2), expected)


def test_an_error_in_the_answer_reaches_the_caller_and_releases_every_trial(engine: Engine) -> None:
    expected = talk(engine, 2)

    def respond(result: TurnResult) -> TurnRequest | None:
        raise ArithmeticError("the tool broke")

    with pytest.raises(ArithmeticError):
        engine.converse([request(trial) for trial in TRIALS], respond)
    assert same(talk(engine, 2), expected)


def test_no_request_is_no_work(engine: Engine) -> None:
    engine.converse([], lambda result: None)
    assert engine.generate([]) == []


def test_a_pushed_version_is_the_version_of_the_next_turn(engine: Engine, model: Any) -> None:
    engine.update_weights(model.state_dict(), 4)
    assert {r.version for r in talk(engine, 1)} == {4}


def test_close_is_idempotent(engine: Engine) -> None:
    engine.close()
    engine.close()


def test_every_engine_is_in_this_suite() -> None:
    assert set(BUILD) == set(ENGINES)


@pytest.mark.parametrize("bad", [{"max_new_tokens": 0}, {"temperature": -0.1}, {"temperature": float("nan")}])
def test_sampling_that_means_nothing_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Sampling(**{"max_new_tokens": 1, "temperature": 1.0, "stop_ids": frozenset({STOP}), **bad})
