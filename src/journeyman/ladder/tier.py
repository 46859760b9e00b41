"""Which sandbox tier the quickstart gets: the one that was asked for, or the best this machine can do, said loudly.

Only the quickstart falls back, because its tasks are ours; every other command refuses a limit that cannot be kept.
"""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass

from journeyman.errors import EnvironmentMissing, InputError
from journeyman.sandbox import PROVIDERS, hierarchy
from journeyman.sandbox.plain import NotIsolated
from journeyman.sandbox.protocol import CAPABILITIES, Provider

LIMITS = ("memory", "pids", "disk", "cpus")
"""Capabilities that are limits of a sandbox; one that is missing can be waived."""
AUTO = ("bwrap", "oci", "none")
"""What ``auto`` tries, best first."""
ISOLATING = ("bwrap", "oci")
"""Tiers that keep the host's files, processes and network from what runs inside."""


@dataclass(frozen=True)
class Tier:
    """A provider with what it does not keep here.

    Attributes:
        provider: makes the sandboxes.
        waive: limits that stay unenforced.
        warnings: one line for each promise that is not kept.
    """

    provider: Provider
    waive: frozenset[str]
    warnings: tuple[str, ...]


def strict_tier(waive: frozenset[str]) -> Tier:
    """The isolating tier, with nothing waived but what was asked for: starting a sandbox refuses any other lack.

    That is ``bwrap`` on Linux and ``oci`` elsewhere; ``JOURNEYMAN_SANDBOX`` names one of the two instead. None is
    fallen back to.

    Raises:
        EnvironmentMissing: it does not work here.
        InputError: the variable names anything else.
    """
    wanted = os.environ.get("JOURNEYMAN_SANDBOX") or ("bwrap" if sys.platform == "linux" else "oci")
    if wanted not in ISOLATING:
        raise InputError("JOURNEYMAN_SANDBOX", f"{wanted!r} does not isolate", allowed=" or ".join(ISOLATING))
    try:
        return Tier(PROVIDERS[wanted](), waive, ())
    except EnvironmentMissing as error:
        other = next(name for name in ISOLATING if name != wanted)
        raise EnvironmentMissing(
            f"{error}\n  or try the other tier that isolates: JOURNEYMAN_SANDBOX={other}"
        ) from error


def choose_tier(wanted: str, waive: frozenset[str]) -> Tier:
    """The tier for ``auto`` or a provider's name.

    Raises:
        EnvironmentMissing: the named provider does not work here.
    """
    lines: list[str] = []
    names = list(AUTO) if wanted == "auto" else [wanted]
    for name in names:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotIsolated)  # said below, promise by promise
                provider = PROVIDERS[name]()
        except EnvironmentMissing as error:
            if name == names[-1]:
                raise
            lines.append(f"sandbox tier {name} does not work here: {error}")
            continue
        missing = [promise for promise in CAPABILITIES if promise not in provider.supports]
        if "files" in missing:
            lines.append(
                f"sandbox {name} ISOLATES NOTHING: solutions, readers and checks run as this user on this host"
            )
        lines += [f"sandbox {name} does not keep here: {promise} ({CAPABILITIES[promise]})" for promise in missing]
        if name == "oci" and hierarchy.bases().version == 2:
            lines.append("CPU time of containers is not in the figures: they have groups of their own (cgroup v2)")
        return Tier(provider, waive | frozenset(LIMITS).intersection(missing), tuple(lines))
    raise EnvironmentMissing(f"no sandbox tier works here: {'; '.join(lines)}")
