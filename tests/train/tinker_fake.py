"""A Tinker-compatible service for tests: the public wire over HTTP, and real training of a small model behind it.

It is strict where a service is: unknown losses, reused sequence numbers and unknown models are refused; a request that
comes twice with one number is done once; results are futures. Faults can be ordered: connections that break, answers
that stay out, work that fails.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import tarfile
import threading
import time
from pathlib import Path

import torch
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from journeyman.train.backends.hub import read_policy
from journeyman.train.backends.lora import inject, is_adapter, save_adapter
from journeyman.train.backends.spec import LoraSpec

LOSSES = ("cross_entropy", "importance_sampling")


class Refused(Exception):
    """An answer other than 200."""

    def __init__(self, status, detail):
        self.status, self.detail = status, detail


class Model:
    """One adapter with its optimizer; ``do`` is the service's engine."""

    def __init__(self, directory, rank, seed):
        self.spec = LoraSpec(rank=rank, seed=seed)
        self.model = read_policy(directory)
        inject(self.model, self.spec)
        self.trained = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        self.adam = torch.optim.AdamW(self.trained.values(), lr=0.0, weight_decay=0.0)
        self.saved, self.archives = {}, {}

    def forward(self, data, *, backward):
        if data["loss_fn"] not in LOSSES:
            raise Refused(422, f"loss_fn: {data['loss_fn']}")
        outputs, total = [], 0.0
        with torch.set_grad_enabled(backward):
            for datum in data["data"]:
                tokens = [t for chunk in datum["model_input"]["chunks"] for t in chunk["tokens"]]
                inputs = {name: torch.tensor(value["data"]) for name, value in datum["loss_fn_inputs"].items()}
                targets = inputs["target_tokens"]
                if len(tokens) != len(targets):
                    raise Refused(400, "target_tokens and model_input differ in length")
                logits = self.model(input_ids=torch.tensor([tokens])).logits[0].log_softmax(-1)
                logp = logits.gather(1, targets[:, None])[:, 0]
                if data["loss_fn"] == "cross_entropy":
                    loss = -(logp * inputs["weights"]).sum()
                else:
                    loss = -((logp - inputs["logprobs"]).exp() * inputs["advantages"]).sum()
                if backward:
                    loss.backward()
                total += float(loss.detach())
                values = {"data": logp.detach().tolist(), "dtype": "float32", "shape": [len(tokens)]}
                outputs.append({"logprobs": values})
        return {"loss_fn_output_type": "scalar", "loss_fn_outputs": outputs, "metrics": {"loss:sum": total}}

    def step(self, adam):
        norm = torch.nn.utils.clip_grad_norm_(self.trained.values(), 1.0)
        for group in self.adam.param_groups:
            group.update(lr=adam["learning_rate"], betas=(adam["beta1"], adam["beta2"]), eps=adam["eps"])
        self.adam.step()
        self.adam.zero_grad()
        return {"metrics": {"fake/grad_norm": float(norm)}}

    def save(self, name):
        self.saved[name] = (
            {n: p.detach().clone() for n, p in self.trained.items()},
            {k: {m: t.clone() for m, t in v.items()} for k, v in self.adam.state_dict()["state"].items()},
        )

    def load(self, name):
        weights, moments = self.saved[name]
        with torch.no_grad():
            for key, tensor in weights.items():
                self.trained[key].copy_(tensor)
        fresh = {key: {moment: t.clone() for moment, t in named.items()} for key, named in moments.items()}
        self.adam.load_state_dict(self.adam.state_dict() | {"state": fresh})

    def archive(self, folder):
        state = {name: p.detach() for name, p in self.model.named_parameters() if is_adapter(name)}
        save_adapter(state, self.spec, folder)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            for file in sorted(folder.iterdir()):
                tar.add(file, arcname=f"adapter/{file.name}")
        return buffer.getvalue()


