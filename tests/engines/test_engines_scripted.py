from __future__ import annotations

import pytest

from journeyman.engines import EngineError, Sampling, TurnRequest
from journeyman.engines.scripted import ScriptedEngine


def turn(trial: str, limit: int = 8) -> TurnRequest:
    return TurnRequest(trial, [1], 0, Sampling(limit, 1.0, frozenset({2})))


def test_a_script_is_played_turn_by_turn_up_to_its_stop_or_the_limit() -> None:
    engine = ScriptedEngine({"a": [[5, 6, 2, 9], [7, 8, 9, 2]]})
    (first,) = engine.generate([turn("a")])
    (second,) = engine.generate([turn("a", limit=3)])
    assert (first.ids, first.finish) == ([5, 6, 2], "stop")
    assert (second.ids, second.finish) == ([7, 8, 9], "length")
    assert first.logprobs.tolist() == [0, 0, 0]


@pytest.mark.parametrize("scripts", [{}, {"a": []}, {"a": [[]]}, {"a": [[5]]}])
def test_a_script_that_is_over_or_has_no_stop_is_a_system_error(scripts: dict[str, list[list[int]]]) -> None:
    with pytest.raises(EngineError, match="trial 'a'"):
        ScriptedEngine(scripts).generate([turn("a")])
