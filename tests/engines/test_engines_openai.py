"""Chat services over real sockets: what is kept, what is retried and when, what it cost, and what is refused."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from journeyman.engines import EngineError, Sampling, TurnRequest
from journeyman.engines.backoff import own_wait
from journeyman.engines.openai import (
    OpenaiEngine,
    Price,
    PriceTable,
    RateLimited,
    ServiceRefused,
    ServiceUnavailable,
    TextOnly,
    TokenUsage,
    read_prices,
)
from journeyman.engines.openai.retries import asked_wait
from journeyman.engines.spec import open_engine
from journeyman.errors import InputError

Answer = Callable[[dict[str, Any]], Response]
MESSAGE = {
    "role": "assistant",
    "content": "Sum: 3",
    "reasoning_content": "one and two",
    "reasoning_details": [{"signature": "kept"}],
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}],
}
USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 100,
    "prompt_tokens_details": {"cached_tokens": 800},
    "completion_tokens_details": {"reasoning_tokens": 60},
}


def good(body: dict[str, Any]) -> Response:
    choice = {"index": 0, "message": MESSAGE, "finish_reason": "tool_calls"}
    return JSONResponse({"model": "served-name", "choices": [choice], "usage": USAGE})


def failing(status: int, code: str = "", **headers: str) -> Answer:
    return lambda body: JSONResponse({"error": {"message": "no", "code": code}}, status, headers)


@contextmanager
def service(*answers: Answer, then: Answer = good) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A service that gives these answers in turn; its address, and the requests it got."""
    seen: list[dict[str, Any]] = []
    waiting = list(answers)

    async def complete(request: Request) -> Response:
        body = json.loads(await request.body())
        seen.append({**body, "at": time.monotonic(), "authorization": request.headers.get("authorization")})
        return (waiting.pop(0) if waiting else then)(body)

    app = Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"])])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", seen
        finally:
            server.should_exit = True
            thread.join(5)


@contextmanager
def asking(url: str, **options: Any) -> Iterator[OpenaiEngine]:
    engine = OpenaiEngine(url, "m", **{"api_key": "secret", **options})
    try:
        yield engine
    finally:
        engine.close()


ASK = [{"role": "user", "content": "1 + 2?"}]


def test_an_answer_keeps_reasoning_and_calls_and_goes_back_unchanged() -> None:
    with service() as (url, seen), asking(url) as engine:
        reply = engine.chat(ASK, tools=[{"type": "function", "function": {"name": "add"}}], temperature=0.5)
        assert (reply.content, reply.reasoning, reply.finish) == ("Sum: 3", "one and two", "tool_calls")
        assert [(call.id, call.name, call.arguments) for call in reply.calls] == [("c1", "add", {"a": 1, "b": 2})]
        engine.chat([*ASK, reply.message, {"role": "tool", "tool_call_id": "c1", "content": "3"}])
        assert seen[1]["messages"][1] == MESSAGE
        assert (seen[0]["temperature"], seen[0]["model"], seen[0]["authorization"]) == (0.5, "m", "Bearer secret")
        assert reply.model == "served-name"


def test_cached_tokens_are_paid_once_and_an_unknown_price_is_not_zero(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text('[models."m"]\ninput = 1.25\noutput = 10.0\ncache_read = 0.125\n')
    table = read_prices(tmp_path / "prices.toml")
    million = TokenUsage(input=1_000_000, cache_read=800_000, output=100_000)
    assert table.dollars("m", million) == pytest.approx(1.35)
    assert table.dollars("other", million) is None
    with service() as (url, _), asking(url, prices=table) as engine, asking(url) as unpriced:
        reply = engine.chat(ASK)
        assert reply.usage == TokenUsage(1000, 800, 0, 100, 60)
        assert reply.dollars == pytest.approx((200 * 1.25 + 800 * 0.125 + 100 * 10) / 1e6)
        engine.chat(ASK)
        usage, dollars = engine.spent
        assert (usage.input, dollars) == (2000, pytest.approx(2 * (reply.dollars or 0)))
        assert unpriced.chat(ASK).dollars is None
        assert unpriced.spent[1] is None


@pytest.mark.parametrize(
    "text", ['[models."m"]\ninput = -1\noutput = 1\n', '[models."m"]\ninput = 1\n', "x = 1\n", "="]
)
def test_a_price_table_that_cannot_be_used_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "prices.toml").write_text(text)
    with pytest.raises(InputError, match=r"prices\.toml"):
        read_prices(tmp_path / "prices.toml")


