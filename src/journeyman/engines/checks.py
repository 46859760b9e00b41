"""What every engine refuses alike, so that one mistake reads the same whoever samples. Nothing is changed in here."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from journeyman.engines.errors import ContextOverflow, EngineError
from journeyman.engines.protocol import Sampling, TurnRequest, TurnResult
from journeyman.errors import InputError

_REPORTS = {
    "top_logprobs": "the engines embedded and vllm report alternatives",
    "routed_experts": "serve a mixture of experts with vLLM, started with --enable-return-routed-experts",
}
"""What a request may ask to be told beside ids and logprobs, and who tells it."""


def check_open(is_closed: bool, what: str) -> None:
    """Raise EngineError for a call after ``close``."""
    if is_closed:
        raise EngineError(f"{what} after close")


def check_request(
    request: TurnRequest,
    *,
    context: int,
    max_len: int,
    under_way: bool,
    resumable: bool,
    capabilities: Collection[str],
    vocab: int | None = None,
) -> None:
    """Whether a turn makes sense after what the trial has.

    Args:
        context: tokens that the trial has with the engine.
        max_len: tokens of context one trial may hold.
        under_way: the trial has a turn under way.
        resumable: its last turn was aborted, so that nothing need be appended.
        capabilities: of the engine.
        vocab: ids there are; None where the engine does not know.

    Raises:
        ContextOverflow: it does not fit. EngineError: it makes no sense.
        InputError: it asks to be told what this engine does not know.
    """
    trial = request.trial
    if under_way:
        raise EngineError(f"trial {trial!r} has a turn under way")
    if not request.append and not resumable:
        raise EngineError(f"trial {trial!r} appends no token")
    if request.append and (min(request.append) < 0 or (vocab is not None and max(request.append) >= vocab)):
        held = "ids from 0 on" if vocab is None else f"the vocabulary of {vocab}"
        raise EngineError(f"trial {trial!r} appends an id outside {held}")
    needed = context + len(request.append) + request.sampling.max_new_tokens
    if needed > max_len:
        raise ContextOverflow(trial, needed, max_len)
    check_reports(request.sampling, capabilities)


def check_reports(sampling: Sampling, capabilities: Collection[str]) -> None:
    """Raise InputError when something is to be reported that the engine does not know."""
    for word, who in _REPORTS.items():
        if getattr(sampling, word) and word not in capabilities:
            raise InputError(f"sampling.{word}", "is not reported by this engine for this model", hint=who)


def check_distinct(requests: Sequence[TurnRequest]) -> None:
    """Raise EngineError when two requests of one call name the same trial."""
    seen: set[str] = set()
    for request in requests:
        if request.trial in seen:
            raise EngineError(f"trial {request.trial!r} occurs twice in one call")
        seen.add(request.trial)


def check_same_trial(result: TurnResult, following: TurnRequest) -> None:
    """Raise EngineError when a turn is answered with a request of another trial."""
    if following.trial != result.trial:
        raise EngineError(f"a turn of trial {result.trial!r} was answered for trial {following.trial!r}")


def check_asked_for(result: TurnResult, trials: Collection[str]) -> None:
    """Raise EngineError for a turn of a trial that a call did not ask for."""
    if result.trial not in trials:
        raise EngineError(f"a turn of trial {result.trial!r} ended that this call did not ask for")
