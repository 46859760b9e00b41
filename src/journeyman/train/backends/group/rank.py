"""One process of a group: ``python -m journeyman.train.backends.group.rank`` under torchrun, Ray or a cluster's job.

It connects to the front, opens its part of the model, and does verbs until the connection ends. A verb that fails is
answered with its error; whether the group can go on is the front's decision.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from journeyman.errors import InputError
from journeyman.train.backends.group.processes import ADDRESS, TOKEN, connect
from journeyman.train.backends.group.wire import GroupLost, Message, receive, send, unpack_loss, unpack_rows
from journeyman.train.backends.spec import BackendSpec
from journeyman.train.losses import PolicyLoss
from journeyman.train.optimizer import GradientNotFinite, OptimizerSpec
from journeyman.train.protocol import ForwardMetrics, TrainRow

Batch = tuple[list[TrainRow], list[NDArray[np.float64]]]
"""Rows of a micro-batch and their token weights; no rows: meet the other ranks with a row that weighs nothing."""


class Work(Protocol):
    """What one rank computes; all ranks are in the same verb at the same time.

    Attributes:
        reports: this rank's figures and logprobs count (one of those that hold the same rows).
    """

    reports: bool

    def forward_backward(self, batches: Sequence[Batch], loss: PolicyLoss) -> ForwardMetrics:
        """Add the gradient of this rank's micro-batches; their figures."""
        ...

    def forward_logprobs(self, batches: Sequence[Batch]) -> NDArray[np.float32]:
        """float32 [trained tokens of this rank's rows]."""
        ...

    def optim_step(self) -> float:
        """Clip by the norm over all ranks, step, clear; the norm before clipping."""
        ...

    def save(self, folder: Path) -> None:
        """Write this rank's part of weights and moments below ``folder``."""
        ...

    def load(self, folder: Path) -> None:
        """Read this rank's part, whatever number of ranks wrote it."""
        ...

    def gather(self, path: Path) -> None:
        """Bring the whole weights together and, on rank 0, write them to ``path`` as safetensors under disk names."""
        ...


WORKS = {
    "fsdp2": "journeyman.train.backends.group.fsdp2:Fsdp2Work",
    "megatron": "journeyman.train.backends.group.megatron.work:MegatronWork",
}
"""What a rank of each back-end runs: ``module:class`` called with (spec, model directory, optimizer)."""


def main() -> int:
    """Serve the front until it goes. Returns the exit code."""
    rank = int(os.environ["RANK"])
    connection = connect(os.environ[ADDRESS])
    send(connection, Message({"token": os.environ[TOKEN], "rank": rank}))
    work: Work | None = None
    while True:
        try:
            message = receive(connection)
        except GroupLost:  # the front is gone, and so is the reason to be here
            return 0
        try:
            if message.data["verb"] == "open":
                work = _open(message.data)
                reply = Message({})
            else:
                assert work is not None
                reply = VERBS[message.data["verb"]](work, message)
        except Exception as error:
            reply = Message({"error": describe(error)})
        send(connection, reply)


def _open(data: dict[str, Any]) -> Work:
    import torch
    import torch.distributed as dist

    spec = BackendSpec.model_validate(data["spec"])
    if spec.train_threads is not None:
        torch.set_num_threads(spec.train_threads)
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if spec.device == "cuda":
        torch.cuda.set_device(local)
    backend = "cpu:gloo,cuda:nccl" if spec.device == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=timedelta(seconds=spec.deadline_s))
    module, _, name = WORKS[spec.name].partition(":")
    work: Work = getattr(import_module(module), name)(spec, Path(data["model"]), OptimizerSpec(**data["optimizer"]))
    return work


def _forward_backward(work: Work, message: Message) -> Message:
    metrics = work.forward_backward(unpack_rows(message), unpack_loss(message.data["loss"]))
    if not work.reports:
        return Message({})
    figures = {
        "loss": metrics.loss,
        "tokens": metrics.tokens,
        "neg_logprob_sum": metrics.neg_logprob_sum,
        "counts": metrics.counts,
    }
    return Message({"metrics": figures}, {"abs_gaps": metrics.abs_gaps})


def _forward_logprobs(work: Work, message: Message) -> Message:
    logprobs = work.forward_logprobs(unpack_rows(message))
    return Message({}, {"logprobs": logprobs} if work.reports else {})


def _optim_step(work: Work, message: Message) -> Message:
    return Message({"norm": work.optim_step()})


def _on_path(verb: str) -> Callable[[Work, Message], Message]:
    def run(work: Work, message: Message) -> Message:
        getattr(work, verb)(Path(message.data["path"]))
        return Message({})

    return run


VERBS: dict[str, Callable[[Work, Message], Message]] = {
    "forward_backward": _forward_backward,
    "forward_logprobs": _forward_logprobs,
    "optim_step": _optim_step,
    "save": _on_path("save"),
    "load": _on_path("load"),
    "gather": _on_path("gather"),
}


def describe(error: Exception) -> dict[str, Any]:
    """An error as JSON that the front makes an error of the same type from."""
    if isinstance(error, InputError):
        return {
            "type": "input",
            "where": error.where,
            "problem": error.problem,
            "allowed": error.allowed,
            "hint": error.hint,
        }
    if isinstance(error, GradientNotFinite):
        return {"type": "gradient", "norm": repr(error.norm)}
    missing = isinstance(error, ImportError)
    text = f"{error}" if missing else "".join(traceback.format_exception(error))
    return {"type": "missing" if missing else "broken", "text": text}


if __name__ == "__main__":
    sys.exit(main())
