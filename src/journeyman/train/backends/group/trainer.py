"""The front of a group: a ``Trainer`` in the run's own process whose verbs run on all ranks at once."""

from __future__ import annotations

import contextlib
import json
import select
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from journeyman.deadline import Deadline
from journeyman.errors import DeadlinePassed, EnvironmentMissing, InputError
from journeyman.train.backends.batch import NOTHING, add, spread
from journeyman.train.backends.group.processes import Processes
from journeyman.train.backends.group.shares import shares_of
from journeyman.train.backends.group.wire import GroupLost, Message, pack_loss, pack_rows, receive, send
from journeyman.train.backends.spec import BackendSpec, LayoutSpec
from journeyman.train.backends.states import publish, verified
from journeyman.train.losses import PolicyLoss
from journeyman.train.optimizer import GradientNotFinite, OptimizerSpec
from journeyman.train.protocol import ForwardMetrics, TrainRow, WeightReceiver
from journeyman.train.transfer.files import read_file, shared_folder

LAYOUT_FILE = "layout.json"
"""In a checkpoint: which back-end and how many ranks wrote it; any number may read it."""
AFTER_ERROR_S = 30.0
"""How long the other ranks may take to answer once one has failed: they may wait for it in a collective."""


def open_trainer(spec: BackendSpec, model: Path, optimizer: OptimizerSpec) -> GroupTrainer:
    """As ``table.make_trainer``."""
    return GroupTrainer(spec, model, optimizer)


