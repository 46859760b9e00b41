"""A small tokenizer, trained once, and two tiny ones given as data."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from functools import cache
from pathlib import Path

import pytest

from journeyman.tokens import Tokenizer, train
from journeyman.tokens.renderers import FAMILIES
from journeyman.tokens.renderers.family import Opening
from journeyman.tokens.runs import plain
from journeyman.tokens.tokenizer import save_extended

CORPUS = [
    "tools: lookup calc submit",
    "functions: answer calc lookup",
    "add Acme Q1 and Borealis Q2 from sales.csv\nfiles: sales.csv costs.xlsx notes.pdf mail.eml",
    'lookup {"name":"lookup","arguments":{"path":"sales.csv","row":"Acme","col":"Q1"}}',
    '{"name":"calc","arguments":{"expr":"412+388"}} {"name":"submit","arguments":{"answer":"800"}}',
    "system user assistant tool value think function error: no such row",
] * 3


@pytest.fixture(scope="session")
def tokenizer_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tokenizer")
    train(CORPUS, out)
    return out


@pytest.fixture(scope="session")
def tokenizer(tokenizer_dir: Path) -> Tokenizer:
    return Tokenizer(tokenizer_dir)


@pytest.fixture(scope="session")
def four_pieces() -> Tokenizer:
    """The vocabulary `<`, `search`, `<search`, `>` whose sample [0, 1, 3] re-encodes to [2, 3]."""
    from tokenizers import Tokenizer as Definition
    from tokenizers import models, pre_tokenizers

    letters = {letter: 4 + n for n, letter in enumerate("searchxy")}
    vocab = {"<": 0, "search": 1, "<search": 2, ">": 3} | letters
    steps = [("s", "e"), ("se", "a"), ("sea", "r"), ("sear", "c"), ("searc", "h"), ("<", "search")]
    for left, right in steps[:-2]:
        vocab.setdefault(left + right, len(vocab) + 4)
    definition = Definition(models.BPE(vocab=vocab, merges=steps))
    definition.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return Tokenizer(definition)


QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How the vocabularies of Qwen cut text before their merges: line breaks join what stands before them."""


@pytest.fixture(scope="session")
def family_dir(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A byte-level BPE that carries a family's special tokens, by the family's name; made once each."""
    from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers
    from tokenizers import Tokenizer as Definition

    trained = Definition(models.BPE())
    trained.normalizer = normalizers.NFC()
    trained.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trained.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=alphabet, show_progress=False)
    texts = [plain(family.opening(_PLAIN_OPENING)) for family in FAMILIES.values()]
    trained.train_from_iterator([*CORPUS, *texts, "\n\n x\n\ny\n{}\n"] * 3, trainer)
    definition = json.loads(trained.to_str())
    made: dict[str, Path] = {}

    def directory_of(name: str) -> Path:
        if name not in made:
            extra = ("<tool_call>", "</tool_call>") if name == "smollm2" else ()
            made[name] = tmp_path_factory.mktemp(name)
            save_extended(definition, (*FAMILIES[name].specials, *extra), made[name])
        return made[name]

    return directory_of


@pytest.fixture(scope="session")
def family_tokenizer(family_dir: Callable[[str], Path]) -> Callable[[str], Tokenizer]:
    """The tokenizer of ``family_dir``, loaded once each."""
    return cache(lambda name: Tokenizer(family_dir(name)))


_PLAIN_OPENING = Opening("You work.", ("add Acme Q1 and Borealis Q2",), (), thinking=True, today=date(2026, 3, 4))
