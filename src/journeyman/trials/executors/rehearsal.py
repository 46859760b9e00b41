"""Sandboxes made and ended before the first fork, so that attempts find what they do in memory and already quick.

A forked process pays for each page that it is the first to write, and Python writes into its code while it learns how
that is used. What was learned before the fork is shared by every attempt.
"""

from __future__ import annotations

from journeyman.errors import JourneymanError
from journeyman.sandbox.protocol import Provider, SandboxSpec
from journeyman.trials.collect import collect_files
from journeyman.trials.quiesce import quiesce

TIMES = 10
"""Python adapts a function after some eight calls."""
CHEAP = frozenset({"bwrap"})
"""Providers whose sandboxes start within milliseconds."""
_LIMIT_S = 5.0


def rehearse(provider: Provider, label: str, waive: frozenset[str], logs: str) -> None:
    """Start, use and end a few sandboxes of no task. What fails here is left to the attempts, which say so.

    Args:
        provider: of the attempts' sandboxes.
        label: owner of every sandbox.
        waive: limits that may stay unenforced.
        logs: directory above deliverables.
    """
    if provider.name not in CHEAP:
        return
    try:
        for _ in range(TIMES):
            sandbox = provider.create(SandboxSpec(label=label, waive=waive), deadline_s=_LIMIT_S)
            try:
                sandbox.exec(f"echo >{logs}/none", deadline_s=_LIMIT_S)
                quiesce(sandbox, _LIMIT_S, provider=provider)
                collect_files(sandbox, logs, _LIMIT_S, _LIMIT_S)
            finally:
                sandbox.destroy(deadline_s=_LIMIT_S)
    except JourneymanError:
        return
