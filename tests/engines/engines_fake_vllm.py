"""vLLM's routes on a real socket in front of a small real model: token by token, with its prefix cache and its traps.

What matters to an adapter is what the real server does: requests are continued one token at a time and may be paused,
aborted or given new weights in between; a finished request leaves its keys and values in a cache that survives an
update; spans and counters are reported as vLLM 0.32 does. Faults can be set for any route.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import hashlib
import inspect
import io
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import uvicorn
from safetensors.torch import load_file
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from transformers import DynamicCache

Fault = Literal["500", "hang", "broken"]
PARAMS = {
    *("max_tokens", "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty"),
    *("frequency_penalty", "seed", "stop_token_ids", "ignore_eos", "logprobs", "detokenize"),
    "routed_experts_prompt_start",
}
EXPERTS, LAYERS, PER_TOKEN = 300, 3, 2
"""A mixture as the server of ``tells_experts`` reports it; ids above 255 need two bytes."""


def routing(ids: list[int]) -> np.ndarray:
    """Experts of each token, uint16 [tokens, LAYERS, PER_TOKEN]: made from id and position, as no other token's are."""
    at = np.arange(len(ids))[:, None] * 7 + np.asarray(ids)[:, None]
    return ((at[:, :, None] + np.arange(LAYERS * PER_TOKEN)) % EXPERTS).reshape(-1, LAYERS, PER_TOKEN).astype(np.uint16)


class Row:
    """One request: its ids, its keys and values, and where it stands."""

    def __init__(self, name: str, prompt: list[int], params: dict[str, Any], salt: str | None) -> None:
        self.name, self.prompt, self.params, self.salt = name, prompt, params, salt
        self.cache: Any = None
        self.fed = self.cached = 0
        self.sampled: list[int] = []
        self.logprobs: list[float] = []
        self.top: list[list[tuple[int, float]]] = []
        self.labels: list[str] = []
        self.generator = torch.Generator().manual_seed(params["seed"])
        self.ended = asyncio.Event()
        self.reason = ""

    def experts(self) -> str | None:
        """``routed_experts`` as vLLM writes it: rows of what was fed, from ``routed_experts_prompt_start`` on."""
        fed = (self.prompt + self.sampled)[:-1]
        start = self.params.get("routed_experts_prompt_start", 0)
        sink = io.BytesIO()
        np.save(sink, routing(fed)[start:])
        return base64.b64encode(sink.getvalue()).decode() if self.sampled else None

    def end(self, reason: str) -> None:
        self.reason = self.reason or reason
        self.ended.set()

    @property
    def spans(self) -> list[dict[str, Any]]:
        spans: list[dict[str, Any]] = []
        for at, label in enumerate(self.labels):
            if spans and spans[-1]["version"] == label:
                spans[-1]["end"] = at + 1
            else:
                spans.append({"version": label, "start": at, "end": at + 1})
        return spans


