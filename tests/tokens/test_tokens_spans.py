from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journeyman.tokens import ParsedTurn, Tokenizer, call_ids, parse_turn
from journeyman.tokens.malformed import MALFORMED_KINDS

TEXT = {"type": "string"}
SCHEMAS: dict[str, dict[str, Any]] = {
    "lookup": {
        "type": "object",
        "properties": {"path": TEXT, "row": TEXT, "col": TEXT},
        "required": ["path", "row"],
    },
    "calc": {"type": "object", "properties": {"expr": TEXT}, "required": ["expr"]},
    "scale": {
        "type": "object",
        "properties": {"by": {"type": "number"}, "mode": {"type": "string", "enum": ["up", "down"]}},
        "required": ["by"],
    },
}
GOOD = '{"name":"calc","arguments":{"expr":"1+2"}}'
END = "<|im_end|>"


def parse(tokenizer: Tokenizer, text: str, *, truncated: bool = False) -> ParsedTurn:
    return parse_turn(tokenizer.encode_marked(text), tokenizer, SCHEMAS, truncated=truncated)


def summary(turn: ParsedTurn) -> tuple[list[tuple[str, dict[str, Any], bool]], list[str]]:
    calls = [(call.name, dict(call.arguments), call.repaired) for call in turn.calls]
    return calls, [m.kind for m in turn.malformed]


CLEAN = ("calc", {"expr": "1+2"}, False)
REPAIRED = ("calc", {"expr": "1+2"}, True)

CASES: dict[str, tuple[str, list[Any], list[str]]] = {
    "compact": (f"<tool_call>{GOOD}</tool_call>{END}", [CLEAN], []),
    "without the stop": (f"<tool_call>{GOOD}</tool_call>", [CLEAN], []),
    "canonical with spaces": (
        '<tool_call>\n{"name": "calc", "arguments": {"expr": "1+2"}}\n</tool_call>' + END,
        [CLEAN],
        [],
    ),
    "text before and a newline": (f"I add.\n<tool_call>{GOOD}</tool_call>{END}", [CLEAN], []),
    "text before and a blank line": (f"I add.\n\n<tool_call>{GOOD}</tool_call>{END}", [CLEAN], []),
    "arguments key first": ('<tool_call>{"arguments":{"expr":"1+2"},"name":"calc"}</tool_call>', [CLEAN], []),
    "unicode escapes": ('<tool_call>{"name":"calc","arguments":{"expr":"1\\u002b2"}}</tool_call>', [CLEAN], []),
    "two calls in two tags": (f"<tool_call>{GOOD}</tool_call>\n<tool_call>{GOOD}</tool_call>", [CLEAN, CLEAN], []),
    "unclosed": (f"<tool_call>{GOOD}{END}", [REPAIRED], ["unclosed"]),
    "unclosed and incomplete": ('<tool_call>{"name":"calc"' + END, [], ["unclosed"]),
    "opened twice": (f"<tool_call>{GOOD}<tool_call>{GOOD}</tool_call>", [REPAIRED, CLEAN], ["unclosed"]),
    "arguments as a string": (
        '<tool_call>{"name":"calc","arguments":"{\\"expr\\":\\"1+2\\"}"}</tool_call>',
        [REPAIRED],
        [],
    ),
    "1.00 against 1.0": (
        '<tool_call>{"name":"scale","arguments":{"by":1.00}}</tool_call>',
        [("scale", {"by": 1.0}, False)],
        [],
    ),
    "duplicate key": (
        '<tool_call>{"name":"calc","arguments":{"expr":"1","expr":"2"}}</tool_call>',
        [],
        ["duplicate_param"],
    ),
    "trailing comma": ('<tool_call>{"name":"calc","arguments":{"expr":"1+2"},}</tool_call>', [], ["bad_json"]),
    "two objects in one tag": (f"<tool_call>{GOOD}\n{GOOD}</tool_call>", [REPAIRED, REPAIRED], ["multi_json"]),
    "raw newline in a string": ('<tool_call>{"name":"calc","arguments":{"expr":"1\n2"}}</tool_call>', [], ["bad_json"]),
    "empty tag": ("<tool_call> </tool_call>", [], ["bad_json"]),
    "not an object": ("<tool_call>[1]</tool_call>", [], ["bad_json"]),
    "arguments not an object": ('<tool_call>{"name":"calc","arguments":[1]}</tool_call>', [], ["bad_json"]),
    "not a number": ('<tool_call>{"name":"scale","arguments":{"by":NaN}}</tool_call>', [], ["bad_json"]),
    "half a surrogate pair": (
        '<tool_call>{"name":"calc","arguments":{"expr":"\\ud800"}}</tool_call>',
        [],
        ["bad_json"],
    ),
    "nested too deep": ("<tool_call>" + "[" * 100_000 + "</tool_call>", [], ["bad_json"]),
    "unknown tool": ('<tool_call>{"name":"look","arguments":{}}</tool_call>', [], ["unknown_tool"]),
    "missing parameter": ('<tool_call>{"name":"lookup","arguments":{"path":"a"}}</tool_call>', [], ["missing_param"]),
    "wrong type": ('<tool_call>{"name":"calc","arguments":{"expr":3}}</tool_call>', [], ["wrong_type"]),
    "a bool is no number": ('<tool_call>{"name":"scale","arguments":{"by":true}}</tool_call>', [], ["wrong_type"]),
    "value outside its enum": (
        '<tool_call>{"name":"scale","arguments":{"by":1,"mode":"left"}}</tool_call>',
        [],
        ["wrong_type"],
    ),
    "parameter nobody declared": (
        '<tool_call>{"name":"calc","arguments":{"expr":"1","x":"2"}}</tool_call>',
        [],
        ["wrong_type"],
    ),
    "text after the call": (f"<tool_call>{GOOD}</tool_call> done", [CLEAN], ["text_after_call"]),
    "call in thinking": (f"<think>maybe <tool_call>{GOOD}</tool_call>", [], ["call_in_think"]),
    "call after thinking": (f"<think>hm</think><tool_call>{GOOD}</tool_call>", [CLEAN], []),
    "no tags": (f"I add {GOOD}{END}", [REPAIRED], ["no_wrapper"]),
    "no tags twice": (f"{GOOD} {GOOD}", [], ["no_wrapper"]),
    "no tags in thinking": (f"<think>{GOOD}", [], ["call_in_think"]),
    "function tag of another family": ("<function=calc>", [], ["no_wrapper"]),
    "no call at all": (f"The answer is 3.{END}", [], []),
    "nothing": ("", [], []),
}


