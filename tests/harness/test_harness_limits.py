"""Budgets, cut results, the nudge, and what happens when a context is used up: each limit ends or turns a real loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from harness_driving import Drawer, Opened

from journeyman.errors import InputError
from journeyman.harness import SPECS, Budget, Prices
from journeyman.harness.agent import AgentLoop
from journeyman.sandbox.protocol import Sandbox
from journeyman.tokens.context import Source, segment_columns

SMALL = Budget(context_tokens=3_000, max_new_tokens=200, max_turns=100)
LONG = "\n".join(f"line {n}: Acme {n * 7}" for n in range(2_000))


def reads(trial: Opened, count: int, path: str = "a") -> list[Any]:
    return [trial.call("filesystem_read_text_file", path=path) for _ in range(count)]


def test_a_long_result_is_cut_by_tokens_says_so_and_lies_whole_in_the_sandbox(
    opened: Callable[..., Opened], open_shell: Callable[..., Sandbox]
) -> None:
    sandbox = open_shell()
    trial = opened("react", tools=Drawer({"a": LONG}), sandbox=sandbox, max_result_tokens=500)
    before = len(trial.loop.open("read", [])) + len(reads(trial, 1)[0])
    loop = opened("react", tools=Drawer({"a": LONG}), sandbox=sandbox, max_result_tokens=500).play(reads(trial, 1))
    seen = loop.turns[0].observation
    assert len(loop.context) - before < 600
    assert seen.startswith("line 0: Acme 0\n") and seen.endswith("line 1999: Acme 13993")
    assert "(2000 lines) were left out here: the whole text is in /tmp/outputs/result-0001.txt" in seen
    assert loop.turns[0].cut_results == 1
    assert sandbox.download("/tmp/outputs/result-0001.txt", deadline_s=10).decode() == LONG


def test_without_a_sandbox_a_cut_result_says_that_the_rest_is_gone(opened: Callable[..., Opened]) -> None:
    trial = opened("react", tools=Drawer({"a": LONG}), max_result_tokens=500)
    assert "it was not kept; ask for a smaller part" in trial.play(reads(trial, 1)).turns[0].observation


@pytest.mark.parametrize("family", ["qwen3", "glm-4.5", "gpt-oss"])
def test_the_nudge_comes_once_inside_the_last_result_and_is_never_trained_on(
    family: str, opened: Callable[..., Opened]
) -> None:
    trial = opened("react", family, tools=Drawer({"a": "word " * 100}), budget=SMALL, nudge=True)
    loop = trial.play(reads(trial, 30))
    nudged = [turn for turn in loop.turns if turn.nudged]
    assert len(nudged) == 1
    text = trial.renderer.tokenizer.decode(loop.context.ids)
    assert text.count("[notice: ") == 1
    columns = loop.context.arrays()
    ids = [int(i) for i, turn in zip(columns.ids, columns.turn, strict=True) if turn == nudged[0].number]
    after = trial.renderer.tokenizer.decode(ids).partition("[notice: ")[2]
    closing = {"qwen3": "\n</tool_response>", "glm-4.5": "\n</tool_response>", "gpt-oss": '"<|end|>'}[family]
    assert after.split("]", 1)[1].startswith(closing)
    assert columns.mask.sum() == (columns.source == int(Source.SAMPLED)).sum()


def test_there_is_no_nudge_in_evaluation(opened: Callable[..., Opened]) -> None:
    trial = opened("react", tools=Drawer({"a": "word " * 100}), budget=SMALL)
    loop = trial.play(reads(trial, 30))
    assert not any(turn.nudged for turn in loop.turns)
    assert loop.stop_reason == "limit.context"


def test_a_turn_that_would_not_fit_ends_the_trial_before_it_is_asked_for(opened: Callable[..., Opened]) -> None:
    trial = opened("react", tools=Drawer({"a": "word " * 100}), budget=SMALL)
    loop = trial.play(reads(trial, 100))
    assert loop.stop_reason == "limit.context"
    assert len(loop.context) <= SMALL.context_tokens


@pytest.mark.parametrize(
    ("limits", "reason", "turns"),
    [
        ({"max_turns": 3}, "limit.turns", 3),
        ({"max_tool_calls": 2}, "limit.calls", 2),
        ({"max_new_tokens_total": 60}, "limit.tokens", None),
        ({"working_s": 4.0}, "limit.time", None),
        ({"cost_usd": 0.01, "prices": Prices(1.0, 0.1, 100.0)}, "limit.cost", None),
    ],
)
def test_each_budget_ends_the_trial_with_its_own_reason(
    limits: dict[str, Any], reason: str, turns: int | None, opened: Callable[..., Opened]
) -> None:
    ticks = iter(range(10_000))
    budget = replace(SMALL, context_tokens=60_000, **limits)
    trial = opened("react", tools=Drawer({"a": "x"}), budget=budget, clock=lambda: 0.1 * next(ticks))
    loop = trial.play(reads(trial, 90))
    assert loop.stop_reason == reason
    assert turns is None or len(loop.turns) == turns
    assert len(loop.turns) < 90


def test_calls_beyond_the_budget_are_answered_and_not_executed(opened: Callable[..., Opened]) -> None:
    drawer = Drawer({})
    trial = opened("react", tools=drawer, budget=replace(SMALL, max_tool_calls=1))
    both = trial.renderer.demonstrate(
        trial.two("mail_send_mail", {"to": "ann", "body": "1"}, {"to": "bob", "body": "2"})
    )
    loop = trial.play([both])
    assert list(drawer.files) == ["mail to ann"]
    assert [call.status for call in loop.turns[0].calls] == ["ok", "tool_error"]
    assert loop.stop_reason == "limit.calls"


def test_compaction_goes_on_from_a_summary_in_a_segment_of_its_own(opened: Callable[..., Opened]) -> None:
    trial = opened("react", tools=Drawer({"a": "word " * 100}), budget=SMALL, at_limit="compact", summary_tokens=200)
    loop, appended = play_until_new_context(trial, reads(trial, 1)[0], trial.say("found: Acme is 412"))
    assert [segment.reason for segment in loop.context.segments] == ["opening", "compact"]
    assert "found: Acme is 412" in trial.renderer.tokenizer.decode(appended)
    assert loop.turns[-1].is_summary and loop.turns[-1].calls == ()
    assert loop.context.ids == appended
    assert len(appended) < SMALL.context_tokens / 2
    first, second = segment_columns(loop.context.arrays(), loop.context.segments)
    assert second.ids.tolist() == appended
    assert second.mask.sum() == 0 and first.mask.sum() == sum(turn.n_sampled for turn in loop.turns)
    shared = sum(end - start for start, end in loop.context.segments[1].shared)
    assert loop.context.stored == len(first.ids) + len(appended) - shared
    assert shared > len(appended) / 2


def test_compaction_happens_no_more_than_five_times(opened: Callable[..., Opened]) -> None:
    trial = opened("react", tools=Drawer({"a": "word " * 300}), budget=SMALL, at_limit="compact", summary_tokens=200)
    append = trial.loop.open("do it", [])
    trial.sent = list(append)
    for number in range(200):
        turn = trial.say("so far") if trial.loop._is_summing_up else reads(trial, 1)[0]
        following = trial.respond(append, turn, f"t{number}")
        if following is None:
            break
        append = following
    assert trial.loop.stop_reason == "limit.context"
    assert len(trial.loop.context.segments) == 6
    check_costs(trial.loop)


def test_clear_and_retry_begins_at_most_five_fresh_contexts_and_counts_what_each_cost(
    opened: Callable[..., Opened],
) -> None:
    budget = replace(SMALL, calls_per_context=2, prices=Prices(1.0, 0.1, 4.0))
    trial = opened("toolbelt", tools=Drawer({"a": "x"}), budget=budget, at_limit="clear-and-retry")
    todo = trial.call("todo_write", todos=[{"id": "1", "content": "x", "status": "pending"}])
    done = trial.call("final_answer", answer="y", status="completed")
    loop = trial.play([todo, todo] * 20)
    assert loop.stop_reason == "limit.calls"
    assert [cost.left_for for cost in loop.contexts] == ["clear-and-retry"] * 5 + [""]
    assert [cost.spent.tool_calls for cost in loop.contexts] == [2] * 6
    assert loop.spec.score_kind == "retry@6" == loop.spec.described()["score_kind"]
    check_costs(loop)
    again = opened("toolbelt", tools=Drawer({"a": "x"}), budget=budget, at_limit="clear-and-retry")
    second = again.play([todo, todo, done])
    assert (second.stop_reason, second.answer) == ("answered", "y")  # the old todos are forgotten
    assert "start 2 of at most 6" in again.renderer.tokenizer.decode(second.context.ids)


def test_limits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match=r"budget\.cost_usd"):
        Budget(cost_usd=1.0)
    with pytest.raises(InputError, match="leaves no room"):
        Budget(context_tokens=100, max_new_tokens=100)
    with pytest.raises(InputError, match="0 to 5"):
        replace(SPECS["react"], max_fresh_contexts=6)
    with pytest.raises(InputError, match="must be positive"):
        Budget(max_turns=0)


def test_a_prompt_that_leaves_no_room_is_refused_before_anything_is_sampled(opened: Callable[..., Opened]) -> None:
    trial = opened("react", tools=Drawer({}), budget=Budget(context_tokens=300, max_new_tokens=100))
    with pytest.raises(InputError, match="leaves no room for a turn"):
        trial.loop.open("word " * 100, [])


def play_until_new_context(trial: Opened, turn: Any, summary: Any) -> tuple[AgentLoop, list[int]]:
    """Repeats a turn until the loop asks for a summary, then gives it; returns the ids of the new context."""
    append = trial.loop.open("do it", [])
    trial.sent = list(append)
    for number in range(100):
        asked = "Sum up the work so far" in trial.renderer.tokenizer.decode(append)
        following = trial.respond(append, summary if asked else turn, f"t{number}")
        assert following is not None
        append = following
        if asked:
            return trial.loop, append
    raise AssertionError("the context was never used up")


def check_costs(loop: AgentLoop) -> None:
    """What the contexts cost adds up to what the trial cost."""
    for name in ("turns", "tool_calls", "sampled_tokens", "prompt_tokens", "cached_tokens"):
        assert sum(getattr(cost.spent, name) for cost in loop.contexts) == getattr(loop.spent, name)
    total = loop.spent.cost_usd(loop.spec.budget.prices)
    if total is not None:
        assert sum(cost.cost_usd or 0.0 for cost in loop.contexts) == pytest.approx(total)
