"""Every tool by its public name: schema, description, contract; readable without a sandbox or a heavy import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from journeyman.documents.node import nearest_of
from journeyman.errors import InputError
from journeyman.tools.inside.worktools.signatures import SERVERS

Contract = Literal["pure", "idempotent", "probe", "unsafe"]


@dataclass(frozen=True)
class ToolSpec:
    """What is known of a tool before it runs.

    Attributes:
        name: public name, ``<server>_<tool>``.
        server: key of ``SERVERS``.
        description: what the policy is told.
        schema: JSON schema of the arguments.
        contract: ``pure``: same files, same answer, nothing changes; ``idempotent``: twice is once; ``probe``: changes
            nothing, may answer otherwise next time; ``unsafe``: twice differs.
        reads: name of the argument that names the only file a pure answer depends on, or "".
    """

    name: str
    server: str
    description: str
    schema: Mapping[str, Any]
    contract: Contract
    reads: str = ""


SURFACE: Mapping[str, ToolSpec] = MappingProxyType(
    {
        f"{server}_{short}": ToolSpec(f"{server}_{short}", server, s.description, s.schema, s.contract, s.reads)
        for server, tools in SERVERS.items()
        for short, s in tools.items()
    }
)
"""Public name -> tool, in the order in which they are offered."""

WEB_SERVERS = ("web", "academic")
"""Servers that run beside the sandbox, because nothing inside reaches a network."""

INSIDE_SERVERS = tuple(server for server in SERVERS if server not in WEB_SERVERS)
"""Servers that run in the sandbox."""


def specs_of(servers: Sequence[str]) -> dict[str, ToolSpec]:
    """The tools of some servers. Raises InputError for a server that does not exist, with the nearest one."""
    unknown = [server for server in servers if server not in SERVERS]
    if unknown:
        near = nearest_of(unknown[0], SERVERS)
        hint = f"did you mean {near[0]}?" if near else None
        raise InputError("tools.servers", f"no server {unknown[0]!r}", allowed=", ".join(SERVERS), hint=hint)
    return {name: spec for name, spec in SURFACE.items() if spec.server in servers}
