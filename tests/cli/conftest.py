"""Runs a command line in this process, as the console script would, and keeps what it printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from journeyman.cli.main import main


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str


@pytest.fixture
def run(capfd) -> Callable[..., Run]:
    def go(*words: str) -> Run:
        code = main(words)
        captured = capfd.readouterr()
        return Run(code, captured.out, captured.err)

    return go
