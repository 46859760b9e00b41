"""A trial token by token, for reading: what each token says, and what the loss will make of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from journeyman.redact import process_redactor
from journeyman.tokens.context import Columns, Source
from journeyman.tokens.tokenizer import Tokenizer


@dataclass(frozen=True)
class TokenLine:
    """One token of a trial.

    Attributes:
        at: its position.
        id: the token.
        text: its bytes as text, with escapes for what cannot be shown on one line.
        source: "prompt", "sampled", "observation", "forced" or "demonstration".
        mask: whether the loss applies.
        logprob: of a sampled token, else None.
        version: weight version of a sampled token, else None.
        turn: 0 for the prompt.
    """

    at: int
    id: int
    text: str
    source: str
    mask: bool
    logprob: float | None
    version: int | None
    turn: int


def token_lines(columns: Columns, tokenizer: Tokenizer | None) -> Iterator[TokenLine]:
    """One line per token, in order. Without a tokenizer, or beyond its vocabulary, the text is empty.

    A secret that this process holds is not shown, also where several tokens spell it; the ids are as they are.
    """
    ids = columns.ids.tolist()
    texts = process_redactor().pieces([shown(tokenizer, token) for token in ids])
    for at, (token, text) in enumerate(zip(ids, texts, strict=True)):
        source = Source(int(columns.source[at]))
        sampled = source == Source.SAMPLED
        yield TokenLine(
            at,
            token,
            text,
            source.name.lower(),
            bool(columns.mask[at]),
            float(columns.logprob[at]) if sampled else None,
            int(columns.version[at]) if sampled else None,
            int(columns.turn[at]),
        )


def shown(tokenizer: Tokenizer | None, token: int) -> str:
    """A token on one line: line breaks, control characters and broken bytes as escapes."""
    if tokenizer is None or token >= tokenizer.vocab_size:
        return ""
    text = tokenizer.token_bytes(token).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