class FakeTinker:
    """The service in a thread of this process.

    Attributes:
        url: its address.
        seen: (path, sequence number) of every training request that was really done.
        break_next: so many requests are done and their answers thrown away.
        busy_next: so many questions for a future are answered with 408.
        stuck: futures never end.
        fail_next: so many pieces of work fail.
        hostile: the archive of an adapter holds a member that leaves its folder.
    """

    def __init__(self, directory: Path, folder: Path):
        self.directory, self.folder = directory, folder
        self.seen, self.models, self.futures, self.numbered = [], {}, {}, {}
        self.break_next = self.busy_next = self.fail_next = 0
        self.stuck = self.hostile = False
        self._ids = itertools.count(1)
        verbs = ("create_model", "unload_model", "forward", "forward_backward", "optim_step", "save_weights")
        verbs += ("load_weights", "save_weights_for_sampler")
        routes = [Route(f"/api/v1/{verb}", self._verb(verb), methods=["POST"]) for verb in verbs]
        routes += [
            Route("/api/v1/healthz", self._health),
            Route("/api/v1/create_session", self._session, methods=["POST"]),
            Route("/api/v1/session_heartbeat", self._health, methods=["POST"]),
            Route("/api/v1/get_server_capabilities", self._capabilities),
            Route("/api/v1/retrieve_future", self._retrieve, methods=["POST"]),
            Route("/api/v1/training_runs/{model}/checkpoints/{name}/archive", self._archive),
            Route("/api/v1/download/{model}/{name}", self._download),
        ]
        config = uvicorn.Config(Starlette(routes=routes), host="127.0.0.1", port=0, log_level="critical", ws="none")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self):
        self._thread.start()
        until = time.monotonic() + 20
        while not self._server.started and time.monotonic() < until:
            time.sleep(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    def __exit__(self, *_):
        self._server.should_exit = True
        self._thread.join(20)

    def _verb(self, verb):
        async def answer(request: Request):
            body = await request.json()
            try:
                future = self._accept(verb, body)
            except Refused as error:
                return JSONResponse({"detail": error.detail}, error.status)
            if self.break_next and verb not in ("create_model", "unload_model"):
                self.break_next -= 1
                return Response(status_code=503)
            reply = {"future_id": str(future), "status": "pending", "request_id": str(future)}
            if verb == "create_model":
                reply |= {"model_id": self.futures[future]["model_id"], "base_model": body["base_model"]}
            return JSONResponse(reply)

        return answer

    def _accept(self, verb, body):
        """A request becomes a future once, however often it comes with its number."""
        if verb == "create_model":
            number = next(self._ids)
            model_id = f"model_{number}"
            self.models[model_id] = Model(self.directory, body["lora_config"]["rank"], body["lora_config"]["seed"])
            self.futures[number] = {"model_id": model_id, "base_model": body["base_model"]}
            return number
        if body["model_id"] not in self.models:
            raise Refused(404, "Model not found")
        key = (body["model_id"], body.get("seq_id"))
        content = {name: value for name, value in body.items() if name != "seq_id"}
        if body.get("seq_id") is not None and key in self.numbered:
            number, before = self.numbered[key]
            if before != (verb, content):
                raise Refused(409, "Training request sequence number was reused")
            return number
        number = next(self._ids)
        self.numbered[key] = (number, (verb, content))
        self.seen.append((verb, body.get("seq_id")))
        if self.fail_next:
            self.fail_next -= 1
            self.futures[number] = Refused(400, "out of memory")
        else:
            self.futures[number] = self._do(verb, self.models[body["model_id"]], body)
        return number

    def _do(self, verb, model, body):
        if verb == "forward":
            return model.forward(body["forward_input"], backward=False)
        if verb == "forward_backward":
            return model.forward(body["forward_backward_input"], backward=True)
        if verb == "optim_step":
            return model.step(body["adam_params"])
        if verb == "save_weights":
            model.save(body["path"])
            return {"path": f"tinker://{body['model_id']}/weights/{body['path']}", "type": verb}
        if verb == "load_weights":
            model.load(body["path"].rpartition("/")[2])
            return {"type": verb}
        if verb == "save_weights_for_sampler":
            name = body["path"]
            model.archives[name] = model.archive(self.folder / name)
            return {"path": f"tinker://{body['model_id']}/sampler_weights/{name}", "type": verb}
        del self.models[body["model_id"]]
        return {"model_id": body["model_id"], "status": "unloaded", "type": verb}

    async def _retrieve(self, request):
        future = self.futures.get(int((await request.json())["request_id"]))
        if future is None:
            return JSONResponse({"detail": "Future not found"}, 404)
        if self.stuck or self.busy_next:
            self.busy_next = max(0, self.busy_next - 1)
            await asyncio.sleep(0.02)
            return JSONResponse({"detail": "Timeout waiting for result"}, 408)
        if isinstance(future, Refused):
            return JSONResponse({"detail": future.detail}, future.status)
        return JSONResponse(future)

    async def _health(self, request):
        return JSONResponse({"status": "ok"})

    async def _session(self, request):
        body = await request.json()
        if not {"tags", "sdk_version"} <= body.keys():
            return JSONResponse({"detail": "missing"}, 422)
        return JSONResponse({"type": "create_session", "session_id": "session_1"})

    async def _capabilities(self, request):
        return JSONResponse({"supported_models": [{"model_name": "tiny"}], "supported_loss_fns": list(LOSSES)})

    async def _archive(self, request):
        model, name = request.path_params["model"], request.path_params["name"]
        if model not in self.models or name not in self.models[model].archives:
            return JSONResponse({"detail": "Checkpoint not found"}, 404)
        return RedirectResponse(f"/api/v1/download/{model}/{name}", 302)

    async def _download(self, request):
        model, name = request.path_params["model"], request.path_params["name"]
        data = self.models[model].archives[name]
        if self.hostile:
            buffer = io.BytesIO()
            with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
                info = tarfile.TarInfo("../outside")
                info.size = 4
                tar.addfile(info, io.BytesIO(b"data"))
            data = buffer.getvalue()
        return Response(data, media_type="application/octet-stream")
