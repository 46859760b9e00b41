"""The two programs that fork a child per request: one holds the standard library only, the other the parsers too.

A fork costs what the parent holds, and most requests parse nothing. What turns out to need a parser is sent on: the
function says so before it changed anything, and the caller asks the other program.
"""

from __future__ import annotations

PLAIN, PARSERS = "plain", "parsers"

PARSING = frozenset({"pdfs", "documents", "spreadsheets", "presentations"})
"""Servers whose every tool reads or writes an office file."""

_own = PARSERS


class NeedsParsers(Exception):
    """The request belongs to the program that holds the parsers."""


def kind_of(tool: str) -> str:
    """Which program is asked first for a tool of this public name."""
    return PARSERS if tool.partition("_")[0] in PARSING else PLAIN


def be(kind: str) -> None:
    """Say which of the two this process is; without a word it holds the parsers."""
    global _own
    _own = kind


def need_parsers() -> None:
    """Before a parser is loaded and before anything is changed. Raises NeedsParsers in the plain program."""
    if _own == PLAIN:
        raise NeedsParsers
