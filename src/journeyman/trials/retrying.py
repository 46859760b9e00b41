"""When a trial that broke is attempted again: a wait that doubles, with jitter, and an end to it.

The wait is the one that services are asked again with (``engines.backoff.own_wait``); its jitter comes from the
run's seed, so a run that is repeated waits the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from journeyman.engines.backoff import own_wait
from journeyman.seeds import stream
from journeyman.trials.record import Trial, TrialRequest


@dataclass(frozen=True)
class Retry:
    """Why and when an attempt follows another one.

    Attributes:
        cause: row of the error table that the attempt before it ended in.
        wait_s: seconds between that end and this attempt's turn to start; 0.25 to 30.
        since_s: seconds since the first attempt of this run had its row, this wait included.
    """

    cause: str
    wait_s: float
    since_s: float

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {"cause": self.cause, "wait_s": round(self.wait_s, 3), "since_s": round(self.since_s, 3)}


def next_retry(trial: Trial, seed: int, elapsed_s: float, limit_s: float) -> Retry | None:
    """The retry after an attempt, or None where there is to be none.

    Args:
        trial: the attempt that ended, with its outcome.
        seed: of the run.
        elapsed_s: since the first attempt of the trial had its row; 0 for that one.
        limit_s: a retry that would start later than this is not made.
    """
    if trial.outcome is None or not trial.outcome.retry:
        return None
    wait_s = wait_before(trial.request, trial.attempt, seed)
    if elapsed_s + wait_s > limit_s:
        return None
    return Retry(trial.outcome.cause, wait_s, elapsed_s + wait_s)


def wait_before(request: TrialRequest, failed: int, seed: int) -> float:
    """Seconds between the end of attempt ``failed`` of a trial and the start of the next."""
    return own_wait(failed, stream(seed, "retry", *request.stream, failed).random)
