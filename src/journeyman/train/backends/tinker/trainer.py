"""The Trainer verbs on a Tinker-compatible service.

A loss needs the logprobs of the present weights: one ``forward`` brings them, the loss and its derivative with respect
to each logprob are computed here, and a ``forward_backward`` with ``cross_entropy`` and the weights -dL/dlogp adds
exactly that gradient there (the service's cross entropy is the sum of -logp x weight).
"""

from __future__ import annotations

import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import torch
from numpy.typing import NDArray

from journeyman import durable
from journeyman.engines.embedded.adapter import read_adapter
from journeyman.engines.embedded.checkpoint import read_state
from journeyman.errors import EnvironmentMissing, InputError
from journeyman.train.backends.batch import NOTHING, add, loss_of
from journeyman.train.backends.spec import BackendSpec, LoraSpec
from journeyman.train.backends.tinker.client import Client, ServiceRefused
from journeyman.train.checkpoint import PREFIX, STATE_FILE
from journeyman.train.losses import PolicyLoss
from journeyman.train.optimizer import BETAS, EPSILON, OptimizerSpec
from journeyman.train.packing import grouped_batches
from journeyman.train.protocol import ForwardMetrics, TrainRow, WeightReceiver
from journeyman.train.transfer.manifest import TransferFailed

TOKENS_PER_REQUEST = 100_000
"""Tokens of one request: about 5 MB of JSON, what a service takes."""


def open_trainer(spec: BackendSpec, model: Path, optimizer: OptimizerSpec) -> TinkerTrainer:
    """As ``table.make_trainer``; ``model`` is the local copy of the weights that the service starts from."""
    return TinkerTrainer(spec, model, optimizer)


