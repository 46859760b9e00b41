"""One vLLM server over HTTP: a turn, its end by request, pauses, the four calls of a push, counters. All async."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from journeyman.engines.errors import EngineError
from journeyman.engines.protocol import PauseMode, Sampling
from journeyman.engines.vllm import routes, wire
from journeyman.engines.vllm.wire import Answer
from journeyman.errors import EnvironmentMissing

if TYPE_CHECKING:
    import httpx

HEALTH_S = 5.0
CONTROL_S = 30.0
"""Seconds that a call which computes nothing may take, where the caller sets no limit of its own."""


class Unreachable(EngineError):
    """The server did not answer, or broke while it did; another may."""


class Replica:
    """A server and what is known of it.

    Attributes:
        url: its address.
        routes: what it offers; set by ``connect``.
        model: name it serves the model under.
        max_len: tokens of context of one request.
        alive: answers, as far as known.
        labelled: its weights were given a label of ours, so that another one is somebody else's.
        tells_experts: it reports routed experts, as its answers show.
        served: version of the weights it serves; None once a push failed and could not be taken back: it gets no turn.
    """

    routes: routes.Routes
    model: str
    max_len: int

    def __init__(self, url: str, *, api_key: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client: httpx.AsyncClient | None = None
        self.alive = True
        self.served: int | None = None
        self.labelled = False
        self.initialised = False
        self.tells_experts = False

    async def connect(self, deadline_s: float) -> None:
        """Ask for routes, model and context length.

        Raises:
            EnvironmentMissing: nothing answers there, or what answers cannot generate from token ids.
        """
        import httpx

        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        self._client = httpx.AsyncClient(
            base_url=self.url, headers=self._headers, limits=limits, timeout=None, trust_env=False
        )
        try:
            listed = await self.get("/openapi.json", deadline_s)
            self.routes = routes.routes_of(listed.get("paths", {}), self.url)
            (served, *_) = (await self.get(routes.MODELS, deadline_s))["data"]
            self.model, self.max_len = served["id"], int(served["max_model_len"])
        except (EngineError, KeyError, ValueError, TypeError) as error:
            raise EnvironmentMissing(
                f"{self.url} does not answer as a vLLM server does ({error}); is it up, and is this its address?"
            ) from error

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def send(
        self,
        method: str,
        path: str,
        deadline_s: float,
        *,
        body: Any = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """One call, to its end or its deadline.

        Raises:
            Unreachable: no answer, none in time, or a 5xx. EngineError: the server refused (4xx); its words are kept.
        """
        import httpx

        if self._client is None:
            raise EngineError(f"{self.url} was not connected, or is closed")
        try:
            async with asyncio.timeout(deadline_s):
                reply = await self._client.request(method, path, json=body, params=params, headers=headers)
        except TimeoutError as error:
            raise Unreachable(f"{self.url}{path} did not answer within {deadline_s:g} s") from error
        except httpx.HTTPError as error:
            raise Unreachable(f"{self.url}{path}: {type(error).__name__} {error}") from error
        if reply.status_code >= 400:
            kind = Unreachable if reply.status_code >= 500 else EngineError
            raise kind(f"{self.url}{path} answered {reply.status_code}: {reply.text[:500]}")
        return reply

    async def get(self, path: str, deadline_s: float = CONTROL_S) -> Any:
        """JSON of a GET."""
        return (await self.send("GET", path, deadline_s)).json()

    async def post(self, path: str, deadline_s: float = CONTROL_S, **rest: Any) -> httpx.Response:
        """A POST; ``rest`` as for ``send``."""
        return await self.send("POST", path, deadline_s, **rest)

    async def turn(
        self,
        ids: Sequence[int],
        sampling: Sampling,
        seed: int,
        salt: str | None,
        request_id: str,
        deadline_s: float,
        unlabelled: int,
        experts_from: int = 0,
    ) -> Answer:
        """Sample one turn after ``ids``; ``unlabelled`` is the version of weights that carry no label of ours.

        Where the server tells experts, it tells them from ``experts_from`` on, of the prompt none when not asked.
        """
        start = (experts_from if sampling.routed_experts else len(ids)) if self.tells_experts else None
        if self.routes.generate == "tokens":
            body = wire.tokens_body(self.model, ids, sampling, seed, salt, request_id, start)
            reply = await self.post(routes.GENERATE, deadline_s, body=body)
            try:
                answer = wire.parse_tokens(reply.json(), sampling.top_logprobs, None if self.labelled else unlabelled)
            except wire.ForeignWeights as error:
                self.served = None
                raise Unreachable(f"{self.url}: {error}; it gets no turn before the next push") from error
        else:
            body = wire.completions_body(self.model, ids, sampling, seed, salt, start)
            headers = {"X-Request-Id": request_id}
            reply = await self.post(routes.COMPLETIONS, deadline_s, body=body, headers=headers)
            answer = wire.parse_completions(reply.json(), sampling.top_logprobs)
        self.tells_experts = self.tells_experts or answer.routed_experts is not None
        return answer

    async def abort(self, request_id: str, deadline_s: float = CONTROL_S) -> None:
        """End a request; it answers with what it has. Unknown ones are ignored."""
        if self.routes.abort is None:
            raise EngineError(f"{self.url} has no route to end a request: {routes.ABORT}")
        full = f"generate-tokens-{request_id}" if self.routes.generate == "tokens" else f"cmpl-{request_id}-0"
        await self.post(self.routes.abort, deadline_s, body={"request_ids": [full]})

    async def pause(self, mode: PauseMode, *, clear_cache: bool, deadline_s: float) -> None:
        """Both parameters are always sent: the server's own defaults are ``abort`` and true."""
        params = {"mode": mode, "clear_cache": "true" if clear_cache else "false"}
        await self.post(routes.PAUSE, deadline_s, params=params)

    async def resume(self, deadline_s: float = CONTROL_S) -> None:
        await self.post(routes.RESUME, deadline_s)

    async def label(self) -> int | None:
        """Version the server reports; None for a label that is not ours."""
        return wire.version_of((await self.get(routes.WEIGHT_INFO))["weight_version"])

    async def load(self, path: str, sha256: str, version: int, deadline_s: float) -> None:
        """start, update, finish: after it the server serves the file under ``version``."""
        if not self.initialised:
            await self.post(routes.INIT, deadline_s, body={"init_info": {}})
            self.initialised = True
        await self.post(routes.START, deadline_s)
        await self.post(routes.UPDATE, deadline_s, body={"update_info": {"path": path, "sha256": sha256}})
        await self.post(routes.FINISH, deadline_s, body={"weight_version": wire.label_of(version)})
        self.labelled = True

    async def healthy(self) -> bool:
        """Whether ``/health`` answers now; kept in ``alive``."""
        for _ in range(2):  # a connection kept open by a server that broke an answer off fails once
            try:
                await self.send("GET", routes.HEALTH, HEALTH_S)
                self.alive = True
                break
            except EngineError:
                self.alive = self.initialised = False
        return self.alive

    async def metrics(self) -> dict[str, float]:
        """Sum over engines of every sample of ``/metrics`` by name, labels dropped, and the cache's size in tokens."""
        return read_metrics((await self.send("GET", routes.METRICS, CONTROL_S)).text)


def read_metrics(text: str) -> dict[str, float]:
    """Read the Prometheus text format; ``kv_capacity`` is the cache's size in tokens where the server tells."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        name, _, rest = line.partition("{")
        if not line.startswith("vllm:") or not rest:
            continue
        labels, _, value = rest.rpartition("} ")
        found[name] = found.get(name, 0.0) + float(value)
        if name == "vllm:cache_config_info":
            pairs = dict(pair.split("=", 1) for pair in labels.replace('"', "").split(",") if "=" in pair)
            size = pairs.get("num_gpu_blocks", ""), pairs.get("block_size", "")
            if all(part.isdecimal() for part in size):
                found["kv_capacity"] = found.get("kv_capacity", 0.0) + int(size[0]) * int(size[1])
    return found
