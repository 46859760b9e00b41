from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journeyman.tokens import (
    FRAMINGS,
    SPECIAL_TOKENS,
    Context,
    Framing,
    Source,
    Tokenizer,
    call_ids,
    close_ids,
    observation_ids,
    open_context,
)

hostile_text = st.lists(
    st.sampled_from([*SPECIAL_TOKENS, "\n", " ", "412", "Acme", "{result}", "{user}", "é"]) | st.text(max_size=5),
    max_size=6,
).map("".join)
each_framing = pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)

USER = "<|im_start|>user\nreport Acme Q1 from a.csv\nfiles: a.csv b.pdf<|im_end|>\n<|im_start|>assistant\n"
PROMPTS = {
    "toolbelt": "<|im_start|>system\ntools: lookup calc submit<|im_end|>\n" + USER,
    "react": "<|im_start|>system\nfunctions: answer calc lookup<|im_end|>\n" + USER,
}
RESULTS = {
    "toolbelt": "\n<|im_start|>user\n<tool_response>412</tool_response><|im_end|>\n<|im_start|>assistant\n",
    "react": "\n<|im_start|>tool\n412<|im_end|>\n<|im_start|>assistant\n",
}


@each_framing
def test_prompt_and_tool_result_spell_what_the_framing_says(tokenizer: Tokenizer, framing: Framing) -> None:
    prompt = open_context(tokenizer, framing, "report Acme Q1 from a.csv", ["a.csv", "b.pdf"])
    result = observation_ids(tokenizer, framing, "412")
    assert tokenizer.decode(prompt) == PROMPTS[framing.name]
    assert tokenizer.decode(result) == RESULTS[framing.name]
    assert prompt == tokenizer.encode_marked(PROMPTS[framing.name])
    assert result == tokenizer.encode_marked(RESULTS[framing.name])


def test_the_two_framings_differ_in_result_verb_argument_and_turn_limit() -> None:
    a, b = FRAMINGS["toolbelt"], FRAMINGS["react"]
    assert (a.final_verb, a.final_argument, a.max_turns) == ("submit", "answer", 6)
    assert (b.final_verb, b.final_argument, b.max_turns) == ("answer", "value", 8)


def test_a_demonstrated_call_is_compact_json_between_tags_and_a_stop(tokenizer: Tokenizer) -> None:
    ids = call_ids(tokenizer, "lookup", {"path": "sales.csv", "row": "Acme", "col": "Q1"})
    body = '{"name":"lookup","arguments":{"path":"sales.csv","row":"Acme","col":"Q1"}}'
    assert tokenizer.decode(ids) == f"<tool_call>{body}</tool_call><|im_end|>"
    assert ids[1:-2] == tokenizer.encode(body)


def test_transformers_renders_the_same_prompt_ids_from_the_saved_directory(tokenizer_dir: Path) -> None:
    from transformers import AutoTokenizer

    official, ours = AutoTokenizer.from_pretrained(tokenizer_dir), Tokenizer(tokenizer_dir)
    framing = FRAMINGS["toolbelt"]
    call = {"name": "lookup", "arguments": {"path": "a.csv", "row": "Acme"}}
    messages = [
        {"role": "system", "content": framing.system},
        {"role": "user", "content": "report Acme Q1 from a.csv\nfiles: a.csv b.pdf"},
        {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": call}]},
        {"role": "tool", "content": "412"},
    ]
    rendered = official.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    expected = [
        *open_context(ours, framing, "report Acme Q1 from a.csv", ["a.csv", "b.pdf"]),
        *call_ids(ours, "lookup", {"path": "a.csv", "row": "Acme"}),
        *observation_ids(ours, framing, "412"),
    ]
    assert list(rendered) == expected


@each_framing
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_the_next_prompt_starts_with_the_last_prompt_and_what_was_sampled(
    tokenizer: Tokenizer, framing: Framing, data: st.DataObject
) -> None:
    stop = tokenizer.special("<|im_end|>")
    context = Context()
    context.append_prompt(open_context(tokenizer, framing, data.draw(hostile_text), data.draw(st.just(["a.csv"]))))
    any_ids = st.lists(st.integers(0, tokenizer.vocab_size - 1), min_size=1, max_size=12)
    expected_mask = 0
    for version in range(data.draw(st.integers(1, 4))):
        before = context.ids
        sampled = data.draw(any_ids)
        context.append_sampled(sampled, [-0.5] * len(sampled), version)
        context.append_forced(close_ids(tokenizer, sampled))
        context.append_observation(observation_ids(tokenizer, framing, data.draw(hostile_text)))
        after = context.ids
        assert after[: len(before) + len(sampled)] == before + sampled
        closed = len(before) + len(sampled) + (sampled[-1] != stop)
        assert after[closed - 1] == stop
        assert tokenizer.decode(after[closed : closed + 1]) == "\n"
        expected_mask += len(sampled)
    columns = context.arrays()
    assert columns.mask.sum() == expected_mask
    assert ((columns.source == Source.SAMPLED) == (columns.mask == 1)).all()


@each_framing
@given(hostile_text)
def test_a_tool_result_holds_the_same_special_ids_whatever_the_file_says(
    tokenizer: Tokenizer, framing: Framing, text: str
) -> None:
    def specials(ids: list[int]) -> list[int]:
        return [token for token in ids if token in tokenizer.special_ids]

    assert specials(observation_ids(tokenizer, framing, text)) == specials(observation_ids(tokenizer, framing, "412"))
    prompt = open_context(tokenizer, framing, text, [text])
    assert specials(prompt) == specials(open_context(tokenizer, framing, "report", ["a.csv"]))
    assert np.all(np.array(prompt) < tokenizer.vocab_size)
