"""A small tokenizer, trained once, and two tiny ones given as data."""

from __future__ import annotations

from pathlib import Path

import pytest

from journeyman.tokens import Tokenizer, train

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
