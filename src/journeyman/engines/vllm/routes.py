"""Which routes a vLLM server has, found out before the first turn; what is missing is named with what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from journeyman.errors import EnvironmentMissing

GENERATE, COMPLETIONS = "/inference/v1/generate", "/v1/completions"
ABORT, ABORT_DEV = "/inference/v1/abort_requests", "/abort_requests"
PAUSE, RESUME, IS_PAUSED = "/pause", "/resume", "/is_paused"
INIT, START, UPDATE = "/init_weight_transfer_engine", "/start_weight_update", "/update_weights"
FINISH, WEIGHT_INFO, RELABEL = "/finish_weight_update", "/weight_info", "/update_weight_version"
RESET, MODELS, METRICS, HEALTH = "/reset_prefix_cache", "/v1/models", "/metrics", "/health"

TRAINING = (PAUSE, RESUME, IS_PAUSED, INIT, START, UPDATE, FINISH, WEIGHT_INFO)
"""What a weight push goes through."""
HOW = {
    GENERATE: "start the server with --enable-scale-out (vLLM 0.32 or newer)",
    **dict.fromkeys((*TRAINING, RELABEL, RESET), "start the server with VLLM_SERVER_DEV_MODE=1, bound to loopback"),
}


@dataclass(frozen=True)
class Routes:
    """What one server offers.

    Attributes:
        generate: the route of a turn: ``tokens`` reports the weight version of every token, ``completions`` does not.
        abort: route that ends a request and lets it return what it has; None where there is none.
        missing: routes of TRAINING that are not there; empty when weights can be pushed.
        relabel: the version's label can be set without a push.
    """

    generate: Literal["tokens", "completions"]
    abort: str | None
    missing: tuple[str, ...]
    relabel: bool

    @property
    def can_update(self) -> bool:
        """Weights can be pushed."""
        return not self.missing


def routes_of(paths: Iterable[str], url: str) -> Routes:
    """Read the paths of a server's ``/openapi.json``.

    Raises:
        EnvironmentMissing: it generates from token ids by no route known here.
    """
    found = set(paths)
    if GENERATE not in found and COMPLETIONS not in found:
        raise EnvironmentMissing(
            f"{url} has neither {GENERATE} nor {COMPLETIONS}: it is no vLLM server that generates from token ids; "
            f"{HOW[GENERATE]}, or give the address of one"
        )
    missing = tuple(path for path in TRAINING if path not in found)
    abort = next((path for path in (ABORT, ABORT_DEV) if path in found), None)
    return Routes("tokens" if GENERATE in found else "completions", abort, missing, RELABEL in found)


def missing_text(url: str, missing: Iterable[str]) -> str:
    """What a server lacks for a weight push, and how it gets it."""
    names = list(missing)
    advice = "; ".join(dict.fromkeys(HOW[name] for name in names))
    return (
        f"{url} takes no new weights: it lacks {', '.join(names)}; {advice} (journeyman's launcher does: docs/vllm.md)"
    )
