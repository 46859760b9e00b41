"""Promise: a policy loss is a pure function of flat token tensors, and a step's loss is a sum of weight x token loss.

One loss per file; ``LOSSES`` maps names to them. ``policy_loss`` is the only way in: it applies mask, correction and
weights once for all losses, so a loss file holds its formula and nothing else.
"""

from journeyman.train.losses.corrections import CORRECTIONS
from journeyman.train.losses.frame import PolicyLoss, policy_loss, resolve_loss
from journeyman.train.losses.protocol import Knobs, LossInputs, LossOutput, TokenLoss
from journeyman.train.losses.table import LOSSES

__all__ = [
    "CORRECTIONS",
    "LOSSES",
    "Knobs",
    "LossInputs",
    "LossOutput",
    "PolicyLoss",
    "TokenLoss",
    "policy_loss",
    "resolve_loss",
]
