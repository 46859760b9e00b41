"""The endpoint: routes of both protocols on loopback, behind a token, until it is told to end."""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from journeyman.engines.capture import anthropic_style, openai_style
from journeyman.engines.capture.driver import Driver
from journeyman.engines.capture.journal import Journal, report_of
from journeyman.engines.capture.lines import Lines
from journeyman.engines.capture.messages import Answered, Asked
from journeyman.engines.capture.sources import engine_of, renderer_of
from journeyman.engines.capture.turns import Gone, Limits, Turns
from journeyman.engines.errors import ContextOverflow
from journeyman.errors import InputError, JourneymanError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

LOOPBACK = ("127.0.0.1", "::1", "localhost")
PING_S = 5.0
"""Seconds between signs of life of a stream whose turn is still being sampled."""
STYLES: dict[str, ModuleType] = {"openai": openai_style, "anthropic": anthropic_style}


@dataclass(frozen=True)
class CaptureSpec:
    """An endpoint.

    Attributes:
        engine: one of ``sources.FORMS``.
        out: folder of the recording.
        tokenizer: folder with the model's tokenizer, where the engine has none.
        family: of renderers; None: found by the chat template.
        host, port: where to listen; 0: any free port.
        token: that requests must carry; None: a new one.
        model: name shown to programs.
        thinking: whether the model is asked to think.
        max_len: tokens of context; None: the engine's.
        limits: of sampling.
    """

    engine: str
    out: Path
    tokenizer: Path | None = None
    family: str | None = None
    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    model: str = "policy"
    thinking: bool = False
    max_len: int | None = None
    limits: Limits = field(default_factory=Limits)


def serve(spec: CaptureSpec, *, as_json: bool = False) -> int:
    """Serve until SIGINT or SIGTERM; the first line on stdout says where, the last what was recorded.

    Raises:
        InputError: an engine, family, address or folder that cannot be used. EnvironmentMissing: the engine is not
            there, or the extra ``serve`` is not installed.
    """
    import uvicorn

    if spec.host not in LOOPBACK and spec.token is None:
        raise InputError("--host", f"{spec.host} is open to others", hint="give --token too, then it is allowed")
    renderer = renderer_of(spec.engine, spec.tokenizer, spec.family, thinking=spec.thinking)
    about = {"family": renderer.family.name, "engine": spec.engine, "model": spec.model}
    lines = Lines(Journal(spec.out, about), renderer, datetime.now(UTC).date())
    try:
        listener = socket.create_server((spec.host, spec.port), family=_family(spec.host))
    except OSError as error:
        raise InputError("--port", f"{spec.port} on {spec.host} cannot be used: {error.strerror}") from error
    token = spec.token or secrets.token_urlsafe(24)
    with listener:
        engine = engine_of(spec.engine, renderer, spec.max_len)
        driver = Driver(engine)
        before = signal.signal(signal.SIGTERM, _interrupt)  # the server hands the signal on once it has closed
        try:
            turns = Turns(lines, renderer, driver, engine.max_len, spec.limits)
            config = uvicorn.Config(
                app(turns, token, spec.model), log_level="warning", lifespan="off", timeout_graceful_shutdown=3
            )
            url = f"http://{spec.host}:{listener.getsockname()[1]}"
            told = {"url": url, "token": token, "out": str(spec.out)}
            text = f"OpenAI:    base URL {url}/v1\nAnthropic: base URL {url}\ntoken:     {token}  (Ctrl-C ends)"
            sys.stdout.write((json.dumps(told) if as_json else text) + "\n")
            sys.stdout.flush()
            asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))
        except KeyboardInterrupt:
            pass
        finally:
            driver.close()
            signal.signal(signal.SIGTERM, before)
    report = report_of(spec.out)
    counts = f"{report.conversations} conversations, {report.forks} forks, {report.calls} calls"
    sys.stdout.write((json.dumps(vars(report)) if as_json else f"recorded {counts}: {spec.out}") + "\n")
    return 0


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def app(turns: Turns, token: str, model: str) -> Starlette:
    """The application; every route but the health check asks for ``token``."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, StreamingResponse
    from starlette.routing import Route

    async def complete(request: Request, style: str) -> Response:
        words = STYLES[style]
        if not _is_allowed(request, token):
            return JSONResponse(words.error(401, "this endpoint wants its token"), 401)
        try:
            asked: Asked = words.read(await request.json())
        except (InputError, ValueError, AttributeError, KeyError, TypeError) as error:
            return JSONResponse(words.error(400, f"{type(error).__name__}: {error}"), 400)
        if asked.stream:
            return StreamingResponse(_stream(turns, asked, style, request), media_type="text/event-stream")
        try:
            answered = await turns.answer(asked, style, request.is_disconnected)
        except (JourneymanError, Gone) as error:
            status = status_of(error)
            return JSONResponse(words.error(status, str(error)), status)
        return JSONResponse(words.write(asked, answered, int(time.time())))

    async def chat(request: Request) -> Response:
        return await complete(request, "openai")

    async def messages(request: Request) -> Response:
        return await complete(request, "anthropic")

    async def count(request: Request) -> Response:
        if not _is_allowed(request, token):
            return JSONResponse(anthropic_style.error(401, "this endpoint wants its token"), 401)
        try:
            tokens = turns.count(anthropic_style.read(await request.json()))
        except (InputError, ValueError, AttributeError, KeyError, TypeError) as error:
            return JSONResponse(anthropic_style.error(400, str(error)), 400)
        return JSONResponse({"input_tokens": tokens})

    async def models(request: Request) -> Response:
        if not _is_allowed(request, token):
            return JSONResponse(openai_style.error(401, "this endpoint wants its token"), 401)
        return JSONResponse({"object": "list", "data": [{"id": model, "object": "model", "owned_by": "journeyman"}]})

    async def health(request: Request) -> Response:
        return JSONResponse({"ok": True})

    return Starlette(
        routes=[
            Route("/health", health),
            Route("/v1/models", models),
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/messages", messages, methods=["POST"]),
            Route("/v1/messages/count_tokens", count, methods=["POST"]),
        ]
    )


async def _stream(turns: Turns, asked: Asked, style: str, request: Request) -> AsyncIterator[str]:
    """Signs of life while the turn is sampled; its events once it is recorded, because seen means recorded."""
    words = STYLES[style]
    turn: asyncio.Task[Answered] = asyncio.create_task(turns.answer(asked, style, request.is_disconnected))
    try:
        while not (await asyncio.wait([turn], timeout=PING_S))[0]:
            yield ": the turn is being sampled\n\n"
        try:
            answered = turn.result()
        except (JourneymanError, Gone) as error:
            told = json.dumps(words.error(status_of(error), str(error)))
            yield f"event: error\ndata: {told}\n\n" if style == "anthropic" else f"data: {told}\n\n"
            return
        for event in words.events(asked, answered, int(time.time())):
            yield event
    finally:
        turn.cancel()


def status_of(error: Exception) -> int:
    """HTTP status of a failure: the program's own, or ours."""
    if isinstance(error, InputError | ContextOverflow):
        return 400
    return 499 if isinstance(error, Gone) else 502


def _is_allowed(request: Request, token: str) -> bool:
    """The token, as either protocol sends it."""
    given: Any = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
    return hmac.compare_digest(given.encode(), token.encode())


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
