"""What the process of one attempt does with its connection: asks for turns, reports, ends.

The same for a forked process and a Ray task. Every wait has a deadline; when the owner is gone, the attempt ends at
once and takes its sandbox with it.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from journeyman.engines.protocol import TurnResult
from journeyman.harness.protocol import Loop
from journeyman.tokens.context import Columns, Context
from journeyman.tokens.segments import as_json
from journeyman.trials.executors.protocol import Ticket, Workplace
from journeyman.trials.executors.wire import Link, LinkBroken, Message
from journeyman.trials.lifecycle import Life
from journeyman.trials.outcome import RemoteFault

_PATIENCE_S = 30.0
"""Beyond the owner's own deadlines: it answers or is gone."""


class Owner:
    """The engine's owner as the attempt sees it. State: how many tokens and segments were told, and of which epoch."""

    def __init__(self, link: Link, ticket: Ticket) -> None:
        self._link, self._ticket = link, ticket
        self.told = 0
        self._epoch, self._segments = 0, 1

    def ask(self, append: Sequence[int], loop: Loop, limit_s: float) -> TurnResult | None:
        """See ``lifecycle.Model``. Raises RemoteFault when the engine could not, LinkBroken when nobody answers."""
        sampling = loop.sampling
        head = {
            "kind": "turn",
            "anew": loop.epoch != self._epoch,
            "append": list(append),
            "max_new_tokens": sampling.max_new_tokens,
            "stop_ids": sorted(sampling.stop_ids),
            "segments": self.new_segments(loop.context),
        }
        self._epoch = loop.epoch
        self._link.send(head, self.news(loop.context))
        patience_s = self._ticket.limits.model_s + _PATIENCE_S
        message = self._link.receive(min(limit_s, patience_s))
        if message is None:
            if limit_s < patience_s:
                return None
            raise LinkBroken(f"no turn came within {patience_s:g} s")
        return _result(message)

    def abandon(self) -> TurnResult | None:
        """See ``lifecycle.Model``."""
        self._link.send({"kind": "abandon"})
        message = self._link.receive(_PATIENCE_S)
        if message is None:
            raise LinkBroken("a turn could not be abandoned")
        return None if message.head.get("kind") == "nothing" else _result(message)

    def new_segments(self, context: Context | None) -> list[dict[str, Any]]:
        """All segments of a context that was edited since the last message, else none."""
        if context is None or len(context.segments) == self._segments:
            return []
        self._segments = len(context.segments)
        return as_json(context.segments)

    def news(self, context: Context | None) -> list[bytes]:
        """The columns of what was appended since the last message."""
        if context is None:
            return [b""] * len(fields(Columns))
        start, self.told = self.told, context.stored
        return list(context.tail(start))


def _result(message: Message) -> TurnResult:
    if message.head.get("kind") == "fault":
        raise RemoteFault(message.head["type"], message.head["message"], message.head["cause"])
    result: TurnResult = pickle.loads(message.blobs[0])  # from the owner, which made this process
    return result


def run_attempt(connection: socket.socket, ticket: Ticket, workplace: Workplace) -> int:
    """Live one attempt and report it; returns the exit status: 0, or 3 when something of its sandbox is left."""
    link = Link(connection)
    owner = Owner(link, ticket)
    life = Life(workplace, ticket, owner)
    try:
        ended = life.run()
        names = sorted(ended.artifacts) if ended.artifacts is not None else None
        head = {
            "kind": "ended",
            "stop_reason": ended.stop_reason,
            "answer": ended.answer,
            "artifacts": names,
            "turns": ended.turns,
            "error": ended.error,
            "facts": ended.facts,
            "segments": owner.new_segments(life.context),
        }
        blobs = owner.news(life.context) + [dict(ended.artifacts or {})[name] for name in names or ()]
        link.send(head, blobs)
    finally:
        left = life.close()
    return 3 if left else 0
