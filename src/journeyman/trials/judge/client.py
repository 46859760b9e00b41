"""Asks a judge until it gives a valid judgement or its tries are over; state: keys, counts, one connection pool."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from journeyman.deadline import Deadline
from journeyman.engines.backoff import own_wait
from journeyman.engines.openai.retries import AGAIN, FINAL_CODES, asked_wait
from journeyman.redact import Redactor
from journeyman.trials.judge.errors import JudgeFailed
from journeyman.trials.judge.judgement import BadAnswer, Judgement, code_of, kind_of, read_judgement
from journeyman.trials.judge.keys import Keys
from journeyman.trials.judge.tally import JudgeTally
from journeyman.trials.judge.tries import Answer, ask_once

_KEY_REFUSED = frozenset({401, 403})


@dataclass(frozen=True)
class JudgeSettings:
    """Which judge, and how patiently.

    Attributes:
        url: base of the endpoint, up to and with ``/v1``.
        model: its name there; recorded beside every judgement as the service itself returns it.
        key_variables: environment variables that hold the keys; none for a service without keys.
        try_s: seconds one try may take, connection and all.
        tries: requests of one judgement, at most.
        total_s: seconds of one judgement, waits included.
        at_once: requests under way, at most.
        options: further fields of each request, e.g. ``temperature``.
    """

    url: str
    model: str
    key_variables: tuple[str, ...] = ()
    try_s: float = 120.0
    tries: int = 5
    total_s: float = 900.0
    at_once: int = 16
    options: Mapping[str, Any] = field(default_factory=lambda: {"temperature": 0.0})


class Judge:
    """A judge behind an OpenAI-compatible endpoint. Its methods may be called from any thread; a context manager.

    Args:
        settings: which one.
        keys: by default those of ``settings.key_variables``.
        pause: waits some seconds.
        uniform: jitter in [0, 1).

    Raises:
        EnvironmentMissing: a key variable is not set.
    """

    def __init__(
        self,
        settings: JudgeSettings,
        *,
        keys: Keys | None = None,
        pause: Callable[[float], None] = time.sleep,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        import httpx

        self.settings = settings
        self.tally = JudgeTally()
        self._keys = keys or Keys.of_variables(settings.key_variables)
        self._redact = Redactor(self._keys.values)
        self._pause, self._uniform = pause, uniform
        self._turns = threading.BoundedSemaphore(settings.at_once)
        # No bound on connections: a try that was given up may hold its own a little longer than it is waited for.
        self._client = httpx.Client(limits=httpx.Limits(max_connections=None, max_keepalive_connections=16))

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def ask(self, messages: Sequence[Mapping[str, Any]]) -> Judgement:
        """The judgement of one criterion.

        Args:
            messages: as the protocol has them; they have to ask for ``{"score": <0 to 1>, "reason": ...}``.

        Raises:
            JudgeFailed: no valid judgement in all tries or in the time of one judgement.
        """
        body = {"model": self.settings.model, "messages": list(messages), **self.settings.options}
        started = time.monotonic()
        deadline = Deadline.after(self.settings.total_s, "a judgement")
        self.tally.ask()
        is_judged = False
        tries, reason = 0, "it was never asked"
        try:
            while tries < self.settings.tries and not deadline.has_passed:
                taken = self._keys.take()
                if taken is None:
                    raise JudgeFailed("the service refuses every key", tries, time.monotonic() - started)
                position, key, rest_s = taken
                if rest_s >= deadline.remaining_s:
                    reason = f"every key has to rest for {rest_s:.0f} s more; {reason}"
                    break
                if rest_s:
                    self._pause(rest_s)
                answer = self._try(body, key, deadline)
                tries += 1
                try:
                    judgement = read_judgement(answer, self.settings.model, tries, time.monotonic() - started)
                except BadAnswer as error:
                    self.tally.tried(kind_of(answer))
                    reason = self._redact(str(error))
                    self._after(answer, position, tries, deadline, reason, started)
                    continue
                self.tally.tried(None)
                is_judged = True
                return judgement
            raise JudgeFailed(reason, tries, time.monotonic() - started)
        finally:
            self.tally.end(is_judged=is_judged)

    def _try(self, body: Mapping[str, Any], key: str, deadline: Deadline) -> Answer:
        limit_s = max(0.001, min(self.settings.try_s, deadline.remaining_s))
        if not self._turns.acquire(timeout=deadline.remaining_s):
            return Answer(0, {}, "no turn came before the deadline")
        try:
            url = f"{self.settings.url.rstrip('/')}/chat/completions"
            return ask_once(self._client, url, body, key, min(limit_s, max(0.001, deadline.remaining_s)))
        finally:
            self._turns.release()

    def _after(
        self, answer: Answer, position: int, tries: int, deadline: Deadline, reason: str, started: float
    ) -> None:
        """Rest, drop or wait after a failed try. Raises JudgeFailed where another try is of no use."""
        if answer.status in _KEY_REFUSED or code_of(answer) in FINAL_CODES - {"context_length_exceeded"}:
            self._keys.drop(position)  # the next one may be good
            return
        is_final = 400 <= answer.status < 500 and answer.status not in AGAIN
        if is_final:
            raise JudgeFailed(reason, tries, time.monotonic() - started)
        asked_s = asked_wait(answer.headers) if answer.status else None
        if answer.status == 429:
            self._keys.rest(position, asked_s if asked_s is not None else own_wait(tries, self._uniform))
            return  # another key may be free at once
        wait_s = asked_s if asked_s is not None else own_wait(tries, self._uniform)
        if tries < self.settings.tries:
            self._pause(min(wait_s, deadline.remaining_s))
