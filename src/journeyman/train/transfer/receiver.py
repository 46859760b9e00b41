"""An engine in another process as a trainer sees it: the weights go one way, a short word about them another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from journeyman.errors import InputError
from journeyman.train.transfer.collective import CollectiveSender, CollectiveTaker
from journeyman.train.transfer.files import FileSender, FileTaker
from journeyman.train.transfer.manifest import Manifest

if TYPE_CHECKING:
    from torch import Tensor

    from journeyman.engines.protocol import Engine

Tell = Callable[[dict[str, Any]], None]
"""Hands a manifest (JSON) to the engine's process and returns when the engine serves it, or raises."""


class Sender(Protocol):
    """The trainer's side of a way."""

    def send(self, state: Mapping[str, Tensor], version: int, deadline_s: float = 600.0) -> Manifest:
        """Make a state ready to be taken."""
        ...

    def close(self) -> None:
        """Give memory back."""
        ...


class Taker(Protocol):
    """The engine's side of a way."""

    def take(self, manifest: Manifest, deadline_s: float = 600.0) -> AbstractContextManager[Mapping[str, Tensor]]:
        """The verified state of a push while it is needed."""
        ...

    def close(self) -> None:
        """Give memory back."""
        ...


def open_sender(way: str, folder: Path | None = None) -> Sender:
    """The trainer's side of ``disk`` or ``memory``; ``collective`` needs an address and is made by its own class."""
    if way not in WAYS or way == "collective":
        raise InputError("transfer", f"got {way!r}", allowed="disk, memory (collective: CollectiveSender)")
    return FileSender(way, folder)


def open_taker(way: str) -> Taker:
    """The engine's side of ``disk`` or ``memory``."""
    if way not in WAYS or way == "collective":
        raise InputError("transfer", f"got {way!r}", allowed="disk, memory (collective: CollectiveTaker)")
    return FileTaker()


WAYS: dict[str, tuple[type[Sender], type[Taker]]] = {
    "disk": (FileSender, FileTaker),
    "memory": (FileSender, FileTaker),
    "collective": (CollectiveSender, CollectiveTaker),
}
"""Way -> both its sides."""


class FarEngine:
    """``WeightReceiver`` for an engine in another process (``Trainer.push_weights(FarEngine(...), version)``).

    Args:
        sender: how the weights go.
        tell: how the engine's process hears of them.
    """

    def __init__(self, sender: Sender, tell: Tell) -> None:
        self._sender, self._tell = sender, tell

    def update_weights(self, state: Any, version: int) -> None:
        """As ``WeightReceiver.update_weights``. Raises TransferFailed, StorageError and what ``tell`` raises."""
        if isinstance(self._sender, CollectiveSender):  # the engine must be waiting when the first tensor comes
            self._tell(self._sender.manifest(state, version).as_json())
            self._sender.send(state, version)
        else:
            self._tell(self._sender.send(state, version).as_json())


def load_into(engine: Engine, taker: Taker, data: Mapping[str, Any], **options: Any) -> int:
    """In the engine's process: take a push and serve it; returns its version.

    Args:
        data: the manifest, JSON.
        options: of ``Engine.update_weights``.

    Raises:
        TransferFailed: before the engine was touched. EngineError: it keeps its old weights.
    """
    manifest = Manifest.of_json(data)
    with taker.take(manifest) as state:
        engine.update_weights(dict(state), manifest.version, **options)
    return manifest.version
