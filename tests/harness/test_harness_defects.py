"""The policy for malformed calls: repaired and executed, answered, drawn again, or the end, per class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from harness_driving import Drawer, Opened

from journeyman.engines.protocol import TurnResult
from journeyman.harness import SPECS
from journeyman.tokens.context import segment_columns
from journeyman.tokens.malformed import DEFAULT_POLICY
from journeyman.tokens.runs import encode_parts

READ = '{"name": "filesystem_read_text_file", "arguments": {"path": "a"}}'
MAIL = '{"name": "mail_send_mail", "arguments": {"to": "ann", "body": "b"}}'


def written(trial: Opened, text: str) -> list[int]:
    """A Hermes turn as spelled, special tokens by id."""
    return encode_parts(trial.renderer.tokenizer, [text])


def call(body: str, close: str = "</tool_call>") -> str:
    return f"<tool_call>\n{body}\n{close}<|im_end|>"


def test_a_turn_of_broken_json_is_drawn_again_twice_and_then_answered(opened: Callable[..., Opened]) -> None:
    trial = opened("react", tools=Drawer({"a": "412"}))
    bad = written(trial, call('{"name": "filesystem_read_text_file", "arguments": {'))
    loop = trial.play([bad, bad, bad, written(trial, call(READ))])
    assert [turn.discarded for turn in loop.turns] == [True, True, False, False]
    assert [turn.number for turn in loop.turns] == [1, 2, 3, 4]
    assert loop.discarded == {1, 2}
    assert loop.epoch == 2
    assert "bad_json" in loop.turns[2].observation
    assert loop.turns[3].observation == "412"
    rows = segment_columns(loop.context.arrays(), loop.context.segments)
    assert [segment.reason for segment in loop.context.segments] == ["opening", "regenerated", "regenerated"]
    prompt = len(rows[0].ids) - len(bad)
    assert rows[0].ids[:prompt].tolist() == rows[1].ids[:prompt].tolist() == rows[2].ids[:prompt].tolist()
    assert rows[0].ids[prompt:].tolist() == bad  # kept, in a segment of its own
    assert [int(row.mask.sum()) for row in rows] == [0, 0, sum(turn.n_sampled for turn in loop.turns[2:])]
    assert rows[2].ids.tolist() == loop.context.ids


def test_discarded_turns_count_against_the_budget(opened: Callable[..., Opened]) -> None:
    trial = opened("react", tools=Drawer({}), budget=replace(SPECS["react"].budget, max_turns=2))
    bad = written(trial, call("{"))
    loop = trial.play([bad, bad, bad])
    assert (loop.stop_reason, len(loop.turns)) == ("limit.turns", 2)


def test_an_unclosed_call_and_two_calls_in_one_tag_are_executed_and_flagged(opened: Callable[..., Opened]) -> None:
    trial = opened("react", tools=Drawer({"a": "412"}))
    loop = trial.play([written(trial, call(READ, close="")), written(trial, call(f"{READ}\n{READ}"))])
    assert [turn.malformed for turn in loop.turns] == [("unclosed",), ("multi_json",)]
    assert [turn.repaired for turn in loop.turns] == [1, 2]
    assert [turn.observation for turn in loop.turns] == ["412", "412\n412"]


def test_another_policy_answers_what_the_default_executes(opened: Callable[..., Opened]) -> None:
    drawer = Drawer({})
    trial = opened("react", tools=drawer, malformed={**DEFAULT_POLICY, "multi_json": "error_result"})
    loop = trial.play([written(trial, call(f"{MAIL}\n{MAIL}"))])
    assert drawer.files == {}
    assert "multi_json" in loop.turns[0].observation


def test_a_policy_may_end_the_trial_and_then_nothing_is_executed(opened: Callable[..., Opened]) -> None:
    drawer = Drawer({})
    trial = opened("react", tools=drawer, malformed={**DEFAULT_POLICY, "unknown_tool": "end"})
    loop = trial.play(
        [written(trial, call(MAIL).removesuffix("<|im_end|>") + "\n" + call('{"name": "x", "arguments": {}}'))]
    )
    assert loop.stop_reason == "limit.malformed"
    assert drawer.files == {}


def test_nothing_is_executed_in_a_turn_that_is_drawn_again(opened: Callable[..., Opened]) -> None:
    drawer = Drawer({})
    trial = opened("react", tools=drawer)
    turn = written(trial, call(MAIL).removesuffix("<|im_end|>") + "\n" + call("{"))
    loop = trial.play([turn])
    assert loop.turns[0].discarded
    assert drawer.files == {}


def test_results_and_errors_come_back_in_the_order_of_the_calls(opened: Callable[..., Opened]) -> None:
    trial = opened("react", tools=Drawer({"a": "412"}))
    unknown = call('{"name": "x", "arguments": {}}').removesuffix("<|im_end|>")
    loop = trial.play([written(trial, f"{unknown}\n{call(READ)}")])
    first, second = loop.turns[0].observation.split("\n")
    assert first.startswith("error: no tool") and second == "412"
    assert [item.status for item in loop.turns[0].calls] == ["unknown_tool", "ok"]


def test_text_after_a_call_costs_nothing(opened: Callable[..., Opened]) -> None:
    trial = opened("react", tools=Drawer({"a": "412"}))
    loop = trial.play([written(trial, f"<tool_call>\n{READ}\n</tool_call>\nthat was it<|im_end|>")])
    assert loop.turns[0].observation == "412"
    assert loop.turns[0].malformed == ("text_after_call",)


@pytest.mark.parametrize("name", ["react", "toolbelt"])
def test_a_turn_cut_at_its_length_is_closed_answered_and_not_taken_for_an_answer(
    name: str, opened: Callable[..., Opened]
) -> None:
    trial = opened(name, tools=Drawer({"a": "412"}))
    trial.sent = trial.loop.open("do it", [])
    ids = written(trial, "I will now think about")
    result = TurnResult("t", ids, np.full(len(ids), -0.5, np.float32), "length", 0)
    appended = trial.take(result)
    assert appended is not None
    assert trial.loop.stop_reason is None
    assert trial.loop.turns[0].malformed == ("truncated_by_length",)
    columns = trial.loop.context.arrays()
    assert columns.mask.sum() == len(ids)
