"""Weights from one safetensors file, loaded by vLLM's own workers: the transfer back-end ``safetensors_file``.

The server imports this module because ``--worker-extension-cls`` names a class in it; only its folder is on the
server's path, so nothing of journeyman comes along. No back-end that vLLM ships works without CUDA; this one works on
every platform, as long as workers and trainer see one file system. The digest is checked before the first tensor is
touched: a file that was cut short or exchanged leaves the old weights in place.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory

BACKEND = "safetensors_file"


@dataclass
class Nothing(WeightTransferInitInfo):  # type: ignore[misc]
    """This back-end needs no rendezvous."""


@dataclass
class OneFile(WeightTransferUpdateInfo):  # type: ignore[misc]
    """Where the weights lie.

    Attributes:
        path: a safetensors file under Hugging Face names, the tied output head written out.
        sha256: hex digest of the whole file.
    """

    path: str
    sha256: str


class SafetensorsFileEngine(WeightTransferEngine):  # type: ignore[misc]
    """Loads a file through the model's own loader, between the two ends of a layerwise reload.

    Without that pair a plain ``load_weights`` meets packed parameters and fails. Both ends lie in one call, so that
    whoever pushes may die between any two of its calls without leaving a model without tensors behind.
    """

    init_info_cls = Nothing
    update_info_cls = OneFile
    supports_draft_weight_update = False

    def init_transfer_engine(self, init_info: Nothing) -> None:
        """Nothing to prepare."""

    def shutdown(self) -> None:
        """Nothing to give back."""

    def start_weight_update(self) -> None:
        """Nothing changes before the file was found to be whole."""

    def finish_weight_update(self) -> None:
        """The file is loaded already; the server changes its label now."""

    def update_weights(self, update_info: dict[str, Any]) -> None:
        """Parse and receive. The base version also synchronises an accelerator, which a CPU has not."""
        self.receive_weights(self.parse_update_info(update_info))
        if self.device.type != "cpu":
            import torch

            torch.accelerator.synchronize()

    def receive_weights(self, update_info: OneFile) -> None:
        from safetensors import safe_open
        from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

        with open(update_info.path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != update_info.sha256:
            raise ValueError(f"{update_info.path} has sha256 {found}, not {update_info.sha256}: no weight was touched")
        with safe_open(update_info.path, framework="pt", device="cpu") as opened:
            initialize_layerwise_reload(self.model)
            try:
                self.model.load_weights((name, opened.get_tensor(name)) for name in opened.keys())  # noqa: SIM118
            finally:  # after an error too: what was not loaded goes back to where it was
                finalize_layerwise_reload(self.model, self.model_config)


class Extension:
    """Empty: naming it makes the worker import this module, which registers the back-end."""


if BACKEND not in WeightTransferEngineFactory._registry:
    WeightTransferEngineFactory.register_engine(BACKEND, SafetensorsFileEngine)
