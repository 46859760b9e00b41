"""Would it have mattered? What a stack that keeps text would have done to the turns that were sampled.

Pure functions over contexts, running or stored: nothing is modified, the report is evidence only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from journeyman.errors import InputError
from journeyman.tokens.context import Columns, Context, Segment, Source
from journeyman.tokens.segments import inferred, prompt_ranges
from journeyman.tokens.tokenizer import Tokenizer


@dataclass(frozen=True)
class Changed:
    """One sampled turn that re-tokenising would have changed.

    Attributes:
        context: position of its context in what was audited.
        turn: number of the turn, from 1.
        sampled, retokenised: the two lists of ids.
        at: first position in the turn at which they differ.
    """

    context: int
    turn: int
    sampled: tuple[int, ...]
    retokenised: tuple[int, ...]
    at: int


@dataclass(frozen=True)
class PromptGrowth:
    """How prompts grow over the calls of a context, and what a stack without prefix reuse would send.

    Attributes:
        calls: model calls, of all contexts.
        stored: tokens stored, each once.
        sent: sum of the prompt lengths of all calls.
        longest: the longest prompt.
    """

    calls: int = 0
    stored: int = 0
    sent: int = 0
    longest: int = 0

    @property
    def repeated(self) -> float:
        """Prompt tokens sent per token stored; 0 without tokens."""
        return self.sent / self.stored if self.stored else 0.0


@dataclass(frozen=True)
class AuditReport:
    """What re-tokenising would have changed, over all sampled turns.

    Attributes:
        contexts, turns, tokens: how many were looked at (turns and tokens: sampled ones).
        changed: every turn whose ids would have differed.
        seams: turns whose own ids survive, but whose begin would have merged with the end of the prompt before it.
        would_fork: contexts in which a turn that would change is followed by another: the next prompt of a stack that
            keeps text does not continue what was sampled, so its training row breaks in two.
        forks: segments after the first, i.e. how often a context was really continued from another place.
        forced_turns, forced_tokens: turns that did not close themselves, and the tokens inserted for them (mask 0).
        growth: lengths of prompts.
    """

    contexts: int
    turns: int
    tokens: int
    changed: tuple[Changed, ...]
    seams: int = 0
    would_fork: int = 0
    forks: int = 0
    forced_turns: int = 0
    forced_tokens: int = 0
    growth: PromptGrowth = field(default_factory=PromptGrowth)

    @property
    def changed_share(self) -> float:
        """Share of sampled turns that would have been trained on ids nobody sampled; 0 without turns."""
        return len(self.changed) / self.turns if self.turns else 0.0

    @property
    def fork_share(self) -> float:
        """Share of contexts that a stack that keeps text would have broken in two; 0 without contexts."""
        return self.would_fork / self.contexts if self.contexts else 0.0


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


Stored = tuple[Columns, Sequence[Segment]]
"""A stored context: its columns and its segments."""


def retokenised(contexts: Iterable[Context | Columns | Stored], tokenizer: Tokenizer) -> AuditReport:
    """Audit every sampled turn, of running or stored contexts.

    Args:
        contexts: of columns alone the segments are inferred (``segments.inferred``).

    Raises:
        InputError: an id lies beyond the vocabulary, so the tokenizer is not that of the contexts.
    """
    totals = dict.fromkeys(("contexts", "turns", "tokens", "seams", "would_fork", "forks"), 0)
    forced_turns = forced_tokens = 0
    changed: list[Changed] = []
    growth = PromptGrowth()
    for index, context in enumerate(contexts):
        columns, segments = _parts(context)
        if columns.ids.max(initial=-1) >= tokenizer.vocab_size:
            problem = f"id {columns.ids.max()} lies beyond its {tokenizer.vocab_size} tokens"
            raise InputError("tokenizer", problem, hint="it is not the one these trials were sampled with")
        spans = list(_turns(columns))
        totals["contexts"] += 1
        found = []
        for turn, start, end in spans:
            sampled = columns.ids[start:end].tolist()
            again = reencoded(tokenizer, sampled)
            totals["turns"], totals["tokens"] = totals["turns"] + 1, totals["tokens"] + len(sampled)
            if again != sampled:
                found.append(Changed(index, turn, tuple(sampled), tuple(again), _first_difference(sampled, again)))
            elif _merges_at_seam(columns, start, sampled, tokenizer):
                totals["seams"] += 1
        changed += found
        totals["would_fork"] += bool(found and spans and found[0].turn < spans[-1][0])
        totals["forks"] += len(segments) - 1
        forced = columns.source == Source.FORCED
        forced_tokens += int(forced.sum())
        forced_turns += len(np.unique(columns.turn[forced]))
        lengths = [sum(e - b for b, e in prompt_ranges(segments, start)) for _, start, _ in spans]
        growth = _grown(growth, len(columns.ids), lengths)
    return AuditReport(
        changed=tuple(changed), forced_turns=forced_turns, forced_tokens=forced_tokens, growth=growth, **totals
    )


def _parts(context: Context | Columns | Stored) -> Stored:
    if isinstance(context, Context):
        return context.arrays(), context.segments
    return (context, inferred(context)) if isinstance(context, Columns) else context


def _turns(columns: Columns) -> Iterator[tuple[int, int, int]]:
    """(number, start, end) of each sampled turn."""
    sampled = np.flatnonzero(columns.source == Source.SAMPLED)
    for turn in np.unique(columns.turn[sampled]):
        places = sampled[columns.turn[sampled] == turn]
        yield int(turn), int(places[0]), int(places[-1]) + 1


def _first_difference(left: list[int], right: list[int]) -> int:
    return next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def _merges_at_seam(columns: Columns, start: int, sampled: list[int], tokenizer: Tokenizer) -> bool:
    """Whether encoding the run around the start of a turn as one would move the seam between prompt and turn."""
    before: list[int] = []
    at = start - 1
    while at >= 0 and int(columns.ids[at]) not in tokenizer.special_ids:
        before.append(int(columns.ids[at]))
        at -= 1
    before.reverse()
    after: list[int] = []
    for token in sampled:
        if token in tokenizer.special_ids:
            break
        after.append(token)
    return bool(before and after) and tokenizer.encode(tokenizer.decode([*before, *after])) != [*before, *after]


def _grown(growth: PromptGrowth, stored: int, lengths: list[int]) -> PromptGrowth:
    return PromptGrowth(
        growth.calls + len(lengths),
        growth.stored + stored,
        growth.sent + sum(lengths),
        max([growth.longest, *lengths]),
    )
