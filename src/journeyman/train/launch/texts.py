"""The forms of text, by name."""

from __future__ import annotations

from collections.abc import Callable

from journeyman.errors import InputError
from journeyman.train.launch.k8s import k8s_objects
from journeyman.train.launch.slurm import slurm_script
from journeyman.train.launch.spec import LaunchSpec

TEXTS: dict[str, Callable[[LaunchSpec], str]] = {"slurm": slurm_script, "k8s": k8s_objects}
"""Cluster -> its text."""


def launch_text(cluster: str, spec: LaunchSpec) -> str:
    """What ``journeyman launch --print`` prints.

    Raises:
        InputError: a combination that cannot start, named.
    """
    if spec.trainer.nodes < 1:
        raise InputError("trainer.nodes", f"got {spec.trainer.nodes}", allowed="at least 1: the run itself needs one")
    if bool(spec.engine.nodes) != bool(spec.engine.command):
        problem = f"{spec.engine.nodes} engine nodes with command {spec.engine.command!r}"
        raise InputError("engine.command", problem, allowed="both, or neither")
    return TEXTS[cluster](spec)