class TinkerTrainer:
    """One adapter on a service.

    Args:
        spec: ``service``, ``lora`` and ``deadline_s``.
        model: directory with the base model's weights, for ``push_weights``.
        optimizer: ``lr``; every tensor has the same rate there.

    Attributes:
        steps: optimizer steps done.
        tokens_forwarded: tokens of all rows that went through a forward so far, on the service.

    Raises:
        EnvironmentMissing: no address, or nothing answers. ServiceRefused: it does not serve that model.
    """

    def __init__(self, spec: BackendSpec, model: Path, optimizer: OptimizerSpec) -> None:
        service = spec.service
        url = service.url or os.environ.get("TINKER_BASE_URL", "")
        if not url:
            raise EnvironmentMissing("backend.service.url is empty and TINKER_BASE_URL is not set")
        self.steps = self.tokens_forwarded = 0
        self._base, self._lr = model, optimizer.lr
        self._client = Client(url, os.environ.get(service.api_key_env, ""), spec.deadline_s)
        self._sequence = 0
        lora = spec.lora or LoraSpec()
        name = service.base_model or model.name
        self._check_served(name)
        body = {
            "session_id": self._client.session_id,
            "model_seq_id": 0,
            "base_model": name,
            "lora_config": {"rank": lora.rank, "seed": lora.seed},
            "type": "create_model",
        }
        created = self._client.future("/create_model", body)
        self._model_id = str(created["model_id"])

    def forward_backward(
        self, rows: Sequence[TrainRow], weights: Sequence[NDArray[np.float64]], loss: PolicyLoss
    ) -> ForwardMetrics:
        """As ``Trainer.forward_backward``: two forwards per token, one of them with the backward."""
        if "topk_logp_new" in loss.needs:
            raise InputError("loss.name", f"{loss.name} needs logprobs of several ids a place; a service gives one")
        total = NOTHING
        for part in self._requests(rows):
            chosen = [rows[i] for i in part]
            logp = torch.from_numpy(np.concatenate(self._forward(chosen))).requires_grad_()
            value, metrics = loss_of(chosen, [weights[i] for i in part], loss, logp)
            value.backward()  # type: ignore[no-untyped-call]
            assert logp.grad is not None
            self._backward(chosen, -logp.grad.numpy())
            total = add(total, metrics)
        return total

    def forward_logprobs(self, rows: Sequence[TrainRow]) -> list[NDArray[np.float32]]:
        """As ``Trainer.forward_logprobs``."""
        results = [np.zeros(len(row.ids), np.float32) for row in rows]
        for part in self._requests(rows):
            for i, values in zip(part, self._forward([rows[i] for i in part]), strict=True):
                results[i][rows[i].mask.astype(bool)] = values
        return results

    def optim_step(self) -> float:
        """As ``Trainer.optim_step``. The service clips as it likes; 0 where it does not tell the norm."""
        adam = {
            "learning_rate": self._lr,
            "beta1": BETAS[0],
            "beta2": BETAS[1],
            "eps": EPSILON,
            "weight_decay": 0.0,
        }
        answer = self._train("/optim_step", {"adam_params": adam, "type": "optim_step"})
        self.steps += 1
        metrics: Mapping[str, float] = answer.get("metrics") or {}
        return next((float(value) for name, value in metrics.items() if name.endswith("grad_norm")), 0.0)

    def save_state(self, root: Path, extra: dict[str, Any] | None = None) -> Path:
        """As ``Trainer.save_state``: the service keeps weights and moments, the directory says where."""
        name = f"step{self.steps:08d}-{uuid4().hex[:8]}"
        answer = self._train("/save_weights", {"path": name, "type": "save_weights"})
        final = root / f"{PREFIX}{self.steps:08d}"
        document = {"step": self.steps, "service_path": answer["path"], "extra": extra or {}}
        durable.write_json(final / STATE_FILE, document)
        return final

    def load_state(self, path: Path) -> dict[str, Any]:
        """As ``Trainer.load_state``."""
        try:
            state = json.loads((path / STATE_FILE).read_text(encoding="utf-8"))
            steps, place, extra = int(state["step"]), str(state["service_path"]), dict(state["extra"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(str(path / STATE_FILE), f"names no state on a service: {error!r}") from error
        self._train("/load_weights", {"path": place, "type": "load_weights"})
        self.steps = steps
        return extra

    def push_weights(self, engine: WeightReceiver, version: int) -> None:
        """As ``Trainer.push_weights``: the adapter is fetched and merged into the local base weights."""
        name = f"v{version}-{uuid4().hex[:8]}"
        answer = self._train("/save_weights_for_sampler", {"path": name, "type": "save_weights_for_sampler"})
        checkpoint = str(answer.get("path") or name).rpartition("/")[2]
        archive = self._client.download(f"/training_runs/{self._model_id}/checkpoints/{checkpoint}/archive")
        with tempfile.TemporaryDirectory(prefix="journeyman-adapter-") as folder:
            adapter = read_adapter(_unpacked(archive, Path(folder)))
        state = read_state(self._base)
        lacking = sorted(adapter.pairs.keys() - state.keys())
        if lacking:
            raise TransferFailed(f"the service's adapter changes {lacking[0]}, which {self._base} lacks")
        for target in adapter.pairs:
            delta = adapter.delta(target)
            if delta is not None:
                state[target] = state[target] + delta.to(state[target].dtype)
        engine.update_weights(state, version)

    def close(self) -> None:
        """As ``Trainer.close``: the service forgets the model."""
        if self._client is not None and self._model_id:
            model_id, self._model_id = self._model_id, ""
            try:
                self._client.post("/unload_model", {"model_id": model_id, "type": "unload_model"})
            except ServiceRefused:
                pass  # it may have forgotten by itself
            finally:
                self._client.close()

    def _check_served(self, name: str) -> None:
        served = [str(m.get("model_name")) for m in self._client.get("/get_server_capabilities")["supported_models"]]
        if served and name not in served:
            self._client.close()
            raise InputError("backend.service.base_model", f"got {name!r}", allowed=", ".join(served))

    def _train(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """A request about the model, numbered: sent twice, it is done once."""
        self._sequence += 1
        return self._client.future(path, {"model_id": self._model_id, "seq_id": self._sequence, **body})

    def _forward(self, rows: Sequence[TrainRow]) -> list[NDArray[np.float32]]:
        """Per row, float32 [its trained tokens]."""
        self.tokens_forwarded += sum(len(row.ids) for row in rows)
        data = [_datum(row, np.zeros(len(row.ids) - 1)) for row in rows]
        answer = self._train("/forward", {"forward_input": {"data": data, "loss_fn": "cross_entropy"}})
        outputs = answer["loss_fn_outputs"]
        if len(outputs) != len(rows):
            raise ServiceRefused("/forward", 200, f"{len(outputs)} answers for {len(rows)} rows")
        return [
            np.asarray(_values(output["logprobs"]), np.float32)[row.mask[1:].astype(bool)]
            for row, output in zip(rows, outputs, strict=True)
        ]

    def _backward(self, rows: Sequence[TrainRow], weights: NDArray[np.floating]) -> None:
        self.tokens_forwarded += sum(len(row.ids) for row in rows)
        data, at = [], 0
        for row in rows:
            column = np.zeros(len(row.ids))
            count = int(np.count_nonzero(row.mask))
            column[row.mask.astype(bool)] = weights[at : at + count]
            data.append(_datum(row, column[1:]))
            at += count
        self._train("/forward_backward", {"forward_backward_input": {"data": data, "loss_fn": "cross_entropy"}})

    def _requests(self, rows: Sequence[TrainRow]) -> Iterator[list[int]]:
        lengths, groups = [len(row.ids) for row in rows], [row.prompt for row in rows]
        yield from grouped_batches(lengths, groups, TOKENS_PER_REQUEST)


def _datum(row: TrainRow, weights: NDArray[np.floating]) -> dict[str, Any]:
    """A row on the wire: ids but the last, ids but the first as targets, a weight for each target."""
    ids = row.ids.tolist()
    return {
        "model_input": {"chunks": [{"type": "encoded_text", "tokens": ids[:-1]}]},
        "loss_fn_inputs": {
            "target_tokens": {"data": ids[1:], "dtype": "int64", "shape": [len(ids) - 1]},
            "weights": {"data": [float(w) for w in weights], "dtype": "float32", "shape": [len(ids) - 1]},
        },
    }


def _values(tensor: Any) -> list[float]:
    values: list[float] = tensor["data"] if isinstance(tensor, dict) else tensor
    return values


def _unpacked(archive: bytes, folder: Path) -> Path:
    """The folder of a tar archive that holds an adapter; members that leave the folder are refused."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
    except (tarfile.TarError, OSError, EOFError) as error:
        raise TransferFailed(f"the service's archive of an adapter cannot be unpacked: {error}") from error
    found = sorted(folder.rglob("adapter_config.json"))
    if not found:
        raise TransferFailed("the service's archive holds no adapter")
    return found[0].parent
