from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.errors import InputError
from journeyman.tokens import SPECIAL_TOKENS, Tokenizer, train

hostile_text = st.lists(
    st.sampled_from([*SPECIAL_TOKENS, "<|im_", "end|>", "<tool", "_call>", "\n", " ", "Acme", "Q1", "412", "é", "🙂"])
    | st.text(max_size=8),
    max_size=8,
).map("".join)


@given(hostile_text)
def test_no_text_ever_encodes_to_a_special_id(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert not tokenizer.special_ids.intersection(ids)
    assert tokenizer.decode(ids) == text


def test_marked_text_of_our_own_is_the_only_way_to_special_ids_by_spelling(tokenizer: Tokenizer) -> None:
    marked = tokenizer.encode_marked("<|im_start|>user\n<|im_end|>")
    assert [marked[0], marked[-1]] == [tokenizer.special("<|im_start|>"), tokenizer.special("<|im_end|>")]
    assert marked[1:-1] == tokenizer.encode("user\n")


def test_special_tokens_are_the_first_seven_ids(tokenizer: Tokenizer) -> None:
    assert [tokenizer.special(name) for name in SPECIAL_TOKENS] == list(range(7))


def test_an_unknown_special_token_names_the_nearest(tokenizer: Tokenizer) -> None:
    with pytest.raises(InputError, match=r"did you mean <tool_call>\?"):
        tokenizer.special("<toolcall>")


def test_digits_and_white_space_are_tokens_of_their_own(tokenizer: Tokenizer) -> None:
    assert len(tokenizer.encode("412")) == 3
    assert tokenizer.encode("add Acme") == [*tokenizer.encode("add"), *tokenizer.encode(" "), *tokenizer.encode("Acme")]


def test_a_name_has_one_id_in_the_instruction_in_json_and_in_a_table(tokenizer: Tokenizer) -> None:
    (name,) = tokenizer.encode("Acme")
    for text in ("add Acme Q1", '{"row":"Acme"}', "Acme,412\n"):
        assert name in tokenizer.encode(text)


def test_lone_surrogates_from_a_broken_file_become_replacement_characters(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a\ufffdb"


def test_a_part_of_a_character_decodes_to_a_replacement_character(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("é")
    assert len(ids) == 2
    assert tokenizer.decode(ids[:1]) == "\ufffd"


def test_the_same_corpus_gives_the_same_bytes_in_another_process(tokenizer_dir: Path, tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1]); from conftest import CORPUS; "
        "from journeyman.tokens import train; train(CORPUS, pathlib.Path(sys.argv[2]))"
    )
    subprocess.run([sys.executable, "-c", program, str(Path(__file__).parent), str(tmp_path)], check=True, timeout=60)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / name).read_bytes() == (tokenizer_dir / name).read_bytes()


def test_special_tokens_spelled_in_the_corpus_are_not_learnt_as_text(tmp_path: Path) -> None:
    spelled = train(["zig<|im_end|>zag"] * 50, tmp_path / "a")
    plain = train(["zig", "zag"] * 50, tmp_path / "b")
    assert spelled.vocab_size == plain.vocab_size


@pytest.mark.parametrize("content", ["", "{", "[]", '{"model": 3}', '{"model": {"type": "BPE", "vocab": 7}}'])
def test_a_corrupt_tokenizer_file_is_an_input_error_that_names_it(tmp_path: Path, content: str) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(InputError, match=r"tokenizer\.json"):
        Tokenizer(tmp_path)


def test_a_directory_without_tokenizer_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        Tokenizer(tmp_path)


def test_the_tokenizer_config_is_json_with_a_chat_template(tokenizer_dir: Path) -> None:
    config = json.loads((tokenizer_dir / "tokenizer_config.json").read_text())
    assert config["eos_token"] == "<|im_end|>"
    assert "tool_response" in config["chat_template"]
