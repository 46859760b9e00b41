"""What the staleness bound cost, and whom: shares of Groups and tokens lost per decile of length and of difficulty.

Hard drops and deadlines hit long trials first; a policy that never sees its hardest tasks looks healthy on average. The
report warns where more than 5 % of the longest decile is lost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

WARN_SHARE = 0.05
"""Share of the longest (or hardest) decile's Groups above which the report warns."""

DECILES = 10

LOST = frozenset({"stale", "requeued", "too_few_valid", "quarantined"})
"""Fates that lose data; Groups without reward variance have nothing to lose."""


@dataclass(frozen=True)
class Fate:
    """What became of one Group.

    Attributes:
        task: its index.
        fate: ``trained``, or a reason of the ledger.
        tokens: sampled in it, those of trials that ended before it was given up.
        length: sampled tokens per ended trial; NaN when none ended.
        difficulty: 1 - mean reward of its valid trials; NaN without any.
    """

    task: int
    fate: str
    tokens: int
    length: float
    difficulty: float


@dataclass(frozen=True)
class Decile:
    """One tenth of the Groups in order of a property of their tasks.

    Attributes:
        upto: largest value in it.
        groups, tokens: in it. lost_groups, lost_tokens: of those, lost.
    """

    upto: float
    groups: int
    lost_groups: int
    tokens: int
    lost_tokens: int

    @property
    def share(self) -> float:
        """Share of its Groups that were lost."""
        return self.lost_groups / self.groups if self.groups else 0.0

    @property
    def token_share(self) -> float:
        """Share of its tokens that were lost."""
        return self.lost_tokens / self.tokens if self.tokens else 0.0


@dataclass(frozen=True)
class LostReport:
    """See the module.

    Attributes:
        by_length, by_difficulty: ten deciles each, ascending; empty when nothing was known.
        groups, lost_groups, tokens, lost_tokens: of the whole run.
        tasks, lost_tasks: tasks seen, and those of which every Group was lost.
    """

    by_length: tuple[Decile, ...]
    by_difficulty: tuple[Decile, ...]
    groups: int
    lost_groups: int
    tokens: int
    lost_tokens: int
    tasks: int
    lost_tasks: int

    @property
    def warnings(self) -> list[str]:
        """One line where a top decile loses more than ``WARN_SHARE`` of its Groups."""
        named = (("longest", self.by_length), ("hardest", self.by_difficulty))
        return [
            f"the {name} tenth of the groups lost {deciles[-1].share:.1%} ({deciles[-1].lost_groups} of "
            f"{deciles[-1].groups}); over {WARN_SHARE:.0%} it hardly sees them: use bound = hold, or more staleness"
            for name, deciles in named
            if deciles and deciles[-1].share > WARN_SHARE
        ]

    def lines(self) -> list[str]:
        """As text."""
        head = (
            f"lost {self.lost_groups} of {self.groups} groups, {self.lost_tokens} of {self.tokens} tokens; "
            f"{self.lost_tasks} of {self.tasks} tasks lost every group"
        )
        found = [head]
        for name, deciles in (("length", self.by_length), ("difficulty", self.by_difficulty)):
            if deciles:
                found.append(f"by {name}: " + " ".join(f"{decile.share:.0%}" for decile in deciles))
        return found + self.warnings

    def as_json(self) -> dict[str, Any]:
        """Plain JSON."""

        def rows(deciles: Sequence[Decile]) -> list[dict[str, Any]]:
            return [{**d.__dict__, "share": d.share, "token_share": d.token_share} for d in deciles]

        counts = ("groups", "lost_groups", "tokens", "lost_tokens", "tasks", "lost_tasks")
        return {
            "by_length": rows(self.by_length),
            "by_difficulty": rows(self.by_difficulty),
            **{name: getattr(self, name) for name in counts},
            "warnings": self.warnings,
        }


def lost_report(fates: Sequence[Fate]) -> LostReport:
    """Count what was lost.

    Length and difficulty are those of a Group's task: the mean over all Groups of it that are known. So a Group that
    was cancelled before it ended stands where its task does.
    """
    lost = [fate.fate in LOST for fate in fates]
    by_task: dict[int, list[bool]] = {}
    for fate, is_lost in zip(fates, lost, strict=True):
        by_task.setdefault(fate.task, []).append(is_lost)
    return LostReport(
        by_length=_deciles(fates, lost, "length"),
        by_difficulty=_deciles(fates, lost, "difficulty"),
        groups=len(fates),
        lost_groups=sum(lost),
        tokens=sum(fate.tokens for fate in fates),
        lost_tokens=sum(fate.tokens for fate, is_lost in zip(fates, lost, strict=True) if is_lost),
        tasks=len(by_task),
        lost_tasks=sum(all(found) for found in by_task.values()),
    )


def _deciles(fates: Sequence[Fate], lost: Sequence[bool], name: str) -> tuple[Decile, ...]:
    known: dict[int, list[float]] = {}
    for fate in fates:
        value = getattr(fate, name)
        if not math.isnan(value):
            known.setdefault(fate.task, []).append(value)
    of_task = {task: sum(values) / len(values) for task, values in known.items()}
    placed = sorted((i for i, fate in enumerate(fates) if fate.task in of_task), key=lambda i: of_task[fates[i].task])
    if len(placed) < DECILES:
        return ()
    found = []
    for part in np.array_split(np.array(placed), DECILES):
        chosen = [int(i) for i in part]
        found.append(
            Decile(
                upto=of_task[fates[chosen[-1]].task],
                groups=len(chosen),
                lost_groups=sum(lost[i] for i in chosen),
                tokens=sum(fates[i].tokens for i in chosen),
                lost_tokens=sum(fates[i].tokens for i in chosen if lost[i]),
            )
        )
    return tuple(found)
