"""The engine of a chat service: ``chat`` is all it can do. Ids, logprobs and weights it has none, and says so."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from journeyman.clock import Stopwatch
from journeyman.deadline import Deadline
from journeyman.engines.backoff import own_wait
from journeyman.engines.errors import EngineError
from journeyman.engines.openai import reply
from journeyman.engines.openai.pace import Pace
from journeyman.engines.openai.prices import PriceTable
from journeyman.engines.openai.reply import ChatReply, TokenUsage
from journeyman.engines.openai.retries import (
    RateLimited,
    ServiceUnavailable,
    asked_wait,
    error_of,
)
from journeyman.engines.protocol import KvUsage

if TYPE_CHECKING:
    import httpx

KEY_VARIABLE = "OPENAI_API_KEY"


class TextOnly(EngineError):
    """A service that returns text was asked for ids, logprobs or weights."""


class OpenaiEngine:
    """A black-box chat model. Its methods may be called from any thread.

    Args:
        url: the service's base, up to and with ``/v1``.
        name: the model.
        api_key: None: the environment variable ``OPENAI_API_KEY``, or none.
        prices: dollars by model; without them cost is unknown.
        at_once: requests under way, at most.
        requests_per_minute, tokens_per_minute: None: no limit of ours.
        try_s: seconds one try may take.
        tries: at most, of one call.
        max_len: tokens of context, for whoever asks; the service is what enforces it.
        headers: further ones for every request.
    """

    def __init__(
        self,
        url: str,
        name: str,
        *,
        api_key: str | None = None,
        prices: PriceTable | None = None,
        at_once: int = 16,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        try_s: float = 300.0,
        tries: int = 6,
        max_len: int = 128_000,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        import httpx

        key = api_key if api_key is not None else os.environ.get(KEY_VARIABLE)
        authorised = {"Authorization": f"Bearer {key}"} if key else {}
        self.url, self.name, self.max_len = url.rstrip("/"), name, max_len
        self._prices = prices or PriceTable()
        self._pace = Pace(at_once, requests_per_minute, tokens_per_minute)
        self._try_s, self._tries = try_s, tries
        limits = httpx.Limits(max_connections=at_once, max_keepalive_connections=at_once)
        self._client = httpx.Client(headers={**authorised, **(headers or {})}, limits=limits, timeout=try_s)
        self._lock = threading.Lock()
        self._usage, self._dollars, self._unpriced = TokenUsage(), 0.0, 0
        self._jitter = random.Random()

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset({"text_only"})

    @property
    def spent(self) -> tuple[TokenUsage, float | None]:
        """Tokens and dollars of every answered try so far; dollars are None once one could not be priced."""
        with self._lock:
            return self._usage, None if self._unpriced else self._dollars

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        deadline_s: float = 600.0,
        **options: Any,
    ) -> ChatReply:
        """Ask once, as often as it takes.

        Args:
            messages: as the protocol has them; earlier answers as ``ChatReply.message``, unchanged.
            tools: schemas.
            deadline_s: seconds until an answer, waiting and retries included.
            options: further fields of the request, e.g. ``temperature``, ``max_completion_tokens``, ``seed``.

        Raises:
            ServiceRefused: the request is refused for good. RateLimited: the wait asked for is longer than the time
                left. ServiceUnavailable: no answer in all tries or by the deadline.
        """
        body: dict[str, Any] = {"model": self.name, "messages": list(messages), **options}
        if tools:
            body["tools"] = list(tools)
        watch, deadline = Stopwatch(), Deadline.after(deadline_s, f"a call of {self.name}")
        reason = "it was never asked"
        for tries in range(1, self._tries + 1):
            with self._pace.turn(deadline):
                answer, reason = self._try(body, deadline)
            if answer is not None and answer.status_code < 400:
                return self._read(answer, tries, watch.elapsed_s)
            wait_s = self._after(answer, tries)
            if wait_s >= deadline.remaining_s:
                if answer is not None and answer.status_code == 429:
                    raise RateLimited(wait_s, deadline.remaining_s)
                break
            if tries < self._tries:
                time.sleep(wait_s)
        raise ServiceUnavailable(f"{self.url} gave no answer in {tries} tries and {watch.elapsed_s:.1f} s: {reason}")

    def _try(self, body: Mapping[str, Any], deadline: Deadline) -> tuple[httpx.Response | None, str]:
        """One request; the answer or None, and why there is none."""
        import httpx

        limit_s = max(0.001, min(self._try_s, deadline.remaining_s))
        watch = Stopwatch()
        try:
            request = self._client.build_request("POST", f"{self.url}/chat/completions", json=body, timeout=limit_s)
            with_stream = self._client.send(request, stream=True)
            try:
                chunks = []
                for chunk in with_stream.iter_raw():  # a server that trickles bytes resets a read timeout each time
                    chunks.append(chunk)
                    if watch.elapsed_s > limit_s:
                        return None, f"no whole answer within {limit_s:.3g} s"
                headers = [(k, v) for k, v in with_stream.headers.multi_items() if k != "transfer-encoding"]
                answer = httpx.Response(with_stream.status_code, headers=headers, content=b"".join(chunks))
            finally:
                with_stream.close()
        except httpx.TimeoutException:
            return None, f"no answer within {limit_s:.3g} s"
        except httpx.HTTPError as error:
            return None, f"{type(error).__name__} {error}"
        return answer, f"status {answer.status_code}: {answer.text[:300]}"

    def _after(self, answer: httpx.Response | None, tries: int) -> float:
        """Seconds to wait before the next try.

        Raises:
            ServiceRefused: there is no use in one.
        """
        if answer is None:
            return own_wait(tries, self._jitter.random)
        again, refused = error_of(answer.status_code, answer.text, _json(answer))
        if not again:
            raise refused
        asked = asked_wait(answer.headers)
        if asked is None:
            return own_wait(tries, self._jitter.random)
        if answer.status_code == 429:
            self._pace.hold(asked)  # for every thread: the limit is the account's
        return asked

    def _read(self, answer: httpx.Response, tries: int, seconds: float) -> ChatReply:
        body = _json(answer)
        message, finish = reply.message_of(body)
        usage = reply.usage_of(body)
        dollars = self._prices.dollars(self.name, usage)
        with self._lock:
            self._usage += usage or TokenUsage()
            self._dollars += dollars or 0.0
            self._unpriced += dollars is None
        if usage is not None:
            self._pace.book(usage.input + usage.output)
        return ChatReply(
            message,
            reply.content_of(message),
            reply.reasoning_of(message),
            reply.calls_of(message),
            finish,
            usage,
            dollars,
            str(body.get("model") or self.name),
            tries,
            seconds,
        )

    @property
    def version(self) -> NoReturn:
        self._refuse("weight version")

    @property
    def paused(self) -> bool:
        return False

    def submit(self, *_: Any) -> NoReturn:
        self._refuse("turn of token ids")

    def step(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("turn of token ids")

    def converse(self, *_: Any) -> NoReturn:
        self._refuse("turn of token ids")

    def generate(self, *_: Any) -> NoReturn:
        self._refuse("turn of token ids")

    def cancel(self, *_: Any) -> NoReturn:
        self._refuse("turn of token ids")

    def pause(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("pause")

    def resume(self) -> NoReturn:
        self._refuse("pause")

    def update_weights(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("new weights")

    def usage(self) -> KvUsage:
        """Nothing is known of a service's keys and values; tokens served from its cache are."""
        used, _ = self.spent
        return KvUsage(0, 0, used.cache_read, used.input - used.cache_read, 0)

    def release(self, trial: str) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Close the connections. Idempotent."""
        self._client.close()

    def _refuse(self, what: str) -> NoReturn:
        raise TextOnly(
            f"openai:{self.url}#{self.name} returns text only: no token ids and no logprobs, so it takes no {what} and "
            "cannot be trained; evaluate it through chat(), or serve open weights with vLLM"
        )


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None
