"""Going on when a context is used up: the words of a compaction and of a fresh start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SUMMARY_REQUEST = (
    "The context is nearly full. Sum up the work so far for someone who continues it without having seen it: what was "
    "asked, what was found (with exact figures, names and file paths), which files were changed and how, what is still "
    "to be done, and what turned out not to work. Call no tool. Write the summary only."
)

FRESH_START = (
    "This is start {number} of at most {last} on this task. The conversation before it was dropped because it used up "
    "its limit; files that were changed meanwhile are as they were left."
)


def summary_turn(summary: str) -> Mapping[str, str]:
    """The user turn that follows the instruction after a compaction."""
    text = summary or "(nothing was summed up)"
    return {
        "role": "user",
        "content": f"Summary of the work so far, written by yourself:\n\n{text}\n\nGo on from here.",
    }


def common_length(left: Sequence[int], right: Sequence[int]) -> int:
    """How many ids both begin with."""
    for at, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return at
    return min(len(left), len(right))
