"""Which sandbox tier the quickstart gets: the one that was asked for, or the best this machine can do, said loudly.

Only the quickstart falls back, because its tasks are ours; every other command refuses a limit that cannot be kept.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from journeyman.errors import EnvironmentMissing
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.plain import NotIsolated
from journeyman.sandbox.protocol import CAPABILITIES, Provider

LIMITS = ("memory", "pids", "disk", "cpus")
"""Capabilities that are limits of a sandbox; one that is missing can be waived."""


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

    Raises:
        EnvironmentMissing: there is none here.
    """
    return Tier(PROVIDERS["bwrap"](), waive, ())


def choose_tier(wanted: str, waive: frozenset[str]) -> Tier:
    """The tier for ``auto`` or a provider's name.

    Raises:
        EnvironmentMissing: the named provider does not work here.
    """
    lines: list[str] = []
    names = ["bwrap", "none"] if wanted == "auto" else [wanted]
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
        return Tier(provider, waive | frozenset(LIMITS).intersection(missing), tuple(lines))
    raise EnvironmentMissing(f"no sandbox tier works here: {'; '.join(lines)}")
