"""One suite for every engine: an entry in CONTRACT (conftest.py) is tested by existing, a capability when claimed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from journeyman.engines import (
    CAPABILITIES,
    ENGINES,
    ContextOverflow,
    Engine,
    EngineError,
    Sampling,
    TurnRequest,
    TurnResult,
    WeightSpan,
)
from journeyman.errors import InputError, SystemFault

STOP = 2
MAX_LEN = 64
TRIALS = [f"trial-{n}" for n in range(7)]
ELSEWHERE = {"vllm", "openai"}
"""Engines whose suites need a server: their own files say how the contract is run on them."""


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
    needs(engine, "inflight_update")
    engine.update_weights(model.state_dict(), 4)
    assert {r.version for r in talk(engine, 1)} == {4}


def test_close_is_idempotent(engine: Engine) -> None:
    engine.close()
    engine.close()


def test_every_engine_is_in_this_suite(contract_engines: set[str]) -> None:
    assert set(ENGINES) - ELSEWHERE <= contract_engines


def needs(engine: Engine, *words: str) -> None:
    missing = set(words) - engine.capabilities
    if missing:
        pytest.skip(f"{type(engine).__name__} lacks {', '.join(sorted(missing))}")


def drain(engine: Engine, count: int) -> dict[str, TurnResult]:
    """Step until ``count`` turns ended."""
    results: dict[str, TurnResult] = {}
    for _ in range(500):
        results |= {result.trial: result for result in engine.step(5.0)}
        if len(results) >= count:
            return results
    raise AssertionError(f"{len(results)} of {count} turns ended")


def test_capabilities_are_words_of_the_protocol(engine: Engine) -> None:
    assert engine.capabilities <= CAPABILITIES


def test_spans_cover_the_turn_and_name_its_version(engine: Engine) -> None:
    needs(engine, "spans")
    for result in talk(engine, 2):
        assert result.spans == (WeightSpan(3, 0, len(result.ids)),)


def test_steps_by_hand_equal_generate(engine: Engine) -> None:
    needs(engine, "seed")
    expected = {result.trial: result for result in engine.generate([request(trial) for trial in TRIALS])}
    for trial in TRIALS:
        engine.release(trial)
        engine.submit(request(trial))
    found = drain(engine, len(TRIALS))
    assert {trial: found[trial].ids for trial in TRIALS} == {trial: expected[trial].ids for trial in TRIALS}


def test_a_step_with_nothing_to_do_is_no_error(engine: Engine) -> None:
    assert engine.step(0.1) == []


def test_a_trial_has_one_turn_under_way(engine: Engine) -> None:
    engine.submit(request(TRIALS[0]))
    with pytest.raises(EngineError, match="under way"):
        engine.submit(request(TRIALS[0]))
    drain(engine, 1)


def test_a_cancelled_turn_ends_alone_and_can_be_gone_on_with(engine: Engine) -> None:
    needs(engine, "cancel")
    for trial in TRIALS[:3]:
        engine.submit(request(trial))
    partial = engine.cancel(TRIALS[1])
    assert partial is not None
    assert (partial.trial, partial.finish, len(partial.logprobs)) == (TRIALS[1], "abort", len(partial.ids))
    assert engine.cancel(TRIALS[1]) is None
    assert engine.cancel("never seen") is None
    assert set(drain(engine, 2)) == {TRIALS[0], TRIALS[2]}
    more = TurnRequest(TRIALS[1], [], 1, Sampling(6 - len(partial.ids), 1.0, frozenset({STOP})), len(partial.ids))
    engine.submit(more)
    assert drain(engine, 1)[TRIALS[1]].finish in ("stop", "length")


def test_a_pause_holds_everything_and_queues_what_is_new(engine: Engine) -> None:
    needs(engine, "pause_keep", "seed")
    expected = {result.trial: result.ids for result in engine.generate([request(trial) for trial in TRIALS])}
    for trial in TRIALS:
        engine.release(trial)
    for trial in TRIALS[:4]:
        engine.submit(request(trial))
    found = {result.trial: result for result in engine.step(5.0)}
    assert engine.pause("keep") == []
    assert engine.pause("keep") == []
    assert engine.paused
    for trial in TRIALS[4:]:
        engine.submit(request(trial))
    assert engine.step(0.1) == []
    engine.resume()
    engine.resume()
    assert not engine.paused
    found |= drain(engine, len(TRIALS) - len(found))
    assert {trial: result.ids for trial, result in found.items()} == expected


def test_a_pause_that_waits_finishes_what_runs(engine: Engine) -> None:
    needs(engine, "pause_wait")
    for trial in TRIALS:
        engine.submit(request(trial))
    ended = [*engine.step(5.0), *engine.pause("wait", deadline_s=20.0)]
    assert sorted(result.trial for result in ended) == TRIALS
    assert {result.finish for result in ended} <= {"stop", "length"}
    assert engine.paused


def test_a_pause_that_aborts_returns_what_there_is(engine: Engine) -> None:
    for trial in TRIALS:
        engine.submit(request(trial))
    ended = [*engine.step(5.0), *engine.pause("abort")]
    assert sorted(result.trial for result in ended) == TRIALS
    assert "abort" in {result.finish for result in ended}
    engine.resume()
    assert engine.step(0.1) == []


def test_a_paused_engine_refuses_whole_conversations(engine: Engine) -> None:
    engine.pause("keep")
    with pytest.raises(EngineError, match="resume"):
        engine.generate([request(TRIALS[0])])
    engine.resume()
    assert engine.generate([request(TRIALS[0])])


def test_usage_counts_what_is_held_and_what_was_computed(engine: Engine) -> None:
    (result,) = engine.generate([request(TRIALS[0])])
    usage = engine.usage()
    assert 3 <= usage.tokens <= 3 + len(result.ids)
    assert usage.tokens <= usage.capacity
    engine.release(TRIALS[0])
    assert engine.usage().tokens == 0


@pytest.mark.parametrize("asked", [{"top_logprobs": 2}, {"routed_experts": True}])
def test_what_an_engine_cannot_tell_is_refused_before_anything_is_changed(
    engine: Engine, asked: dict[str, Any]
) -> None:
    (word,) = asked
    if word in engine.capabilities:
        pytest.skip(f"this engine tells {word}")
    with pytest.raises(InputError, match=f"sampling.{word}"):
        engine.submit(TurnRequest(TRIALS[0], [4, 5, 6], 1, Sampling(8, 1.0, frozenset({STOP}), **asked)))
    (result,) = engine.generate([TurnRequest(TRIALS[0], [4, 5, 6], 1, Sampling(8, 1.0, frozenset({STOP})))])
    assert result.ids


def test_a_closed_engine_says_so_and_closing_twice_is_nothing(engine: Engine) -> None:
    engine.close()
    engine.close()
    with pytest.raises(EngineError, match="submit after close"):
        engine.submit(TurnRequest(TRIALS[0], [4, 5, 6], 1, Sampling(8, 1.0, frozenset({STOP}))))
    with pytest.raises(EngineError, match="step after close"):
        engine.step()


def test_spans_that_leave_a_token_out_or_go_back_cannot_be_made() -> None:
    ids, logprobs = [1, 2, 3], np.zeros(3, dtype=np.float32)
    for spans in ((WeightSpan(1, 0, 2),), (WeightSpan(1, 0, 1), WeightSpan(1, 2, 3)), (WeightSpan(1, 1, 3),)):
        with pytest.raises(ValueError, match="spans"):
            TurnResult("t", ids, logprobs, "length", 1, spans)
    with pytest.raises(ValueError, match="in order"):
        TurnResult("t", ids, logprobs, "length", 1, (WeightSpan(2, 0, 1), WeightSpan(1, 1, 3)))


@pytest.mark.parametrize(
    "bad",
    [
        {"max_new_tokens": 0},
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"top_k": -1},
        {"top_logprobs": -1},
    ],
)
def test_sampling_that_means_nothing_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Sampling(**{"max_new_tokens": 1, "temperature": 1.0, "stop_ids": frozenset({STOP}), **bad})
