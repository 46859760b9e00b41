"""The parsers of every family: the 32 turns of the reference page, and each class of malformed call in each style."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journeyman.tokens import Tokenizer
from journeyman.tokens.malformed import DEFAULT_POLICY, MALFORMED_KINDS, ParsedTurn, Policy
from journeyman.tokens.renderers import FAMILIES, Demonstration, Renderer, ToolUse

TEXT = {"type": "string"}
SCHEMAS: dict[str, dict[str, Any]] = {
    "calc": {"type": "object", "properties": {"expr": TEXT}, "required": ["expr"]},
    "lookup": {
        "type": "object",
        "properties": {
            "path": TEXT,
            "row": TEXT,
            "n": {"type": "integer"},
            "by": {"type": "number"},
            "on": {"type": "boolean"},
            "opts": {"type": "object"},
            "maybe": {"type": ["string", "null"]},
        },
        "required": ["path"],
    },
}
ONE = {"expr": "1+2"}


def read(
    tokenizers: Callable[[str], Tokenizer], family: str, text: str, *, truncated: bool = False, thinking: bool = True
) -> ParsedTurn:
    renderer = Renderer(FAMILIES[family], tokenizers(family), thinking=thinking)
    return renderer.parse(renderer.tokenizer.encode_marked(text), SCHEMAS, truncated=truncated)


def summary(turn: ParsedTurn) -> tuple[list[tuple[str, dict[str, Any], bool]], list[str]]:
    return [(c.name, dict(c.arguments), c.repaired) for c in turn.calls], [m.kind for m in turn.malformed]


def xml(body: str, name: str = "calc") -> str:
    return f"<tool_call>\n<function={name}>\n{body}</function>\n</tool_call>"


def value(key: str, text: str) -> str:
    return f"<parameter={key}>\n{text}\n</parameter>\n"


CLEAN, REPAIRED = [("calc", ONE, False)], [("calc", ONE, True)]
GOOD = xml(value("expr", "1+2"))
THOUGHT = "hm\n</think>\n\n"
PATH = value("path", "a")

#: name: (turn after its thinking, calls, kinds, whether the text equals what the parse would be rendered as)
QWEN36_TURNS: dict[str, tuple[str, list[Any], list[str], bool]] = {
    "canonical": (THOUGHT + GOOD, CLEAN, [], True),
    "content and a blank line": (THOUGHT + "I add.\n\n" + GOOD, CLEAN, [], True),
    "content and a single newline": (THOUGHT + "I add.\n" + GOOD, CLEAN, [], False),
    "trailing spaces in thinking": ("hm  \n</think>\n\n" + GOOD, CLEAN, [], False),
    "no blank line after the thinking": ("hm\n</think>\n" + GOOD, CLEAN, [], False),
    "two calls": (THOUGHT + GOOD + "\n" + GOOD, CLEAN * 2, [], True),
    "a blank line between calls": (THOUGHT + GOOD + "\n\n" + GOOD, CLEAN * 2, [], False),
    "integer 03": (
        THOUGHT + xml(PATH + value("n", "03"), "lookup"),
        [("lookup", {"path": "a", "n": 3}, True)],
        [],
        False,
    ),
    "float 1e3": (
        THOUGHT + xml(PATH + value("by", "1e3"), "lookup"),
        [("lookup", {"path": "a", "by": 1000.0}, False)],
        [],
        False,
    ),
    "compact object": (
        THOUGHT + xml(PATH + value("opts", '{"a":1}'), "lookup"),
        [("lookup", {"path": "a", "opts": {"a": 1}}, False)],
        [],
        False,
    ),
    "indented object": (
        THOUGHT + xml(PATH + value("opts", '{\n  "a": 1\n}'), "lookup"),
        [("lookup", {"path": "a", "opts": {"a": 1}}, False)],
        [],
        False,
    ),
    "unicode escape": (
        THOUGHT + xml(PATH + value("opts", '{"a": "\\u00e9"}'), "lookup"),
        [("lookup", {"path": "a", "opts": {"a": "é"}}, False)],
        [],
        False,
    ),
    "value on the line of its tag": (THOUGHT + xml("<parameter=expr>1+2\n</parameter>\n"), CLEAN, [], False),
    "no </parameter>": (THOUGHT + xml("<parameter=expr>\n1+2\n"), REPAIRED, ["unclosed"], False),
    "no </tool_call>": (THOUGHT + GOOD.removesuffix("\n</tool_call>"), REPAIRED, ["unclosed"], False),
    "no <tool_call> around": (
        THOUGHT + GOOD.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>"),
        REPAIRED,
        ["no_wrapper"],
        False,
    ),
    "text after the call": (THOUGHT + GOOD + "\nDone.", CLEAN, ["text_after_call"], False),
    "call inside thinking": ("hm " + GOOD, [], ["call_in_think"], False),
    "parameter twice": (
        THOUGHT + xml(value("expr", "1") + value("expr", "2")),
        [],
        ["duplicate_param"],
        False,
    ),
}


def hermes(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


JSON_ONE = '{"name": "calc", "arguments": {"expr": "1+2"}}'
COMPACT = '{"name":"calc","arguments":{"expr":"1+2"}}'
QWEN3_TURNS: dict[str, tuple[str, list[Any], list[str], bool]] = {
    "canonical": (hermes(JSON_ONE), CLEAN, [], True),
    "content and a newline": ("I add.\n" + hermes(JSON_ONE), CLEAN, [], True),
    "content and a blank line": ("I add.\n\n" + hermes(JSON_ONE), CLEAN, [], False),
    "compact": (hermes(COMPACT), CLEAN, [], False),
    "arguments first": (hermes('{"arguments": {"expr": "1+2"}, "name": "calc"}'), CLEAN, [], False),
    "unicode escapes": (hermes('{"name": "calc", "arguments": {"expr": "1\\u002b2"}}'), CLEAN, [], False),
    "unclosed": ("<tool_call>\n" + JSON_ONE, REPAIRED, ["unclosed"], False),
    "arguments as a string": (hermes('{"name": "calc", "arguments": "{\\"expr\\": \\"1+2\\"}"}'), REPAIRED, [], False),
    "1.00 against 1.0": (
        hermes('{"name": "lookup", "arguments": {"path": "a", "by": 1.00}}'),
        [("lookup", {"path": "a", "by": 1.0}, False)],
        [],
        False,
    ),
    "duplicate key": (
        hermes('{"name": "calc", "arguments": {"expr": "1", "expr": "2"}}'),
        [],
        ["duplicate_param"],
        False,
    ),
    "trailing comma": (hermes('{"name": "calc", "arguments": {"expr": "1+2"},}'), [], ["bad_json"], False),
    "two objects in one tag": (hermes(f"{JSON_ONE}\n{JSON_ONE}"), REPAIRED * 2, ["multi_json"], False),
    "raw newline in a string": (hermes('{"name": "calc", "arguments": {"expr": "1\n2"}}'), [], ["bad_json"], False),
}


def test_these_are_the_32_turns_of_the_page() -> None:
    assert (len(QWEN36_TURNS), len(QWEN3_TURNS)) == (19, 13)


@pytest.mark.parametrize("case", QWEN36_TURNS)
def test_each_xml_turn_of_the_page(family_tokenizer: Callable[[str], Tokenizer], case: str) -> None:
    text, calls, kinds, survives = QWEN36_TURNS[case]
    turn = read(family_tokenizer, "qwen3.6", text + "<|im_end|>")
    assert summary(turn) == (calls, kinds)
    assert renders_back("qwen3.6", family_tokenizer, turn, text) == survives


@pytest.mark.parametrize("case", QWEN3_TURNS)
def test_each_hermes_turn_of_the_page(family_tokenizer: Callable[[str], Tokenizer], case: str) -> None:
    text, calls, kinds, survives = QWEN3_TURNS[case]
    turn = read(family_tokenizer, "qwen3", text + "<|im_end|>", thinking=False)
    assert summary(turn) == (calls, kinds)
    assert renders_back("qwen3", family_tokenizer, turn, text, thinking=False) == survives


def renders_back(
    family: str, tokenizers: Callable[[str], Tokenizer], turn: ParsedTurn, text: str, *, thinking: bool = True
) -> bool:
    """Whether a stack that keeps messages would write the sampled text again from what it parsed."""
    renderer = Renderer(FAMILIES[family], tokenizers(family), thinking=thinking)
    calls = tuple(ToolUse(call.name, call.arguments) for call in turn.calls)
    ids = renderer.demonstrate(Demonstration(turn.content.strip(), calls, "hm"))
    return renderer.tokenizer.decode(ids) == text + "<|im_end|>"


GLM_GOOD = "<tool_call>calc\n<arg_key>expr</arg_key>\n<arg_value>1+2</arg_value>\n</tool_call>"
LLAMA_GOOD = '{"name": "calc", "parameters": {"expr": "1+2"}}'
HARMONY_HEAD = " to=functions.calc<|channel|>commentary json<|message|>"
HARMONY_GOOD = HARMONY_HEAD + '{"expr": "1+2"}<|call|>'
FINAL = "<|channel|>final<|message|>"

#: (family, kind): (turn, calls that are executed all the same)
CLASSES: dict[tuple[str, str], tuple[str, list[Any]]] = {
    ("qwen3.6", "unclosed"): (THOUGHT + GOOD.removesuffix("</tool_call>"), REPAIRED),
    ("qwen3.6", "bad_json"): (THOUGHT + "<tool_call>\ncalc 1+2\n</tool_call>", []),
    ("qwen3.6", "multi_json"): (
        THOUGHT + GOOD.replace("\n</tool_call>", "\n" + GOOD.removeprefix("<tool_call>\n")),
        REPAIRED * 2,
    ),
    ("qwen3.6", "unknown_tool"): (THOUGHT + xml(value("expr", "1"), "clac"), []),
    ("qwen3.6", "missing_param"): (THOUGHT + xml(""), []),
    ("qwen3.6", "wrong_type"): (THOUGHT + xml(PATH + value("on", "maybe"), "lookup"), []),
    ("qwen3.6", "duplicate_param"): (THOUGHT + xml(value("expr", "1") * 2), []),
    ("qwen3.6", "text_after_call"): (THOUGHT + GOOD + " so.", CLEAN),
    ("qwen3.6", "call_in_think"): (GOOD + THOUGHT, []),
    ("qwen3.6", "no_wrapper"): (THOUGHT + "<function=calc>\n" + value("expr", "1+2") + "</function>", REPAIRED),
    ("glm-4.5", "unclosed"): ("\n<think></think>\n" + GLM_GOOD.removesuffix("</tool_call>"), REPAIRED),
    ("glm-4.5", "bad_json"): ("\n<think></think>\n<tool_call>calc\nexpr: 1+2</tool_call>", []),
    ("glm-4.5", "unknown_tool"): (GLM_GOOD.replace("calc", "clac"), []),
    ("glm-4.5", "missing_param"): ("<tool_call>calc\n</tool_call>", []),
    ("glm-4.5", "wrong_type"): (
        GLM_GOOD.replace("calc", "lookup")
        .replace("expr", "path")
        .replace("\n</tool_call>", "\n<arg_key>n</arg_key>\n<arg_value>x</arg_value>\n</tool_call>"),
        [],
    ),
    ("glm-4.5", "duplicate_param"): (
        GLM_GOOD.replace("</arg_value>\n", "</arg_value>\n<arg_key>expr</arg_key>\n<arg_value>1</arg_value>\n"),
        [],
    ),
    ("glm-4.5", "text_after_call"): (GLM_GOOD + " so.", CLEAN),
    ("glm-4.5", "call_in_think"): ("\n<think>hm" + GLM_GOOD, []),
    ("glm-4.5", "no_wrapper"): (GLM_GOOD.removeprefix("<tool_call>").removesuffix("\n</tool_call>"), REPAIRED),
    ("llama3.1", "unclosed"): (LLAMA_GOOD.removesuffix("}}"), []),
    ("llama3.1", "bad_json"): (LLAMA_GOOD.replace('"}}', '",}}'), []),
    ("llama3.1", "multi_json"): (LLAMA_GOOD + "; " + LLAMA_GOOD, REPAIRED * 2),
    ("llama3.1", "unknown_tool"): (LLAMA_GOOD.replace("calc", "clac"), []),
    ("llama3.1", "missing_param"): ('{"name": "calc", "parameters": {}}', []),
    ("llama3.1", "wrong_type"): (LLAMA_GOOD.replace('"1+2"', "3"), []),
    ("llama3.1", "duplicate_param"): (LLAMA_GOOD.replace('"1+2"', '"1", "expr": "2"'), []),
    ("llama3.1", "text_after_call"): (LLAMA_GOOD + " so.", CLEAN),
    ("llama3.1", "no_wrapper"): ("I add. " + LLAMA_GOOD, REPAIRED),
    ("gpt-oss", "unclosed"): (HARMONY_GOOD.replace("<|call|>", "<|end|>"), REPAIRED),
    ("gpt-oss", "bad_json"): (HARMONY_GOOD.replace('"}', '",}'), []),
    ("gpt-oss", "multi_json"): (HARMONY_HEAD + '{"expr": "1+2"}' * 2 + "<|call|>", REPAIRED * 2),
    ("gpt-oss", "unknown_tool"): (HARMONY_GOOD.replace("calc", "clac"), []),
    ("gpt-oss", "missing_param"): (HARMONY_HEAD + "{}<|call|>", []),
    ("gpt-oss", "wrong_type"): (HARMONY_HEAD + '{"expr": 3}<|call|>', []),
    ("gpt-oss", "duplicate_param"): (HARMONY_HEAD + '{"expr": "1", "expr": "2"}<|call|>', []),
    ("gpt-oss", "text_after_call"): (HARMONY_GOOD + f"<|start|>assistant{FINAL}so.<|return|>", CLEAN),
    ("gpt-oss", "call_in_think"): (HARMONY_GOOD.replace("commentary", "analysis"), []),
    ("gpt-oss", "no_wrapper"): (f"{FINAL}{JSON_ONE}<|return|>", REPAIRED),
}
HERMES_CLASSES = {
    "unclosed": ("<tool_call>\n" + JSON_ONE, REPAIRED),
    "bad_json": (hermes("[1]"), []),
    "multi_json": (hermes(JSON_ONE + JSON_ONE), REPAIRED * 2),
    "unknown_tool": (hermes(JSON_ONE.replace("calc", "clac")), []),
    "missing_param": (hermes('{"name": "calc", "arguments": {}}'), []),
    "wrong_type": (hermes(JSON_ONE.replace('"1+2"', "3")), []),
    "duplicate_param": (hermes(JSON_ONE.replace('"1+2"', '"1", "expr": "2"')), []),
    "text_after_call": (hermes(JSON_ONE) + " so.", CLEAN),
    "no_wrapper": (JSON_ONE, REPAIRED),
}
CLASSES |= {("qwen3", "call_in_think"): ("<think>\n" + hermes(JSON_ONE), [])}
CLASSES |= {(family, kind): case for family in ("qwen3", "smollm2") for kind, case in HERMES_CLASSES.items()}
CUT = {
    "qwen3.6": THOUGHT + GOOD[:-20],
    "glm-4.5": GLM_GOOD[:-20],
    "llama3.1": LLAMA_GOOD[:-4],
    "gpt-oss": HARMONY_GOOD.removesuffix('"}<|call|>'),
    "qwen3": hermes(JSON_ONE)[:-20],
    "smollm2": hermes(JSON_ONE)[:-20],
}


@pytest.mark.parametrize("case", CLASSES, ids=" ".join)
def test_each_class_is_found_in_each_style(family_tokenizer: Callable[[str], Tokenizer], case: tuple[str, str]) -> None:
    text, calls = CLASSES[case]
    assert summary(read(family_tokenizer, case[0], text)) == (calls, [case[1]])


@pytest.mark.parametrize("family", CUT)
def test_a_turn_cut_inside_a_call_never_executes_it(family_tokenizer: Callable[[str], Tokenizer], family: str) -> None:
    assert summary(read(family_tokenizer, family, CUT[family], truncated=True)) == ([], ["truncated_by_length"])


def test_every_class_has_a_case_and_a_policy() -> None:
    assert {kind for _, kind in CLASSES} | {"truncated_by_length"} == set(MALFORMED_KINDS)
    assert set(DEFAULT_POLICY) == set(MALFORMED_KINDS)
    assert set(DEFAULT_POLICY.values()) == set(get_args(Policy))


@pytest.mark.parametrize(
    ("written", "key", "meant"),
    [
        ("a</parameter>b\n</parameter> c", "path", "a</parameter>b\n</parameter> c"),
        ("<parameter=other>\nx", "path", "<parameter=other>\nx"),
        ("line\n\n  line", "path", "line\n\n  line"),
        ("", "path", ""),
        ("3", "path", "3"),
        ("null", "maybe", None),
        ("None", "maybe", None),
        ("nil", "maybe", "nil"),
        ("True", "on", True),
        ("false", "on", False),
        ("2.5", "by", 2.5),
        ('{"a": [1, null]}', "opts", {"a": [1, None]}),
        ("{'a': 1}", "opts", {"a": 1}),
    ],
)
def test_an_xml_value_is_typed_by_its_schema_alone(
    family_tokenizer: Callable[[str], Tokenizer], written: str, key: str, meant: Any
) -> None:
    text = THOUGHT + xml(value(key, written) + ("" if key == "path" else PATH), "lookup")
    (call,) = read(family_tokenizer, "qwen3.6", text).calls
    assert call.arguments[key] == meant


def test_a_missing_closing_tag_is_told_from_a_value_by_the_parameters_of_the_tool(
    family_tokenizer: Callable[[str], Tokenizer],
) -> None:
    turn = read(family_tokenizer, "qwen3.6", THOUGHT + xml("<parameter=path>\na\n" + value("row", "b"), "lookup"))
    assert summary(turn) == ([("lookup", {"path": "a", "row": "b"}, True)], ["unclosed"])


@pytest.mark.parametrize(
    ("family", "text", "thought", "content"),
    [
        ("qwen3", "<think>\nhm\n</think>\n\nSo 3.<|im_end|>", "<think>\nhm\n</think>", "\n\nSo 3."),
        ("qwen3.6", "hm\n</think>\n\nSo 3.<|im_end|>", "hm\n</think>", "\n\nSo 3."),
        ("glm-4.7", "hm</think>So 3.<|user|>", "hm</think>", "So 3."),
        ("gpt-oss", f"<|channel|>analysis<|message|>hm<|end|><|start|>assistant{FINAL}So 3.<|return|>", None, "So 3."),
        ("llama3.1", "So 3.<|eot_id|>", "", "So 3."),
    ],
)
def test_thinking_and_content_are_told_apart_by_tokens(
    family_tokenizer: Callable[[str], Tokenizer], family: str, text: str, thought: str | None, content: str
) -> None:
    tokenizer = family_tokenizer(family)
    turn = read(family_tokenizer, family, text)
    assert (turn.content, turn.calls, turn.malformed) == (content, (), ())
    span = turn.reasoning or (0, 0)
    shown = tokenizer.decode(tokenizer.encode_marked(text)[slice(*span)])
    assert shown == ("<|channel|>analysis<|message|>hm<|end|>" if thought is None else thought)


@pytest.mark.parametrize(
    "head",
    [
        " to=functions.calc<|channel|>commentary json<|message|>",
        "<|channel|>commentary to=functions.calc <|constrain|>json<|message|>",
        "<|channel|>commentary to=functions.calc<|message|>",
    ],
)
def test_a_recipient_is_found_on_either_side_of_the_channel(
    family_tokenizer: Callable[[str], Tokenizer], head: str
) -> None:
    turn = read(family_tokenizer, "gpt-oss", head + '{"expr": "1+2"}<|call|>')
    assert summary(turn) == (CLEAN, [])


def test_a_python_tag_before_a_call_is_part_of_it(family_tokenizer: Callable[[str], Tokenizer]) -> None:
    turn = read(family_tokenizer, "llama3.1", f"<|python_tag|>{LLAMA_GOOD}<|eom_id|>")
    assert (summary(turn), turn.content) == ((CLEAN, []), "")


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=120, deadline=None)
@given(st.data())
def test_any_ids_parse_in_every_family(
    family_tokenizer: Callable[[str], Tokenizer], family: str, data: st.DataObject
) -> None:
    tokenizer = family_tokenizer(family)
    renderer = Renderer(FAMILIES[family], tokenizer, thinking=data.draw(st.booleans()))
    whole = [GOOD, hermes(JSON_ONE), GLM_GOOD, LLAMA_GOOD, HARMONY_GOOD, "<function=", "<arg_key>", "{", "}", "é"]
    pieces = st.sampled_from([tokenizer.encode_marked(text) for text in (*whole, *tokenizer.special_names)])
    noise = st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=4)
    ids = [token for piece in data.draw(st.lists(pieces | noise, max_size=8)) for token in piece]
    turn = renderer.parse(ids, SCHEMAS, truncated=data.draw(st.booleans()))
    for item in (*turn.calls, *turn.malformed):
        assert 0 <= item.span[0] <= item.span[1] <= len(ids)
    turn.text.encode()
    turn.content.encode()
