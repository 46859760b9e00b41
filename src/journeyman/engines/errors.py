"""What an engine raises. All of it is a system failure, never a reward."""

from __future__ import annotations

from journeyman.errors import SystemFault


class EngineError(SystemFault):
    """The engine could not do what was asked; the request is named in the message."""

    cause = "engine_failed"


class ContextOverflow(EngineError):
    """A request does not fit the context window. The harness should have ended the trial before.

    Args:
        trial: whose request it is.
        needed: tokens of context with the request's new ones and its ``max_new_tokens``.
        limit: tokens of context the engine holds.
    """

    def __init__(self, trial: str, needed: int, limit: int) -> None:
        self.trial, self.needed, self.limit = trial, needed, limit
        super().__init__(f"trial {trial!r} needs a context of {needed} tokens; this engine holds {limit}")
