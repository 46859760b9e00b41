"""The engine's owner: takes the turns that attempts ask for, steps the engine, hands results back, keeps deadlines."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from journeyman.deadline import Deadline
from journeyman.engines.errors import EngineError
from journeyman.engines.protocol import Engine, TurnRequest, TurnResult

STEP_S = 0.02
"""What one step of a remote engine may wait while attempts may have something to say."""


class ModelDeadline(EngineError):
    """A turn was not sampled in time: a system error, never the policy's.

    Args:
        trial: whose turn.
        limit_s: seconds it was allowed.
    """

    def __init__(self, trial: str, limit_s: float) -> None:
        self.trial, self.limit_s = trial, limit_s
        super().__init__(f"a turn of trial {trial!r} did not end within {limit_s:g} s")


@dataclass(frozen=True)
class Failed:
    """A turn that will not come. ``error`` says why."""

    trial: str
    error: Exception


class Turns:
    """Turns under way on one engine. One thread owns it.

    Args:
        engine: decodes all turns together.
        model_s: seconds one turn may take, queueing included.
    """

    def __init__(self, engine: Engine, model_s: float) -> None:
        self.engine, self.model_s = engine, model_s
        self._under_way: dict[str, Deadline] = {}

    @property
    def any(self) -> bool:
        """Whether a step can bring something."""
        return bool(self._under_way)

    def submit(self, request: TurnRequest) -> Failed | None:
        """Hand a turn in; at once ``Failed`` when the engine refuses it."""
        try:
            self.engine.submit(request)
        except Exception as error:  # the engine is a boundary: whatever it raises ends this attempt alone
            return Failed(request.trial, _as_engine_error(error))
        self._under_way[request.trial] = Deadline.after(self.model_s, f"a turn of {request.trial}")
        return None

    def step(self) -> list[TurnResult | Failed]:
        """Advance; turns that ended or whose deadline passed. A step that raises fails all that was under way."""
        found: list[TurnResult | Failed] = []
        try:
            for result in self.engine.step(STEP_S):
                if self._under_way.pop(result.trial, None) is not None:
                    found.append(result)
        except Exception as error:
            failed = _as_engine_error(error)
            for trial in tuple(self._under_way):
                self.release(trial)
                found.append(Failed(trial, failed))
            return found
        for trial, deadline in tuple(self._under_way.items()):
            if deadline.has_passed:
                self.release(trial)
                found.append(Failed(trial, ModelDeadline(trial, self.model_s)))
        return found

    def abandon(self, trial: str) -> TurnResult | None:
        """End the trial's turn now; what was sampled of it."""
        if self._under_way.pop(trial, None) is None:
            return None
        try:
            return self.engine.cancel(trial)
        except Exception:  # it will be released; what it had sampled is lost
            return None

    def release(self, trial: str) -> None:
        """Forget a trial."""
        self._under_way.pop(trial, None)
        with contextlib.suppress(Exception):
            self.engine.release(trial)


def _as_engine_error(error: Exception) -> Exception:
    """Errors that name their own row stay; anything else that an engine raises is the engine's failure."""
    if getattr(error, "cause", None) is not None:
        return error
    return EngineError(f"{type(error).__name__}: {error}")
