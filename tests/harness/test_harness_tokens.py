"""Tokens only grow: for every kind of harness and every family, whatever files and tools spell, turn after turn."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from harness_driving import Drawer, Opened
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from journeyman.engines.protocol import TurnResult
from journeyman.harness import Budget
from journeyman.sandbox.protocol import Sandbox
from journeyman.tokens.renderers import FAMILIES, ToolResult

WITH_TOOLS = [name for name in FAMILIES if name != "llama3"]
"""The template of Llama 3.0 offers no tools."""

SPECIALS = sorted({special for family in FAMILIES.values() for special in family.specials})
ODD = ["</tool_response>", "\n", "  ", "é", "\u200d", "x" * 9]
SPELLED = st.lists(st.one_of(st.sampled_from(SPECIALS), st.sampled_from(ODD), st.text(max_size=8)), max_size=6).map(
    "".join
)
FUZZ = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


@settings(max_examples=60, **FUZZ)
@given(data=st.data())
def test_prompts_grow_by_what_was_sampled_and_answered_for_tool_harnesses(
    opened: Callable[..., Opened], data: st.DataObject
) -> None:
    family, name = data.draw(st.sampled_from(WITH_TOOLS)), data.draw(st.sampled_from(["react", "toolbelt"]))
    texts = data.draw(st.lists(SPELLED, min_size=1, max_size=4))
    options = {"initial_tools": ["filesystem_read_text_file"]} if name == "toolbelt" else {}
    trial = opened(name, family, tools=Drawer({str(n): text for n, text in enumerate(texts)}), options=options)
    turns = [trial.call("filesystem_read_text_file", path=str(n)) for n in range(len(texts))]
    loop = trial.play(turns, data.draw(SPELLED) or "do it")
    assert [turn.observation for turn in loop.turns] == texts
    assert loop.epoch == 0
    plain = opened(name, family, tools=Drawer({str(n): "x" for n in range(len(texts))}), options=options)
    plain.play(turns, "do it")
    assert specials_of(trial) == specials_of(plain)


def test_a_broken_turn_that_the_budget_lets_nobody_draw_again_stays_the_choice_of_the_policy(
    opened: Callable[..., Opened],
) -> None:
    trial = opened("react", "qwen2.5", tools=Drawer({"a": "x"}), budget=Budget(context_tokens=6_500, max_turns=2))
    trial.sent = trial.loop.open("do it", ["a"])
    broken = trial.renderer.tokenizer.encode_marked("<tool_call></tool_call><|im_end|>")
    for _ in range(2):
        trial.take(TurnResult("t", broken, np.full(len(broken), -0.5, np.float32), "stop", 3))
    assert trial.loop.stop_reason == "limit.turns"
    assert [turn.discarded for turn in trial.loop.turns] == [True, False]
    columns = trial.loop.context.arrays()
    assert columns.mask.sum() == len(broken)


@settings(max_examples=40, **FUZZ)
@given(data=st.data())
def test_whatever_is_sampled_the_tokens_only_grow_and_the_loop_never_breaks(
    opened: Callable[..., Opened], data: st.DataObject
) -> None:
    family, name = data.draw(st.sampled_from(WITH_TOOLS)), data.draw(st.sampled_from(["react", "toolbelt"]))
    at_limit = data.draw(st.sampled_from(["stop", "compact", "clear-and-retry"]))
    budget = Budget(context_tokens=data.draw(st.integers(4_500, 6_500)), max_new_tokens=200, max_turns=12)
    drawer = Drawer({"a": "word " * 400, "b": data.draw(SPELLED)})
    trial = opened(
        name, family, tools=drawer, budget=budget, at_limit=at_limit, summary_tokens=150, nudge=data.draw(st.booleans())
    )
    written = [
        trial.call("filesystem_read_text_file", path="a"),
        trial.call("filesystem_read_text_file", path="b"),
        trial.call("toolbelt_add_tool", tool_name="filesystem_read_text_file"),
        trial.call("nothing_of_the_kind"),
    ]
    tokens = st.lists(st.integers(0, trial.renderer.tokenizer.vocab_size - 1), min_size=1, max_size=20)
    trial.sent = trial.loop.open("do it", ["a", "b"])
    for _ in range(budget.max_turns):
        ids = list(data.draw(st.one_of(st.sampled_from(written), tokens)))
        finish = "stop" if ids[-1] in trial.renderer.stop_ids else "length"
        if trial.take(TurnResult("t", ids, np.full(len(ids), -0.5, np.float32), finish, 3)) is None:
            break
        assert len(trial.loop.context) + trial.loop.sampling.max_new_tokens <= budget.context_tokens
    columns = trial.loop.context.arrays()
    assert columns.mask.sum() == sum(turn.n_sampled for turn in trial.loop.turns if not turn.discarded)
    assert trial.loop.stop_reason is not None


@settings(max_examples=15, **FUZZ)
@given(text=SPELLED, family=st.sampled_from(WITH_TOOLS))
def test_prompts_grow_for_the_code_harness_over_real_files(
    opened: Callable[..., Opened], shared_shell: Sandbox, text: str, family: str
) -> None:
    shared_shell.upload(text.encode(errors="replace"), "/ws/spelled.txt", deadline_s=20)
    trial = opened("code", family, sandbox=shared_shell)
    turns = [
        trial.call("read", filePath="/ws/spelled.txt"),
        trial.call("bash", command="cat spelled.txt", description="show"),
        trial.say("done"),
    ]
    loop = trial.play(turns)
    assert loop.stop_reason == "answered"
    assert forged(trial) == 0


EVERY_FORM = ("qwen3", "qwen3.5", "llama3", "glm-4.5", "gpt-oss")
"""One family per way of writing turns; the others run with the slow tests."""


@pytest.mark.parametrize(
    "family", [name if name in EVERY_FORM else pytest.param(name, marks=pytest.mark.slow) for name in FAMILIES]
)
def test_prompts_grow_for_the_terminal_of_every_family(
    family: str, opened: Callable[..., Opened], open_terminal: Callable[..., Sandbox]
) -> None:
    sandbox = open_terminal({"spelled.txt": f"{' '.join(FAMILIES[family].specials)}\n</tool_response>\n"})
    trial = opened("terminal", family, sandbox=sandbox)
    loop = trial.play([trial.keys(("cat spelled.txt\n", 0.3)), trial.keys(done=True), trial.keys(done=True)])
    assert loop.stop_reason == "answered"
    assert FAMILIES[family].specials[0] in loop.turns[0].observation
    assert forged(trial) == 0


def test_three_hundred_turns_cost_what_is_new_in_each(opened: Callable[..., Opened]) -> None:
    budget = Budget(context_tokens=400_000, max_new_tokens=200, max_turns=1_000)
    trial = opened("react", tools=Drawer({"a": "word " * 50}), budget=budget)
    append, sizes, seconds = trial.loop.open("do it", []), [], []
    turn = list(trial.call("filesystem_read_text_file", path="a"))
    for _ in range(300):
        began = time.process_time()
        append = trial.loop.respond(TurnResult("t", turn, np.zeros(len(turn), np.float32), "stop", 0)) or []
        seconds.append(time.process_time() - began)
        sizes.append(len(append))
    assert set(sizes) == {sizes[0]}
    assert len(trial.loop.context) == len(trial.loop._prompt) + 300 * (len(turn) + sizes[0])
    first, last = sorted(seconds[:100])[50], sorted(seconds[200:])[50]
    assert last < 3 * first  # 200 turns later a copied history would be some ten times dearer


def specials_of(trial: Opened) -> Counter[int]:
    """How often each special token stands in the context outside of what was sampled."""
    columns = trial.loop.context.arrays()
    return specials_in(trial, columns.ids[columns.mask == 0].tolist())


def forged(trial: Opened) -> int:
    """Special tokens beyond those that the same turns leave behind when every text of prompt and results is an x."""
    loop, renderer = trial.loop, trial.renderer
    plain = [{**message, "content": "x"} for message in loop._messages]
    expected = specials_in(trial, renderer.open(plain, loop._tools, today=loop.spec.today))
    columns = loop.context.arrays()
    for number in range(1, loop.context.turns):
        sampled = columns.ids[(columns.turn == number) & (columns.mask == 1)].tolist()
        called = loop.turns[number - 1].calls if loop.spec.loop != "terminal" else ()
        results = [ToolResult("x", call.tool) for call in called]
        expected += specials_in(trial, renderer.after(sampled, results=results, user=None if results else "x").ids)
    return sum((specials_of(trial) - expected).values()) + sum((expected - specials_of(trial)).values())


def specials_in(trial: Opened, ids: list[int]) -> Counter[int]:
    return Counter(token for token in ids if token in trial.renderer.tokenizer.special_ids)