@pytest.mark.parametrize("case", CASES)
def test_each_shape_of_a_turn_gives_its_calls_and_its_defects(tokenizer: Tokenizer, case: str) -> None:
    text, calls, kinds = CASES[case]
    assert summary(parse(tokenizer, text)) == (calls, kinds)


@pytest.mark.parametrize(
    ("text", "calls", "kinds"),
    [
        ('<tool_call>{"name":"calc","arg', [], ["truncated_by_length"]),
        (f"<tool_call>{GOOD}", [], ["truncated_by_length"]),
        ("thinking aloud", [], ["truncated_by_length"]),
        (f"<tool_call>{GOOD}</tool_call>", [CLEAN], []),
        (f"<tool_call>{GOOD}</tool_call> and", [CLEAN], ["text_after_call", "truncated_by_length"]),
    ],
)
def test_a_turn_cut_at_its_length_never_executes_the_call_it_was_cut_in(
    tokenizer: Tokenizer, text: str, calls: list[Any], kinds: list[str]
) -> None:
    assert summary(parse(tokenizer, text, truncated=True)) == (calls, kinds)


def test_all_eleven_classes_occur_in_these_cases(tokenizer: Tokenizer) -> None:
    seen = {kind for _, _, kinds in CASES.values() for kind in kinds} | {"truncated_by_length"}
    assert seen == set(MALFORMED_KINDS)
    assert len(MALFORMED_KINDS) == 11


def test_spans_cover_the_tokens_of_the_call(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode_marked(f"é I add.<tool_call>{GOOD}</tool_call>{END}")
    (call,) = parse_turn(ids, tokenizer, SCHEMAS).calls
    assert tokenizer.decode(ids[slice(*call.span)]) == f"<tool_call>{GOOD}</tool_call>"
    ids = tokenizer.encode_marked(f"<tool_call>{GOOD} {GOOD}</tool_call>{END}")
    spans = [call.span for call in parse_turn(ids, tokenizer, SCHEMAS).calls]
    assert [tokenizer.decode(ids[slice(*span)]).strip() for span in spans] == [GOOD, GOOD]


def test_tags_spelled_with_ordinary_tokens_are_text_and_not_a_wrapper(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(f"<tool_call>{GOOD}</tool_call>")
    turn = parse_turn(ids, tokenizer, SCHEMAS)
    assert summary(turn) == ([REPAIRED], ["no_wrapper"])


def test_an_unknown_tool_is_answered_with_the_offered_and_the_nearest(tokenizer: Tokenizer) -> None:
    (defect,) = parse(tokenizer, '<tool_call>{"name":"lokup","arguments":{}}</tool_call>').malformed
    assert defect.detail == 'no tool "lokup"; tools: calc, lookup, scale. Did you mean lookup?'


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_ids_parse_without_an_exception_and_with_spans_inside_the_turn(
    tokenizer: Tokenizer, data: st.DataObject
) -> None:
    pieces = st.sampled_from(
        [tokenizer.encode_marked(text) for text in ("<tool_call>", "</tool_call>", GOOD, "{", END)]
    )
    noise = st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=6)
    ids = [token for piece in data.draw(st.lists(pieces | noise, max_size=8)) for token in piece]
    turn = parse_turn(ids, tokenizer, SCHEMAS, truncated=data.draw(st.booleans()))
    for item in (*turn.calls, *turn.malformed):
        assert 0 <= item.span[0] <= item.span[1] <= len(ids)
    turn.text.encode()


@given(st.dictionaries(st.sampled_from(["path", "row", "col"]), st.text(max_size=12), min_size=3))
def test_a_demonstrated_call_parses_to_itself(tokenizer: Tokenizer, arguments: dict[str, str]) -> None:
    turn = parse_turn(call_ids(tokenizer, "lookup", arguments), tokenizer, SCHEMAS)
    assert summary(turn) == ([("lookup", arguments, False)], [])
    assert json.dumps(dict(turn.calls[0].arguments))
