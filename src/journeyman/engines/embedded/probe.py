"""Logprobs of given tokens in one forward pass: what a trainer would compute of the weights that serve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from journeyman.engines.embedded.decoder import Decoder
from journeyman.engines.embedded.ragged import ragged

PORTION = 256
"""Positions whose logits are held at one time."""


@torch.inference_mode()
def forward_logprobs(
    decoder: Decoder, sequences: Sequence[Sequence[int]], temperature: float
) -> list[npt.NDArray[np.float32]]:
    """Logprob of every token given those before it under logits over ``temperature``; 0 for the first."""
    device = decoder.cache.data.device
    results: list[npt.NDArray[np.float32]] = []
    for ids in sequences:
        hidden = decoder.prefill(ragged([list(ids)], [0], None, device), every_position=True)
        values = np.zeros(len(ids), dtype=np.float32)
        for at in range(0, len(ids) - 1, PORTION):
            logits = decoder.logits(hidden[at : min(at + PORTION, len(ids) - 1)]) / temperature
            chosen = torch.tensor(ids[at + 1 : at + 1 + PORTION], device=device)[:, None]
            values[at + 1 : at + 1 + PORTION] = torch.log_softmax(logits, -1).gather(1, chosen)[:, 0].cpu().numpy()
        results.append(values)
    return results
