"""The policy losses by name: one file, one entry."""

from __future__ import annotations

from journeyman.train.losses.cispo import Cispo
from journeyman.train.losses.dppo_kl import DppoKl
from journeyman.train.losses.dppo_topk import DppoTopk
from journeyman.train.losses.dppo_tv import DppoTv
from journeyman.train.losses.glm5 import Glm5
from journeyman.train.losses.gspo import Gspo
from journeyman.train.losses.ppo import Ppo
from journeyman.train.losses.protocol import Knobs
from journeyman.train.losses.reinforce import Reinforce
from journeyman.train.losses.sapo import Sapo

LOSSES: dict[str, type[Knobs]] = {
    "cispo": Cispo,
    "dppo_kl": DppoKl,
    "dppo_topk": DppoTopk,
    "dppo_tv": DppoTv,
    "glm5": Glm5,
    "gspo": Gspo,
    "ppo": Ppo,
    "reinforce": Reinforce,
    "sapo": Sapo,
}
