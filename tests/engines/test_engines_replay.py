from __future__ import annotations

import numpy as np
import pytest

from journeyman.engines import EngineError, Sampling, TurnRequest, WeightSpan
from journeyman.engines.replay import ReplayEngine, recorded_turns

STOP = 2
IDS = np.array([10, 11, 5, 6, STOP, 12, 7, 8, STOP, 13])
SAMPLED = np.array([0, 0, 1, 1, 1, 0, 1, 1, 1, 0], dtype=bool)
LOGPROBS = -np.arange(10, dtype=np.float32)
VERSIONS = np.array([-1, -1, 0, 0, 1, -1, 1, 1, 1, -1])


def ask(append: list[int], limit: int = 8) -> TurnRequest:
    return TurnRequest("a", append, 0, Sampling(limit, 1.0, frozenset({STOP})))


def engine() -> ReplayEngine:
    return ReplayEngine({"a": recorded_turns(IDS, SAMPLED, LOGPROBS, VERSIONS)})


def test_a_recorded_trial_is_played_with_its_logprobs_and_versions() -> None:
    player = engine()
    (first,) = player.generate([ask([10, 11])])
    (second,) = player.generate([ask([12])])
    assert (first.ids, first.logprobs.tolist(), first.finish) == ([5, 6, STOP], [-2, -3, -4], "stop")
    assert first.spans == (WeightSpan(0, 0, 2), WeightSpan(1, 2, 3))
    assert (second.ids, second.logprobs.tolist(), second.version) == ([7, 8, STOP], [-6, -7, -8], 1)


@pytest.mark.parametrize(("append", "at"), [([10, 12], 2), ([10], 2), ([10, 11, 12], 3)])
def test_a_harness_that_asks_otherwise_is_found_at_the_first_id_that_differs(append: list[int], at: int) -> None:
    with pytest.raises(EngineError, match=rf"turn 1 of trial 'a'.*number {at} is the first"):
        engine().generate([ask(append)])


def test_a_record_that_is_over_says_so() -> None:
    player = engine()
    player.generate([ask([10, 11])])
    player.generate([ask([12])])
    with pytest.raises(EngineError, match="turn 3"):
        player.generate([ask([13])])


def test_a_record_takes_no_weights() -> None:
    with pytest.raises(EngineError, match="record"):
        engine().update_weights({}, 9)
