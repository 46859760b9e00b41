"""A push over a process group of its own: rank 0 is the trainer, every other rank an engine's process.

The group holds nothing but pushes: no collective of the trainer's own can meet one of these, and a side that is late or
gone ends the wait by the deadline, on both sides. Tensors travel one by one in the manifest's order. gloo over TCP, or
nccl where both sides have a GPU each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from journeyman.train.transfer.manifest import Manifest, TransferFailed, pieces_of

if TYPE_CHECKING:
    from torch import Tensor


class _Group:
    """One side of the group; the sides meet when the first tensor is due.

    Args:
        address: ``host:port`` of the store; rank 0 opens it, port 0 takes a free one.
        rank, size: this side, and how many there are.
        device: ``cpu`` (gloo) or ``cuda`` (nccl).
        deadline_s: for the meeting and for every tensor.

    Raises:
        TransferFailed: the store cannot be opened or reached.
    """

    def __init__(self, address: str, rank: int, size: int, device: str = "cpu", deadline_s: float = 600.0) -> None:
        import torch.distributed as dist

        host, _, port = address.rpartition(":")
        self.device, self._rank, self._size = device, rank, size
        self._limit = timedelta(seconds=deadline_s)
        self._group: Any = None
        try:
            self._store: Any = dist.TCPStore(  # type: ignore[attr-defined]
                host, int(port), size, rank == 0, self._limit, wait_for_workers=False
            )
        except (RuntimeError, ValueError) as error:
            raise TransferFailed(f"rank {rank} of {size} has no store at {address}: {error}") from error

    @property
    def address(self) -> str:
        """``host:port`` that the others give."""
        return f"{self._store.host}:{self._store.port}"

    def meet(self) -> None:
        """Wait for all sides, once. Raises TransferFailed when they do not come in time."""
        if self._group is not None:
            return
        from torch.distributed import distributed_c10d as c10d

        try:
            prefixed = c10d.PrefixStore(f"journeyman-weights-{self._size}", self._store)
            self._group = GROUPS[self.device](prefixed, self._rank, self._size, self._limit)
        except RuntimeError as error:
            words = f"rank {self._rank} of {self._size} did not meet the others at {self.address}"
            raise TransferFailed(f"{words}: {error}") from error

    def broadcast(self, tensor: Tensor, what: str) -> None:
        """Rank 0's tensor into everybody's, in place. Raises TransferFailed."""
        import torch.distributed as dist

        self.meet()
        options = dist.BroadcastOptions()
        options.rootRank = 0
        try:
            self._group.broadcast([tensor], options).wait()
        except RuntimeError as error:
            raise TransferFailed(f"{what} did not get through: {error}") from error

    def close(self) -> None:
        """Leave the group."""
        self._group = None


def _gloo(store: Any, rank: int, size: int, limit: timedelta) -> Any:
    from torch.distributed import distributed_c10d as c10d

    return c10d.ProcessGroupGloo(store, rank, size, limit)


def _nccl(store: Any, rank: int, size: int, limit: timedelta) -> Any:
    from torch.distributed import distributed_c10d as c10d

    options: Any = c10d.ProcessGroupNCCL.Options()
    options._timeout = limit
    return c10d.ProcessGroupNCCL(store, rank, size, options)


GROUPS = {"cpu": _gloo, "cuda": _nccl}
"""How a process group is made, by where the tensors lie."""


class CollectiveSender:
    """The trainer's side. ``size`` counts it: one engine makes 2. Port 0 takes a free one: see ``address``."""

    def __init__(
        self, address: str = "127.0.0.1:0", size: int = 2, device: str = "cpu", deadline_s: float = 600.0
    ) -> None:
        self._group = _Group(address, 0, size, device, deadline_s)

    @property
    def address(self) -> str:
        """Where the engines meet it."""
        return self._group.address

    def manifest(self, state: Mapping[str, Tensor], version: int) -> Manifest:
        """What the engines must know before ``send``: they allocate by it and wait for the tensors."""
        return Manifest(version, "collective", self.address, pieces_of(state))

    def send(self, state: Mapping[str, Tensor], version: int, deadline_s: float = 600.0) -> Manifest:
        """Send every tensor; the engines must be in ``take`` with this manifest. Raises TransferFailed."""
        manifest = self.manifest(state, version)
        for name, tensor in state.items():
            ready = tensor.detach().to(self._group.device).contiguous()
            self._group.broadcast(ready, f"{name} of version {version}")
        return manifest

    def close(self) -> None:
        """Leave the group. Idempotent."""
        self._group.close()


class CollectiveTaker:
    """An engine's side: rank 1 to ``size - 1``."""

    def __init__(
        self, address: str, rank: int = 1, size: int = 2, device: str = "cpu", deadline_s: float = 600.0
    ) -> None:
        self._group = _Group(address, rank, size, device, deadline_s)

    @contextmanager
    def take(self, manifest: Manifest, deadline_s: float = 600.0) -> Iterator[Mapping[str, Tensor]]:
        """Receive the tensors of a manifest and verify them. Raises TransferFailed."""
        import torch

        state: dict[str, Tensor] = {}
        for piece in manifest.pieces:
            tensor = torch.empty(piece.shape, dtype=getattr(torch, piece.dtype), device=self._group.device)
            self._group.broadcast(tensor, f"{piece.name} of version {manifest.version}")
            state[piece.name] = tensor
        manifest.check(state)
        yield state

    def close(self) -> None:
        """Leave the group. Idempotent."""
        self._group.close()