def test_cache_prices_fall_back_to_the_input_price() -> None:
    assert Price(2.0, 0.0).dollars(TokenUsage(input=10, cache_read=4, cache_write=2)) == pytest.approx(20e-6)
    assert PriceTable().dollars("m", None) is None


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_failures_that_pass_are_tried_again_after_the_wait_that_was_asked_for(status: int) -> None:
    answers = failing(status, **{"Retry-After": "0.4"})
    with service(answers, answers) as (url, seen), asking(url) as engine:
        reply = engine.chat(ASK)
        assert reply.tries == 3
        assert all(b["at"] - a["at"] >= 0.39 for a, b in itertools.pairwise(seen))


@pytest.mark.parametrize(("status", "code"), [(400, ""), (401, ""), (404, ""), (429, "insufficient_quota")])
def test_failures_that_do_not_pass_are_not_tried_again(status: int, code: str) -> None:
    with service(failing(status, code)) as (url, seen), asking(url) as engine:
        with pytest.raises(ServiceRefused) as caught:
            engine.chat(ASK)
        assert (caught.value.status, caught.value.code, len(seen)) == (status, code, 1)


def test_a_wait_longer_than_the_deadline_ends_the_call_at_once() -> None:
    started = time.monotonic()
    with service(failing(429, **{"Retry-After": "60"})) as (url, _), asking(url) as engine:
        with pytest.raises(RateLimited) as caught:
            engine.chat(ASK, deadline_s=5)
        assert caught.value.wait_s == 60
    assert time.monotonic() - started < 4


def test_a_try_that_hangs_or_trickles_ends_by_its_limit_and_another_is_made() -> None:
    async def trickle() -> Any:
        for _ in range(1000):
            yield b" "
            await asyncio.sleep(0.05)

    with service(lambda body: StreamingResponse(trickle())) as (url, seen), asking(url, try_s=0.5) as engine:
        assert engine.chat(ASK).tries == 2
        assert len(seen) == 2


def test_a_service_that_never_answers_well_is_unavailable_after_so_many_tries() -> None:
    wait = failing(500, **{"Retry-After": "0"})
    with service(then=wait) as (url, seen), asking(url, tries=3) as engine:
        with pytest.raises(ServiceUnavailable, match=r"3 tries .* status 500"):
            engine.chat(ASK)
        assert len(seen) == 3


def test_no_more_requests_are_under_way_than_allowed() -> None:
    now, most, lock = 0, 0, threading.Lock()

    async def slow() -> Any:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        await asyncio.sleep(0.1)
        yield good({}).body
        with lock:
            now -= 1

    with service(then=lambda body: StreamingResponse(slow())) as (url, _), asking(url, at_once=3) as engine:
        with ThreadPoolExecutor(9) as pool:
            assert len(list(pool.map(lambda _: engine.chat(ASK), range(9)))) == 9
        assert most == 3


def test_requests_per_minute_are_kept_and_a_call_that_cannot_wait_says_so() -> None:
    with service() as (url, seen), asking(url, requests_per_minute=2) as engine:
        engine.chat(ASK)
        engine.chat(ASK)
        with pytest.raises(Exception, match="did not end within"):
            engine.chat(ASK, deadline_s=0.3)
        assert len(seen) == 2


def test_a_text_only_engine_refuses_ids_and_weights_with_what_to_do() -> None:
    with asking("http://127.0.0.1:9/v1") as engine:
        assert engine.capabilities == {"text_only"}
        request = TurnRequest("t", [1], 1, Sampling(1, 1.0, frozenset()))
        for call in (lambda: engine.generate([request]), lambda: engine.update_weights({}, 1), lambda: engine.version):
            with pytest.raises(TextOnly, match=r"text only: .* vLLM"):
                call()
    with pytest.raises(InputError, match="text only"):
        open_engine("openai:http://127.0.0.1:9/v1#m", training=True)


def test_an_answer_that_is_no_completion_is_a_system_error() -> None:
    with (
        service(lambda body: JSONResponse({"hello": 1})) as (url, _),
        asking(url) as engine,
        pytest.raises(EngineError, match="no chat completion"),
    ):
        engine.chat(ASK)


def test_waits_are_read_from_every_form_and_own_ones_grow_with_jitter() -> None:
    assert asked_wait({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert asked_wait({"retry-after": "2.5"}) == 2.5
    assert asked_wait({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    assert asked_wait({"retry-after": "soon"}) is None
    assert [own_wait(n, lambda: 0.0) for n in (1, 2, 3, 20)] == [0.25, 0.5, 1.0, 15.0]
    assert own_wait(3, lambda: 1.0) == 2.0