class FakeVllm:
    """The server; ``faults`` by path, ``missing`` paths, ``seen`` requests, ``stale_head`` plants trap T1,
    ``tells_experts`` reports those of a mixture.

    Args:
        model: a transformers causal language model; a copy is served.
        token_s: seconds between tokens, so that a test can act in the middle of a turn.
    """

    def __init__(self, model: Any, *, max_len: int = 64, token_s: float = 0.0, missing: set[str] | None = None) -> None:
        self.model = copy.deepcopy(model).eval()
        self.head = copy.deepcopy(model.get_output_embeddings()).eval()
        self.max_len, self.token_s, self.missing = max_len, token_s, missing or set()
        known = inspect.signature(self.model.model.forward).parameters  # renamed in transformers 5.2x
        self.cache_word = "cache" if "cache" in known else "past_key_values"
        self.faults: dict[str, Fault] = {}
        self.seen: list[tuple[str, dict[str, str], Any]] = []
        self.stale_head = self.tells_experts = False
        self.label, self.updating, self.pause_mode = "default", False, ""
        self.rows: list[Row] = []
        self.prefixes: list[tuple[str | None, list[int], Any]] = []
        self.count = {"prompt": 0, "hits": 0, "prefill_s": 0.0}
        self.url = ""

    def paths(self) -> dict[str, tuple[str, Callable[[Request], Any]]]:
        """Every route: method and handler."""
        return {
            "/health": ("GET", self.healthy),
            "/v1/models": ("GET", self.models),
            "/metrics": ("GET", self.metrics),
            "/inference/v1/generate": ("POST", self.generate),
            "/v1/completions": ("POST", self.completions),
            "/inference/v1/abort_requests": ("POST", self.abort),
            "/pause": ("POST", self.pause),
            "/resume": ("POST", self.resume),
            "/is_paused": ("GET", self.is_paused),
            "/init_weight_transfer_engine": ("POST", self.nothing),
            "/start_weight_update": ("POST", self.start),
            "/update_weights": ("POST", self.update),
            "/finish_weight_update": ("POST", self.finish),
            "/weight_info": ("GET", self.weight_info),
            "/update_weight_version": ("POST", self.relabel),
        }

    def app(self) -> Starlette:
        table = {path: row for path, row in self.paths().items() if path not in self.missing}

        async def openapi(request: Request) -> Response:
            return JSONResponse({"paths": {path: {} for path in table}})

        def guarded(path: str, handler: Callable[[Request], Any]) -> Callable[[Request], Any]:
            async def call(request: Request) -> Response:
                body = await request.body()
                read = json.loads(body) if body else None
                self.seen.append((path, dict(request.query_params), read))
                fault = self.faults.get(path)
                if fault == "hang":
                    await asyncio.sleep(3600)
                if fault == "500":
                    return PlainTextResponse("planted", 500)
                if fault == "broken":
                    return JSONResponse({"choices": [{"index": 0, "token_ids": [5, 6], "finish_reason": "length"}]})
                found: Response = await handler(request)
                return found

            return call

        routes = [Route(path, guarded(path, row[1]), methods=[row[0]]) for path, row in table.items()]
        return Starlette(routes=[Route("/openapi.json", openapi), *routes])

    async def nothing(self, request: Request) -> Response:
        return JSONResponse({})

    healthy = nothing

    async def models(self, request: Request) -> Response:
        return JSONResponse({"data": [{"id": "policy", "max_model_len": self.max_len}]})

    async def metrics(self, request: Request) -> Response:
        labels = '{engine="0"}'
        lines = {
            "vllm:prompt_tokens_total": self.count["prompt"],
            "vllm:prefix_cache_hits_total": self.count["hits"],
            "vllm:request_prefill_time_seconds_sum": self.count["prefill_s"],
            "vllm:kv_cache_usage_perc": len(self.rows) / 64,
            "vllm:num_preemptions_total": 0,
        }
        info = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="256"} 1.0'
        return PlainTextResponse("\n".join([*(f"{name}{labels} {value}" for name, value in lines.items()), info]))

    async def generate(self, request: Request) -> Response:
        body = await request.json()
        if unknown := body["sampling_params"].keys() - PARAMS:
            return PlainTextResponse(f"unknown sampling parameters {unknown}", 400)
        name = f"generate-tokens-{body['request_id']}"
        row = await self.run(request, Row(name, body["token_ids"], body["sampling_params"], body.get("cache_salt")))
        content = [
            {"token_id": t, "logprob": p, "top_logprobs": [{"token_id": i, "logprob": v} for i, v in top]}
            for t, p, top in zip(row.sampled, row.logprobs, row.top, strict=True)
        ]
        return self.answer(row, {"logprobs": {"content": content}, "weight_versions": row.spans or None})

    async def completions(self, request: Request) -> Response:
        body = await request.json()
        name = f"cmpl-{request.headers['x-request-id']}-0"
        row = await self.run(request, Row(name, body["prompt"], body, body.get("cache_salt")))
        top = [{f"token_id:{i}": v for i, v in entries} for entries in row.top]
        return self.answer(row, {"text": "", "logprobs": {"token_logprobs": row.logprobs, "top_logprobs": top}})

    def answer(self, row: Row, rest: dict[str, Any]) -> Response:
        usage = {"prompt_tokens": len(row.prompt), "prompt_tokens_details": {"cached_tokens": row.cached}}
        choice = {"index": 0, "token_ids": row.sampled, "finish_reason": row.reason, **rest}
        if self.tells_experts:
            choice["routed_experts"] = row.experts()
        return JSONResponse({"choices": [choice], "usage": usage})

    async def run(self, request: Request, row: Row) -> Row:
        """Wait for a row's end; a client that leaves ends it."""
        self.rows.append(row)
        try:
            while not row.ended.is_set():
                try:
                    await asyncio.wait_for(row.ended.wait(), 0.05)
                except TimeoutError:
                    if await request.is_disconnected():
                        row.end("abort")
        finally:
            self.rows.remove(row)
        if row.cache is not None:
            self.prefixes.append((row.salt, (row.prompt + row.sampled)[: row.fed], row.cache))
        return row

    async def sample_forever(self) -> None:
        while True:
            await asyncio.sleep(self.token_s)
            for row in list(self.rows):
                # New rows wait during any pause; rows that run go on in ``wait`` only.
                is_free = not self.pause_mode or (self.pause_mode == "wait" and row.sampled)
                if is_free and not row.ended.is_set():
                    try:
                        self.advance(row)
                    except Exception as error:  # the test reads it in the adapter's error
                        row.end(f"{type(error).__name__}: {error}")

    @torch.inference_mode()
    def advance(self, row: Row) -> None:
        """One token: feed what is not in the cache, sample, report."""
        started = time.monotonic()
        if row.cache is None:
            row.cache = DynamicCache()  # the model extends it in place
            self.take_prefix(row)
        context = row.prompt + row.sampled
        out = self.model.model(torch.tensor([context[row.fed :]]), use_cache=True, **{self.cache_word: row.cache})
        row.fed = len(context)
        if not row.sampled:
            self.count["prefill_s"] += time.monotonic() - started
        logits = self.head(out.last_hidden_state[0, -1]).double()
        temperature = row.params["temperature"]
        table = torch.log_softmax(logits / (temperature or 1.0), -1)
        if temperature:
            token = int(torch.multinomial(table.exp(), 1, generator=row.generator))
        else:
            token = int(table.argmax())
        row.sampled.append(token)
        row.logprobs.append(float(table[token]))
        best = torch.topk(table, max(1, row.params["logprobs"]))
        row.top.append([(token, float(table[token])), *zip(best.indices.tolist(), best.values.tolist(), strict=True)])
        row.labels.append(self.label)
        if token in row.params["stop_token_ids"]:
            row.end("stop")
        elif len(row.sampled) == row.params["max_tokens"]:
            row.end("length")

    def take_prefix(self, row: Row) -> None:
        """The longest prefix that a finished request left under the same salt, whatever weights computed it."""
        self.count["prompt"] += len(row.prompt)
        best, found, extra = 0, None, 0
        for salt, ids, cache in self.prefixes:
            length = next((n for n, (a, b) in enumerate(zip(ids, row.prompt, strict=False)) if a != b), len(ids))
            length = min(length, len(row.prompt) - 1)
            if salt == row.salt and length > best:
                best, found, extra = length, cache, len(ids) - length
        if found is not None:
            row.cache = copy.deepcopy(found)
            if extra:
                row.cache.crop(-extra)
            row.fed = row.cached = best
            self.count["hits"] += best

    async def abort(self, request: Request) -> Response:
        names = (await request.json())["request_ids"]
        for row in self.rows:
            if row.name in names:
                row.end("abort")
        return Response()

    async def pause(self, request: Request) -> Response:
        self.pause_mode = request.query_params.get("mode", "abort")
        if request.query_params.get("clear_cache", "true") == "true":
            self.prefixes.clear()
            for row in self.rows:
                row.cache, row.fed = None, 0
        if self.pause_mode == "abort":
            for row in self.rows:
                row.end("abort")
        while self.pause_mode == "wait" and any(row.sampled for row in self.rows):
            await asyncio.sleep(0.005)
        return JSONResponse({"status": "paused"})

    async def resume(self, request: Request) -> Response:
        self.pause_mode = ""
        return JSONResponse({"status": "resumed"})

    async def is_paused(self, request: Request) -> Response:
        return JSONResponse({"is_paused": bool(self.pause_mode)})

    async def start(self, request: Request) -> Response:
        if self.updating:
            return PlainTextResponse("an update is active", 500)
        self.updating = True
        return JSONResponse({})

    async def update(self, request: Request) -> Response:
        info = (await request.json())["update_info"]
        if not self.updating:
            return PlainTextResponse("no update is active", 500)
        data = Path(info["path"]).read_bytes()
        if hashlib.sha256(data).hexdigest() != info["sha256"]:
            self.updating = False
            return PlainTextResponse("another digest", 500)
        state = load_file(info["path"])
        head = state.pop("lm_head.weight", None)
        self.model.load_state_dict(state, strict=False)
        if head is not None and not self.stale_head:
            self.head.load_state_dict({"weight": head})
        return JSONResponse({})

    async def finish(self, request: Request) -> Response:
        if not self.updating:
            return PlainTextResponse("no update is active", 500)
        self.updating, self.label = False, (await request.json())["weight_version"] or self.label
        return JSONResponse({})

    async def weight_info(self, request: Request) -> Response:
        return JSONResponse({"weight_version": self.label})

    async def relabel(self, request: Request) -> Response:
        self.label = (await request.json())["new_version"]
        return JSONResponse({})


@contextmanager
def serving(fake: FakeVllm) -> Iterator[FakeVllm]:
    """Serve on a free port of loopback until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fake.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(fake.app(), log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)

        async def main() -> None:
            sampler = asyncio.create_task(fake.sample_forever())
            await server.serve(sockets=[listener])
            sampler.cancel()

        thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield fake
        finally:
            server.should_exit = True
            thread.join(5)
