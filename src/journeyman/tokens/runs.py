"""Text to ids, run by run: special tokens only where we wrote them, never where somebody else spelled them.

A template is a sequence of parts. A ``str`` is text of the template, in which special tokens are spelled out;
``Foreign`` is text of users, tools and files, which is ordinary whatever it spells. What stands between two special
tokens is encoded as one run, so ids equal those that a tokenizer gives for the rendered template.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from journeyman.tokens.tokenizer import Tokenizer, split_special


@dataclass(frozen=True)
class Foreign:
    """Text that nobody of us wrote."""

    text: str


Part = str | Foreign
Parts = list[Part]


def encode_parts(tokenizer: Tokenizer, parts: Iterable[Part]) -> list[int]:
    """Ids of a filled template. Only special tokens that ``tokenizer`` has are cut out of the template's own text."""
    ids: list[int] = []
    run: list[str] = []

    def flush() -> None:
        if run:
            ids.extend(tokenizer.encode("".join(run)))
            run.clear()

    for part in parts:
        if isinstance(part, Foreign):
            run.append(part.text)
            continue
        for piece, is_special in split_special(part, tokenizer.special_names):
            if is_special:
                flush()
                ids.append(tokenizer.special(piece))
            else:
                run.append(piece)
    flush()
    return ids


def plain(parts: Iterable[Part]) -> str:
    """The text of a filled template, for people and for comparison with the official template."""
    return "".join(part.text if isinstance(part, Foreign) else part for part in parts)
