"""Would it have mattered? What encode(decode(ids)) would have done to the turns that were sampled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from journeyman.tokens.context import Columns, Context, Source
from journeyman.tokens.tokenizer import Tokenizer


@dataclass(frozen=True)
class Changed:
    """One sampled turn that re-tokenising would have changed.

    Attributes:
        context: position of its context in what was audited.
        turn: number of the turn, from 1.
        sampled, retokenised: the two lists of ids.
    """

    context: int
    turn: int
    sampled: tuple[int, ...]
    retokenised: tuple[int, ...]


@dataclass(frozen=True)
class AuditReport:
    """What re-tokenising would have changed, over all sampled turns.

    Attributes:
        contexts, turns, tokens: how many were looked at (turns and tokens: sampled ones).
        changed: every turn whose ids would have differed.
    """

    contexts: int
    turns: int
    tokens: int
    changed: tuple[Changed, ...]

    @property
    def changed_share(self) -> float:
        """Share of sampled turns that would have been trained on ids nobody sampled; 0 without turns."""
        return len(self.changed) / self.turns if self.turns else 0.0


def reencoded(tokenizer: Tokenizer, ids: Iterable[int]) -> list[int]:
    """encode(decode(ids)) as a text-based stack would do it: special ids kept, the text between them encoded anew."""
    result: list[int] = []
    run: list[int] = []
    for token in ids:
        if token in tokenizer.special_ids:
            result += [*tokenizer.encode(tokenizer.decode(run)), token]
            run = []
        else:
            run.append(token)
    return result + tokenizer.encode(tokenizer.decode(run))


def retokenised(contexts: Iterable[Context | Columns], tokenizer: Tokenizer) -> AuditReport:
    """Audit every sampled turn, of running or stored contexts. Nothing is modified; the report is evidence only."""
    count = turns = tokens = 0
    changed: list[Changed] = []
    for index, context in enumerate(contexts):
        count += 1
        columns = context.arrays() if isinstance(context, Context) else context
        is_sampled = columns.source == Source.SAMPLED
        for turn in np.unique(columns.turn[is_sampled]):
            sampled = columns.ids[is_sampled & (columns.turn == turn)].tolist()
            turns, tokens = turns + 1, tokens + len(sampled)
            again = reencoded(tokenizer, sampled)
            if again != sampled:
                changed.append(Changed(index, int(turn), tuple(sampled), tuple(again)))
    return AuditReport(count, turns, tokens, tuple(changed))
