"""A vocabulary per model family, and real sandboxes with a shell that a test's files lie in."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator
from datetime import date
from functools import cache
from pathlib import Path

import pytest
from harness_driving import Opened

from journeyman.errors import EnvironmentMissing
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.plain import NotIsolated
from journeyman.sandbox.protocol import Provider, Sandbox, SandboxSpec
from journeyman.sandbox.reaper import traces
from journeyman.tokens.renderers import FAMILIES, Renderer
from journeyman.tokens.renderers.family import Opening
from journeyman.tokens.runs import plain
from journeyman.tokens.tokenizer import Tokenizer, save_extended

TODAY = date(2026, 3, 4)
CORPUS = [
    '{"name": "read", "arguments": {"filePath": "/ws/sales.csv"}} {"analysis": "x", "plan": "y", "commands": []}',
    "You do office work. The context is nearly full. Sum up the work so far. Line 1: Acme 412 error: no such file",
]


@pytest.fixture(scope="session")
def renderer_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Renderer]:
    """A renderer of a family over a small byte-level BPE that carries the family's special tokens; made once each."""
    from tokenizers import Tokenizer as Definition
    from tokenizers import decoders, models, pre_tokenizers, trainers

    trained = Definition(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    trained.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    opening = Opening("You work.", ("add Acme Q1",), (), thinking=True, today=TODAY)
    texts = [plain(family.opening(opening)) for family in FAMILIES.values()]
    trainer = trainers.BpeTrainer(vocab_size=900, initial_alphabet=alphabet, show_progress=False)
    trained.train_from_iterator([*CORPUS, *texts] * 3, trainer)
    definition = json.loads(trained.to_str())

    @cache
    def make(name: str, thinking: bool = False) -> Renderer:
        extra = ("<tool_call>", "</tool_call>") if name == "smollm2" else ()
        directory: Path = tmp_path_factory.mktemp(name)
        save_extended(definition, (*FAMILIES[name].specials, *extra), directory)
        return Renderer(FAMILIES[name], Tokenizer(directory), thinking=thinking)

    return make


@pytest.fixture(scope="session")
def bwrap() -> Provider:
    try:
        return PROVIDERS["bwrap"]()
    except EnvironmentMissing as missing:
        pytest.skip(f"provider bwrap: {missing}")


@pytest.fixture(scope="session")
def with_terminals(bwrap: Provider) -> Provider:
    """bwrap where its sandboxes have pseudo-terminals, else the provider without isolation."""
    sandbox = bwrap.create(SandboxSpec(f"harness-{os.getpid()}-probe", waive=waived(bwrap)))
    try:
        if sandbox.exec(["test", "-c", "/dev/ptmx"], deadline_s=20).return_code == 0:
            return bwrap
    finally:
        sandbox.destroy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotIsolated)
        return PROVIDERS["none"]()


def waived(provider: Provider) -> frozenset[str]:
    return frozenset({"memory", "pids", "disk", "cpus"}) - provider.supports


@pytest.fixture
def open_shell(bwrap: Provider, request: pytest.FixtureRequest) -> Iterator[Callable[..., Sandbox]]:
    """Opens a sandbox with a shell and puts files below /ws; afterwards nothing of the test remains."""
    yield from opener(bwrap, request)


@pytest.fixture(scope="module")
def shared_shell(bwrap: Provider) -> Iterator[Sandbox]:
    """One sandbox with a shell for many examples of a property."""
    sandbox = bwrap.create(SandboxSpec(f"harness-{os.getpid()}-shared", waive=waived(bwrap)))
    yield sandbox
    sandbox.destroy()


@pytest.fixture
def open_terminal(with_terminals: Provider, request: pytest.FixtureRequest) -> Iterator[Callable[..., Sandbox]]:
    """The same where a terminal can be opened."""
    yield from opener(with_terminals, request)


@pytest.fixture
def open_container(request: pytest.FixtureRequest) -> Iterator[Callable[..., Sandbox]]:
    """The same in a container, which has pseudo-terminals of its own."""
    try:
        provider = PROVIDERS["oci"]()
    except EnvironmentMissing as missing:
        pytest.skip(f"provider oci: {missing}")
    yield from opener(provider, request)


def opener(provider: Provider, request: pytest.FixtureRequest) -> Iterator[Callable[..., Sandbox]]:
    label = f"harness-{os.getpid()}-{abs(hash(request.node.nodeid)) % 10**8}"
    made: list[Sandbox] = []

    def make(files: dict[str, str | bytes] | None = None) -> Sandbox:
        made.append(provider.create(SandboxSpec(label, waive=waived(provider))))
        for name, content in (files or {}).items():
            data = content.encode() if isinstance(content, str) else content
            made[-1].upload(data, f"/ws/{name}", deadline_s=20)
        return made[-1]

    yield make
    for sandbox in made:
        sandbox.destroy()
    assert traces(label) == {}


@pytest.fixture
def opened(renderer_of: Callable[[str], Renderer]) -> Callable[..., Opened]:
    """Makes a loop to be driven by written turns: name of the spec, family, tools, sandbox, changes to the spec."""
    return lambda name, family="qwen3", **given: Opened.of(name, renderer_of(family), today=TODAY, **given)
