"""What a push consists of: its version, where the tensors lie, and the digest of each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from journeyman.errors import SystemFault

if TYPE_CHECKING:
    from torch import Tensor


class TransferFailed(SystemFault):
    """Weights did not arrive as they were sent. The engine was not told; it serves its old version."""

    cause = "weights_not_transferred"


@dataclass(frozen=True)
class Piece:
    """One tensor.

    Attributes:
        name: as in the checkpoint on disk.
        dtype: safetensors-like word of torch, e.g. ``float32``.
        shape: its size.
        sha256: of its bytes in row-major order.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """One push.

    Attributes:
        version: of the weights.
        way: entry of ``WAYS``.
        place: where they lie, as the way says.
        pieces: the tensors, in the order they are sent.
    """

    version: int
    way: str
    place: str
    pieces: tuple[Piece, ...]

    def as_json(self) -> dict[str, Any]:
        """A JSON document."""
        return asdict(self)

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Manifest:
        """The manifest of ``as_json``. Raises TransferFailed for anything else."""
        try:
            pieces = tuple(
                Piece(str(p["name"]), str(p["dtype"]), tuple(int(n) for n in p["shape"]), str(p["sha256"]))
                for p in data["pieces"]
            )
            return cls(int(data["version"]), str(data["way"]), str(data["place"]), pieces)
        except (KeyError, TypeError, ValueError) as error:
            raise TransferFailed(f"this is no manifest of a push: {error!r}") from error

    def check(self, state: Mapping[str, Tensor]) -> None:
        """Compare every tensor with its digest.

        Raises:
            TransferFailed: names the first that is missing, left over or changed.
        """
        names = [piece.name for piece in self.pieces]
        for name in sorted(state.keys() ^ set(names)):
            raise TransferFailed(f"push of version {self.version}: {name} is on one side only")
        for piece in self.pieces:
            found = piece_of(piece.name, state[piece.name])
            if found != piece:
                raise TransferFailed(
                    f"push of version {self.version}: {piece.name} arrived as {found}, sent as {piece}"
                )


def piece_of(name: str, tensor: Tensor) -> Piece:
    """A tensor's entry."""
    return Piece(name, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), digest(tensor))


def pieces_of(state: Mapping[str, Tensor]) -> tuple[Piece, ...]:
    """The entries of a whole state."""
    return tuple(piece_of(name, tensor) for name, tensor in state.items())


def digest(tensor: Tensor) -> str:
    """sha256 of a tensor's bytes."""
    return hashlib.sha256(as_bytes(tensor)).hexdigest()


def as_bytes(tensor: Tensor) -> memoryview:
    """A CPU tensor's bytes in row-major order, without a copy where they lie so already."""
    import torch

    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data if flat.numel() else memoryview(b"")


def total_bytes(state: Mapping[str, Tensor] | Iterable[Tensor]) -> int:
    """Bytes of all tensors."""
    tensors = state.values() if isinstance(state, Mapping) else state
    return sum(tensor.nbytes for tensor in tensors)