class GroupTrainer:
    """Starts the ranks and speaks for them.

    Args:
        spec: the back-end and its layout.
        model: Hugging Face directory; every rank reads it, so on several nodes it lies on shared storage.
        optimizer: rates.

    Attributes:
        steps: optimizer steps done.
        tokens_forwarded: tokens of all rows that went through a forward so far.

    Raises:
        GroupLost, DeadlinePassed: the ranks did not come up. InputError: they refused the model.
    """

    def __init__(self, spec: BackendSpec, model: Path, optimizer: OptimizerSpec) -> None:
        self.steps = self.tokens_forwarded = 0
        self._spec = spec
        self._dp = [data_rank(rank, spec.layout) for rank in range(spec.layout.ranks)]
        self._processes = Processes(spec)
        self._processes.start()
        opening = {"spec": spec.model_dump(mode="json"), "model": str(model.absolute()), "optimizer": asdict(optimizer)}
        self._call("open", Message(opening))

    def forward_backward(
        self, rows: Sequence[TrainRow], weights: Sequence[NDArray[np.float64]], loss: PolicyLoss
    ) -> ForwardMetrics:
        """As ``Trainer.forward_backward``."""
        shares = self._shares(rows)
        data = {"loss": pack_loss(loss)}
        replies = self._call("forward_backward", *self._messages(shares, rows, weights, data))
        total = NOTHING
        for reply in replies:
            if "metrics" in reply.data:
                total = add(total, ForwardMetrics(abs_gaps=reply.arrays["abs_gaps"], **reply.data["metrics"]))
        return total

    def forward_logprobs(self, rows: Sequence[TrainRow]) -> list[NDArray[np.float32]]:
        """As ``Trainer.forward_logprobs``."""
        shares = self._shares(rows)
        replies = self._call("forward_logprobs", *self._messages(shares, rows, None, {}))
        results = [np.zeros(0, np.float32)] * len(rows)
        for rank, reply in enumerate(replies):
            chosen = [i for batch in shares[self._dp[rank]] for i in batch]
            if "logprobs" in reply.arrays and chosen:
                for i, values in zip(chosen, spread([rows[i] for i in chosen], reply.arrays["logprobs"]), strict=True):
                    results[i] = values
        return results

    def optim_step(self) -> float:
        """As ``Trainer.optim_step``."""
        norm = float(self._call("optim_step", Message({}))[0].data["norm"])
        self.steps += 1
        return norm

    def save_state(self, root: Path, extra: dict[str, Any] | None = None) -> Path:
        """As ``Trainer.save_state``: every rank writes its own part; a group of another size reads them."""

        def write(staging: Path) -> None:
            staging.mkdir(parents=True)
            self._call("save", Message({"path": str(staging.absolute())}))
            layout = {"backend": self._spec.name, "layout": self._spec.layout.model_dump(mode="json")}
            (staging / LAYOUT_FILE).write_text(json.dumps(layout, indent=1) + "\n", encoding="utf-8")

        return publish(root, self.steps, write, extra or {})

    def load_state(self, path: Path) -> dict[str, Any]:
        """As ``Trainer.load_state``."""
        steps, extra = verified(path)
        try:
            wrote = json.loads((path / LAYOUT_FILE).read_text(encoding="utf-8"))["backend"]
        except (OSError, ValueError, KeyError) as error:
            raise InputError(str(path), "is no checkpoint of a trainer group", allowed=self._spec.name) from error
        if wrote != self._spec.name:
            hint = "export it (journeyman.train.backends.export) and start from its weights"
            raise InputError(str(path), f"was written by {wrote}", allowed=self._spec.name, hint=hint)
        self._call("load", Message({"path": str(path.absolute())}))
        self.steps = steps
        return extra

    def push_weights(self, engine: WeightReceiver, version: int) -> None:
        """As ``Trainer.push_weights``.

        All ranks gather first and leave their collectives; only then does the engine hear of the new version. So no
        collective of the trainer can wait for the engine, nor one of the engine for the trainer.
        """
        folder = Path(tempfile.mkdtemp(prefix="journeyman-weights-", dir=shared_folder(self._spec.transfer)))
        try:
            file = folder / "weights.safetensors"
            self._call("gather", Message({"path": str(file)}))
            engine.update_weights(read_file(file), version)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """As ``Trainer.close``: ends every process."""
        self._processes.close()

    def __enter__(self) -> GroupTrainer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._processes.close()

    def _shares(self, rows: Sequence[TrainRow]) -> list[list[list[int]]]:
        self.tokens_forwarded += sum(len(row.ids) for row in rows)
        lengths, groups = [len(row.ids) for row in rows], [row.prompt for row in rows]
        return shares_of(lengths, groups, self._spec.tokens_per_micro_batch, self._spec.layout.dp)

    def _messages(
        self,
        shares: list[list[list[int]]],
        rows: Sequence[TrainRow],
        weights: Sequence[NDArray[np.float64]] | None,
        data: dict[str, Any],
    ) -> list[Message]:
        by_data_rank = []
        for share in shares:
            batches = [[(rows[i], None if weights is None else weights[i]) for i in batch] for batch in share]
            head, arrays = pack_rows(batches)
            by_data_rank.append(Message(head | data, arrays))
        return [by_data_rank[at] for at in self._dp]

    def _call(self, verb: str, *messages: Message) -> list[Message]:
        """Send each rank its message (or all the same one) and wait for all answers."""
        deadline = Deadline.after(self._spec.deadline_s, f"{verb} on {self._spec.layout.ranks} trainer ranks")
        connections = self._processes.connections
        if not connections:
            raise GroupLost(f"{verb}: the trainer group was closed")
        try:
            for rank, connection in enumerate(connections):
                message = messages[rank % len(messages)]
                send(connection, Message(message.data | {"verb": verb}, message.arrays), deadline)
            replies = self._replies(deadline)
        except (GroupLost, DeadlinePassed) as error:
            tail = self._processes.tail()
            self.close()
            if isinstance(error, DeadlinePassed):
                raise
            raise GroupLost(f"{verb}: {error}\n{tail}".strip()) from error
        return self._settled(verb, replies)

    def _replies(self, deadline: Deadline) -> list[Message | None]:
        connections = self._processes.connections
        replies: list[Message | None] = [None] * len(connections)
        until = deadline
        while waiting := [c for c, reply in zip(connections, replies, strict=True) if reply is None]:
            ready = select.select(waiting, [], [], min(until.remaining_s, 1.0))[0]
            for connection in ready:
                reply = receive(connection, deadline)
                replies[connections.index(connection)] = reply
                if "error" in reply.data and until is deadline:
                    until = Deadline.after(min(AFTER_ERROR_S, max(deadline.remaining_s, 1e-3)), deadline.what)
            if not ready and until.has_passed:
                if until is deadline:
                    deadline.check()
                break
        return replies

    def _settled(self, verb: str, replies: Sequence[Message | None]) -> list[Message]:
        """All answers, or the error they stand for; after anything but an error all agree on, the group is ended."""
        errors = {rank: reply.data["error"] for rank, reply in enumerate(replies) if reply and "error" in reply.data}
        if not errors:
            return [reply for reply in replies if reply is not None]
        rank, first = min(errors.items())
        agreed = len(errors) == len(replies) and first["type"] in ("input", "gradient")
        if not agreed or verb == "open":
            self.close()
        raise ERRORS[first["type"]](first, f"{verb} failed on rank {rank}")


def _input_error(found: dict[str, Any], what: str) -> Exception:
    return InputError(found["where"], found["problem"], allowed=found["allowed"], hint=found["hint"])


ERRORS: dict[str, Callable[[dict[str, Any], str], Exception]] = {
    "input": _input_error,
    "gradient": lambda found, what: GradientNotFinite(float(found["norm"])),
    "missing": lambda found, what: EnvironmentMissing(f"{what}: {found['text']}"),
    "broken": lambda found, what: GroupLost(f"{what}: {found['text']}"),
}
"""What a rank's answer becomes here, by its type."""


def data_rank(rank: int, layout: LayoutSpec) -> int:
    """Which data-parallel share a rank holds; ranks count tensor, context, data, pipeline parallel, fastest first."""
    return rank // (layout.tp * layout.cp) % layout.dp
