"""Cutting long results by tokens: what was left out is said, and the whole text lies where the agent can read it."""

from __future__ import annotations

from itertools import count

from journeyman.sandbox.errors import TransferFailed
from journeyman.sandbox.protocol import Sandbox
from journeyman.tokens.tokenizer import Tokenizer

HEAD_SHARE = 0.8
"""Of what is kept, the share that comes from the beginning; results tell most there, and errors stand at the end."""

MARKER_TOKENS = 120
"""Set aside for the line that says what was cut."""

MIN_RESULT_TOKENS = 2 * MARKER_TOKENS
"""Below this a result says nothing any more: the context counts as used up."""

CHARS_PER_TOKEN = 16
"""More characters than this per token are not encoded at all, so that cutting 100 MB costs what cutting 1 MB does."""

UPLOAD_S = 120.0


class SpillFiles:
    """Whole texts of cut results, as files inside the sandbox. State: how many there are."""

    def __init__(self, sandbox: Sandbox | None, directory: str) -> None:
        self._sandbox, self._directory, self._number = sandbox, directory, count(1)

    def keep(self, text: str) -> str | None:
        """The path of a file that holds the text; None without a sandbox, or where its disk is full.

        Raises:
            SystemFault: the sandbox is gone.
        """
        if self._sandbox is None:
            return None
        path = f"{self._directory}/result-{next(self._number):04d}.txt"
        try:
            self._sandbox.upload(text.encode(errors="surrogateescape"), path, deadline_s=UPLOAD_S)
        except TransferFailed:
            return None
        return path


def fits(tokenizer: Tokenizer, text: str, limit: int) -> bool:
    """Whether a text has at most ``limit`` tokens. Costs nothing for short and for very long texts."""
    size = len(text.encode(errors="surrogateescape"))
    if size <= limit:  # no token is shorter than a byte
        return True
    return len(text) <= limit * CHARS_PER_TOKEN and len(tokenizer.encode(text)) <= limit


def cut(tokenizer: Tokenizer, text: str, limit: int, whole: str | None) -> str:
    """The beginning and the end of a text in at most ``limit`` tokens, and between them what is missing.

    Args:
        limit: at least ``MIN_RESULT_TOKENS``.
        whole: path of a file with all of it, or None.
    """
    kept = limit - MARKER_TOKENS
    head_limit = int(kept * HEAD_SHARE)
    head = _first(tokenizer, text[: head_limit * CHARS_PER_TOKEN], head_limit)
    tail = _last(tokenizer, text[len(head) :][-(kept - head_limit) * CHARS_PER_TOKEN :], kept - head_limit)
    missing = len(text) - len(head) - len(tail)
    lines = text.count("\n") + 1
    where = (
        f"the whole text is in {whole}; read the part you need from there"
        if whole
        else "it was not kept; ask for a smaller part"
    )
    note = f"[... {missing} of {len(text)} characters ({lines} lines) were left out here: {where} ...]"
    return f"{head}\n{note}\n{tail}"


def _first(tokenizer: Tokenizer, text: str, limit: int) -> str:
    ids = tokenizer.encode(text)
    if len(ids) <= limit:
        return text
    raw = b"".join(map(tokenizer.token_bytes, ids[:limit]))
    return raw.decode("utf-8", "ignore")


def _last(tokenizer: Tokenizer, text: str, limit: int) -> str:
    ids = tokenizer.encode(text)
    if len(ids) <= limit:
        return text
    raw = b"".join(map(tokenizer.token_bytes, ids[-limit:] if limit else []))
    return raw.decode("utf-8", "ignore")
