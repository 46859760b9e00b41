"""Where the record of a step goes. JSON lines always; the others are adapters that import their library when made."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from journeyman.durable import storage_error
from journeyman.errors import EnvironmentMissing, InputError, nearest

LOG = logging.getLogger("journeyman.train.metrics")

Record = Mapping[str, Any]


class Sink(Protocol):
    """Takes records."""

    def write(self, step: int, record: Record) -> None:
        """Take the record of a step."""
        ...

    def close(self) -> None:
        """Flush and end. Idempotent."""
        ...


class JsonLines:
    """``metrics.jsonl``: one object per line, NaN as null, flushed with every record.

    A resumed run cuts the lines of steps that it is going to redo.

    Args:
        path: the file; made when missing.
        after: steps that stand; lines of later ones are removed.
    """

    def __init__(self, path: Path, after: int | None = None) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if after is not None and path.is_file():
                kept = [line for line in _whole_lines(path) if json.loads(line).get("step", 0) <= after]
                temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
                temporary.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
                temporary.replace(path)
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise storage_error(path, error) from error

    def write(self, step: int, record: Record) -> None:
        try:
            self._file.write(json.dumps({"step": step, **_finite(record)}, ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            raise storage_error(self._path, error) from error

    def close(self) -> None:
        self._file.close()


class TensorBoard:
    """Event files below ``DIR/tensorboard``; needs the package ``tensorboard``."""

    def __init__(self, directory: Path, name: str, config: Mapping[str, Any]) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise EnvironmentMissing("metrics sink tensorboard needs: pip install journeyman[metrics]") from error
        self._writer = SummaryWriter(str(directory / "tensorboard"))

    def write(self, step: int, record: Record) -> None:
        for key, value in _numbers(record).items():
            self._writer.add_scalar(key, value, step)

    def close(self) -> None:
        self._writer.close()


class _Tracker:
    """A service with ``init``, ``log`` and ``finish``: Weights & Biases and trackio are both."""

    def __init__(self, module: str, directory: Path, name: str, config: Mapping[str, Any], **options: Any) -> None:
        from importlib import import_module

        try:
            self._module = import_module(module)
        except ImportError as error:
            raise EnvironmentMissing(f"metrics sink {module} needs: pip install journeyman[metrics]") from error
        self._module.init(project="journeyman", name=name, config=dict(config), **options)
        self._is_open = True

    def write(self, step: int, record: Record) -> None:
        self._module.log(_numbers(record), step=step)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._module.finish()


def _wandb(directory: Path, name: str, config: Mapping[str, Any]) -> Sink:
    return _Tracker("wandb", directory, name, config, dir=str(directory))


def _trackio(directory: Path, name: str, config: Mapping[str, Any]) -> Sink:
    return _Tracker("trackio", directory, name, config)


SINKS: dict[str, Callable[[Path, str, Mapping[str, Any]], Sink]] = {
    "tensorboard": TensorBoard,
    "trackio": _trackio,
    "wandb": _wandb,
}
"""Sinks beside JSON lines: name -> (run directory, run name, recipe) -> sink."""


class Sinks:
    """All sinks of a run. JSON lines must hold; any other that raises is switched off with a warning.

    Args:
        directory: of the run.
        names: keys of ``SINKS``.
        config: the recipe, for services that show it.
        after: as for ``JsonLines``.

    Raises:
        InputError: an unknown name. EnvironmentMissing: a library is not installed.
    """

    def __init__(
        self, directory: Path, names: Sequence[str] = (), config: Mapping[str, Any] | None = None, after: int = 0
    ) -> None:
        for name in names:
            if name not in SINKS:
                near = nearest(name, SINKS)
                hint = f"did you mean {near}?" if near else None
                raise InputError("metrics.sinks", f"got {name!r}", allowed=", ".join(SINKS), hint=hint)
        self._others = {name: SINKS[name](directory, directory.name, config or {}) for name in names}
        self._lines = JsonLines(directory / "metrics.jsonl", after)

    def write(self, step: int, record: Record) -> None:
        """Hand a record to all of them. Raises StorageError when the lines cannot be written."""
        self._lines.write(step, record)
        for name, sink in tuple(self._others.items()):
            try:
                sink.write(step, record)
            except Exception as error:  # a boundary: a metrics service must not end a training
                LOG.warning("metrics sink %s is switched off: %s: %s", name, type(error).__name__, error)
                del self._others[name]

    def close(self) -> None:
        """End all of them."""
        self._lines.close()
        for name, sink in self._others.items():
            try:
                sink.close()
            except Exception as error:
                LOG.warning("metrics sink %s did not close: %s", name, error)


def _whole_lines(path: Path) -> list[str]:
    """The complete lines of a file; the last may be what a kill left."""
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            json.loads(line)
        except ValueError:
            continue
        found.append(line)
    return found


def _finite(record: Record) -> dict[str, Any]:
    return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in record.items()}


def _numbers(record: Record) -> dict[str, float]:
    return {
        key: float(value)
        for key, value in record.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
