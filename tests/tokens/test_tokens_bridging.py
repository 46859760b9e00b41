"""The promise of every renderer, under random conversations that spell special tokens wherever they can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journeyman.errors import InputError
from journeyman.tokens import Context, Source, Tokenizer
from journeyman.tokens.renderers import FAMILIES, Demonstration, Renderer, ToolResult, ToolUse

TODAY = date(2026, 3, 4)
CASES = 2000
"""Random conversations per family in the full run."""
ALL_SPECIALS = sorted({name for family in FAMILIES.values() for name in family.specials})
MARK = "\ue123"
"""A character of the private area: whatever encodes it has read a sampled turn back."""
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "calc", "description": "", "parameters": {"type": "object"}}}
]

hostile = st.lists(
    st.sampled_from([*ALL_SPECIALS, "<tool", "_call>", "<|im_", "end|>", "\n", " ", "412", "é", "🙂", "\ud800", "</"])
    | st.text(max_size=4),
    max_size=5,
).map("".join)


class ListeningTokenizer(Tokenizer):
    """A tokenizer that keeps what it was asked to encode."""

    heard: list[str]

    def encode(self, text: str) -> list[int]:
        self.heard.append(text)
        return super().encode(text)


@pytest.fixture(scope="session")
def listening(family_dir: Callable[[str], Path]) -> Callable[[str], ListeningTokenizer]:
    made: dict[str, ListeningTokenizer] = {}

    def of(family: str) -> ListeningTokenizer:
        if family not in made:
            made[family] = ListeningTokenizer(family_dir(family))
        made[family].heard = []
        return made[family]

    return of


@dataclass(frozen=True)
class Step:
    """One sampled turn, as seeds of ids, and what the harness answers."""

    seeds: tuple[int, ...]
    stop: int | None
    results: tuple[str, ...]
    user: str | None
    nudge: str | None


steps = st.builds(
    Step,
    st.lists(st.integers(0, 10_000), max_size=6).map(tuple),
    st.none() | st.integers(0, 2),
    st.lists(hostile, max_size=2).map(tuple),
    st.none() | hostile,
    st.none() | st.just("80 % of the context is used"),
)
conversations = st.tuples(st.booleans(), st.booleans(), st.none() | hostile, hostile, st.lists(steps, max_size=3))


def specials(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int]:
    return [token for token in ids if token in tokenizer.special_ids]


def tame(text: str) -> str:
    """Harmless text that is blank where ``text`` is."""
    return "412" if text.strip() else text


def check_conversation(tokenizer: ListeningTokenizer, family: str, drawn: Any) -> None:
    thinking, with_tools, system, user, turns = drawn
    renderer = Renderer(FAMILIES[family], tokenizer, thinking=thinking)
    tools = TOOLS if with_tools and family != "llama3" else []

    def opening(change: Callable[[str], str]) -> list[int]:
        head = [{"role": "system", "content": change(system)}] if system is not None else []
        return renderer.open([*head, {"role": "user", "content": change(user)}], tools, today=TODAY)

    context = Context()
    context.append_prompt(opening(str))
    assert specials(tokenizer, context.ids) == specials(tokenizer, opening(tame))
    mark = tokenizer.encode(MARK)
    tokenizer.heard.clear()
    for version, step in enumerate(turns):
        sampled = [seed % tokenizer.vocab_size for seed in step.seeds] + mark
        sampled += [] if step.stop is None else [renderer.stop_ids[step.stop % len(renderer.stop_ids)]]
        before = context.ids
        context.append_sampled(sampled, [-0.5] * len(sampled), version)
        renderer.parse(sampled, {"calc": {}}, truncated=step.stop is None)
        tokenizer.decode(sampled)
        results = [ToolResult(text, "calc") for text in step.results]
        bridge = renderer.after(sampled, results=results, user=step.user, nudge=step.nudge)
        context.append_forced(bridge.forced)
        context.append_observation(bridge.observed)
        assert context.ids == before + sampled + bridge.ids
        harmless = renderer.after(
            sampled,
            results=[ToolResult(tame(text), "calc") for text in step.results],
            user=None if step.user is None else tame(step.user),
            nudge=step.nudge,
        )
        assert specials(tokenizer, bridge.ids) == specials(tokenizer, harmless.ids)
        assert context.ids[-len(renderer_end(renderer)) :] == renderer_end(renderer)
    assert not any(MARK in text for text in tokenizer.heard)
    columns = context.arrays()
    assert ((columns.source == Source.SAMPLED) == (columns.mask == 1)).all()


def renderer_end(renderer: Renderer) -> list[int]:
    """The ids of the generation prompt, which each prompt ends with."""
    return renderer.tokenizer.encode_marked(renderer.family.generation(renderer.thinking))


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=60, deadline=None)
@given(conversations)
def test_each_prompt_starts_with_the_last_one_and_what_was_sampled_and_nothing_is_forged_or_read_back(
    listening: Callable[[str], ListeningTokenizer], family: str, drawn: Any
) -> None:
    check_conversation(listening(family), family, drawn)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=CASES, deadline=None)
@given(conversations)
def test_the_promise_holds_over_two_thousand_conversations_in_each_family(
    listening: Callable[[str], ListeningTokenizer], family: str, drawn: Any
) -> None:
    check_conversation(listening(family), family, drawn)


def test_a_renderer_that_reads_a_turn_back_would_be_caught(listening: Callable[[str], ListeningTokenizer]) -> None:
    tokenizer = listening("qwen3")
    tokenizer.encode(tokenizer.decode(tokenizer.encode(MARK)))
    assert [MARK in text for text in tokenizer.heard] == [True, True]


ENDS = {
    # family: (a turn that ends, one cut in its text, one cut in its thinking), then what is forced for the last two
    "qwen3": ("<|im_end|>", "so", "<think>\nhm", "<|im_end|>", "\n</think>\n\n<|im_end|>"),
    "qwen3.6": ("hm\n</think>\n\nso<|im_end|>", "hm\n</think>\n\nso", "hm", "<|im_end|>", "\n</think>\n\n<|im_end|>"),
    "llama3.1": ("so<|eot_id|>", "so", "", "<|eot_id|>", "<|eot_id|>"),
    "glm-4.5": ("\n<think></think>\nso<|user|>", "\n<think></think>\nso", "\n<think>hm", "", "</think>"),
    "glm-4.7": ("hm</think>so<|user|>", "hm</think>so", "hm", "", "</think>"),
    "gpt-oss": (
        "<|channel|>final<|message|>so<|return|>",
        "<|channel|>final<|message|>so",
        "<|channel|>analysis",
        "<|end|>",
        "<|message|><|end|>",
    ),
}


@pytest.mark.parametrize("family", ENDS)
def test_a_turn_that_did_not_close_itself_is_closed_with_forced_tokens(
    family_tokenizer: Callable[[str], Tokenizer], family: str
) -> None:
    tokenizer = family_tokenizer(family)
    renderer = Renderer(FAMILIES[family], tokenizer)
    closed, cut, cut_thinking, end, end_thinking = ENDS[family]
    for text, forced in ((closed, ""), (cut, end), (cut_thinking, end_thinking)):
        bridge = renderer.after(tokenizer.encode_marked(text), user="go on")
        assert tokenizer.decode(bridge.forced) == forced
        assert "go on" in tokenizer.decode(bridge.observed)


def test_a_nudge_stands_inside_the_last_tool_result(family_tokenizer: Callable[[str], Tokenizer]) -> None:
    tokenizer = family_tokenizer("qwen3")
    renderer = Renderer(FAMILIES["qwen3"], tokenizer)
    sampled = [tokenizer.special("<|im_end|>")]
    results = [ToolResult("412"), ToolResult("413")]
    shown = tokenizer.decode(renderer.after(sampled, results=results, nudge="80 % used").observed)
    assert "\n413\n\n80 % used\n</tool_response><|im_end|>" in shown
    assert shown.count("<|im_start|>user") == 1
    alone = tokenizer.decode(renderer.after(sampled, nudge="80 % used").observed)
    assert alone == "\n<|im_start|>user\n80 % used<|im_end|>\n<|im_start|>assistant\n"


def test_a_stop_that_is_the_next_role_is_not_written_twice(family_tokenizer: Callable[[str], Tokenizer]) -> None:
    tokenizer = family_tokenizer("glm-4.5")
    renderer = Renderer(FAMILIES["glm-4.5"], tokenizer)
    observation, user = tokenizer.special("<|observation|>"), tokenizer.special("<|user|>")
    expected = renderer.after([observation], results=[ToolResult("412")])
    wrong_role = renderer.after([user], results=[ToolResult("412")])
    assert tokenizer.decode(expected.observed) == "\n<tool_response>\n412\n</tool_response><|assistant|>"
    assert wrong_role.observed == (observation, *expected.observed)


def test_a_stop_that_is_no_end_of_turn_gets_one(family_tokenizer: Callable[[str], Tokenizer]) -> None:
    tokenizer = family_tokenizer("qwen3")
    renderer = Renderer(FAMILIES["qwen3"], tokenizer)
    bridge = renderer.after([tokenizer.special("<|endoftext|>")], user="go on")
    assert tokenizer.decode(bridge.forced) == "<|im_end|>"


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "no user turn"),
        ([{"role": "system", "content": "x"}], "no user turn"),
        ([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}], "'assistant' at position 1"),
        ([{"role": "user", "content": "x"}, {"role": "system", "content": "y"}], "'system' at position 1"),
        ([{"content": "x"}], "role None"),
    ],
)
def test_only_a_system_turn_and_user_turns_open_a_context(
    family_tokenizer: Callable[[str], Tokenizer], messages: list[dict[str, str]], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        Renderer(FAMILIES["qwen3"], family_tokenizer("qwen3")).open(messages)


@pytest.mark.parametrize("family", [name for name, family in FAMILIES.items() if family.reads_date])
def test_a_family_that_states_a_date_takes_it_from_the_trial_and_never_from_the_machine(
    family_tokenizer: Callable[[str], Tokenizer], family: str
) -> None:
    renderer = Renderer(FAMILIES[family], family_tokenizer(family))
    messages = [{"role": "user", "content": "x"}]
    with pytest.raises(InputError, match="the trial's clock"):
        renderer.open(messages)
    shown = renderer.tokenizer.decode(renderer.open(messages, today=date(1999, 1, 2)))
    assert "1999-01-02" in shown or "02 Jan 1999" in shown


def test_tools_for_a_family_without_them_are_refused(family_tokenizer: Callable[[str], Tokenizer]) -> None:
    with pytest.raises(InputError, match="knows no tools"):
        Renderer(FAMILIES["llama3"], family_tokenizer("llama3")).open([{"role": "user", "content": "x"}], TOOLS)


def test_a_vocabulary_without_the_special_tokens_of_the_family_is_refused_by_name(
    family_tokenizer: Callable[[str], Tokenizer],
) -> None:
    with pytest.raises(InputError, match=r"lacks .*<\|im_start\|>, <\|im_end\|>, <tool_call>") as caught:
        Renderer(FAMILIES["qwen3"], family_tokenizer("llama3"))
    assert "use its own tokenizer" in str(caught.value)


KEEPS_THINKING = ["qwen3", "qwen3.5", "glm-4.5", "glm-4.7"]


@pytest.mark.parametrize("family", KEEPS_THINKING)
def test_earlier_thinking_stays_where_a_template_would_drop_it(
    family_tokenizer: Callable[[str], Tokenizer], family: str
) -> None:
    tokenizer = family_tokenizer(family)
    renderer = Renderer(FAMILIES[family], tokenizer)
    ids = renderer.open([{"role": "user", "content": "add"}])
    sampled = renderer.demonstrate(Demonstration("So.", (ToolUse("calc", {}),), "secret thought"))
    ids += sampled + renderer.after(sampled, user="and now?").ids
    assert "secret thought" in tokenizer.decode(ids)
    assert any("thinking" in text for text in FAMILIES[family].deviations)
