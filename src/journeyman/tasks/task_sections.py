"""The tables of ``task.toml`` that describe where a task runs and how it is graded, one model each.

Keys and defaults: harness.md 4.2 and Harbor 0.26. Times are seconds, sizes MB.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from journeyman.tasks.field_types import (
    Cores,
    Count,
    Destination,
    Hosts,
    Megabytes,
    NetworkMode,
    OldSize,
    OperatingSystem,
    SandboxPath,
    Seconds,
    SecondsOrZero,
    Section,
    ServiceName,
    User,
    size_mb,
)


class Network(Section):
    """What may be reached; a section that is silent (None) leaves the environment's setting."""

    network_mode: NetworkMode | None = None
    allowed_hosts: Hosts = ()

    @model_validator(mode="after")
    def _hosts_need_an_allowlist(self) -> Network:
        if self.allowed_hosts and self.network_mode != "allowlist":
            raise ValueError("allowed_hosts is only valid with network_mode = 'allowlist'")
        return self


class Agent(Network):
    """``[agent]``. ``timeout_sec`` None: no limit."""

    timeout_sec: Seconds | None = None
    user: User | None = None


class Healthcheck(Section):
    """A command that must succeed before the agent starts."""

    command: str
    interval_sec: Seconds = 5
    timeout_sec: Seconds = 30
    start_period_sec: SecondsOrZero = 0
    start_interval_sec: Seconds = 5
    retries: Count = 3


class Tpu(Section):
    type: Annotated[str, Field(min_length=1)]
    topology: Annotated[str, Field(pattern=r"^\s*[1-9]\d*(x[1-9]\d*)+\s*$")]


_CREDENTIAL = re.compile(r"auth|cookie|token|secret|key|password|credential", re.IGNORECASE)
_TEMPLATE = re.compile(r"\s*([A-Za-z][\w-]*\s+)?\$\{[A-Za-z_]\w*(:-)?\}\s*")


def _is_template(value: Any) -> Any:
    return "streamable-http" if value == "http" else value


class McpServer(Section):
    """A tool server of the environment. Credentials in headers are written as ``${VAR}`` and never as themselves."""

    name: str
    transport: Annotated[Literal["sse", "streamable-http", "stdio"], BeforeValidator(_is_template)] = "sse"
    url: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    headers: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _transport_has_its_fields(self) -> McpServer:
        if self.transport == "stdio":
            if not self.command:
                raise ValueError("transport 'stdio' needs command")
            if self.headers:
                raise ValueError("headers need an HTTP transport")
        elif not self.url:
            raise ValueError(f"transport {self.transport!r} needs url")
        for name, value in self.headers.items():
            if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or re.search(r"[\r\n]", value):
                raise ValueError(f"{name!r} is no header")
            if _CREDENTIAL.search(name) and value.strip() and not _TEMPLATE.fullmatch(value):
                raise ValueError(f"header {name} holds a credential; allowed: ${{VARIABLE}}, also after a scheme")
        return self


class Environment(Network):
    """``[environment]`` and ``[verifier.environment]``; ``memory``, ``storage``, ``allow_internet`` are old keys."""

    network_mode: NetworkMode = "public"
    build_timeout_sec: Seconds = 600
    docker_image: str | None = None
    os: OperatingSystem = "linux"
    cpus: Cores | None = None
    memory_mb: Megabytes | None = None
    storage_mb: Megabytes | None = None
    gpus: Count | None = None
    gpu_types: tuple[str, ...] = ()
    tpu: Tpu | None = None
    env: dict[str, str] = Field(default_factory=dict)
    skills_dir: str | None = None
    workdir: str | None = None
    mcp_servers: tuple[McpServer, ...] = ()
    healthcheck: Healthcheck | None = None
    memory: OldSize | None = None
    storage: OldSize | None = None
    allow_internet: bool | None = None

    @model_validator(mode="after")
    def _old_and_new_sizes_agree(self) -> Environment:
        for old, new in (("memory", self.memory_mb), ("storage", self.storage_mb)):
            text = getattr(self, old)
            if text is not None and new is not None and size_mb(text) != new:
                raise ValueError(f"{old} is {size_mb(text)} MB, but {old}_mb {new}")
        return self

    @property
    def memory_limit_mb(self) -> int | None:
        """``memory_mb``, or the old ``memory`` in MB."""
        return self.memory_mb if self.memory is None else size_mb(self.memory)

    @property
    def network(self) -> NetworkMode:
        """``network_mode``, or what the old ``allow_internet`` meant where no mode is given."""
        if self.allow_internet is None or {"network_mode", "allowed_hosts"} & self.model_fields_set:
            return self.network_mode
        return "public" if self.allow_internet else "no-network"


class Collect(Section):
    """``[[verifier.collect]]``: a command after the agent ended that turns state of a service into files."""

    command: str
    service: ServiceName = "main"
    timeout_sec: Seconds = 60
    user: User | None = None


VerifierMode = Literal["shared", "separate"]


class Verifier(Network):
    """``[verifier]``."""

    timeout_sec: Seconds = 600
    env: dict[str, str] = Field(default_factory=dict)
    user: User | None = None
    environment_mode: VerifierMode | None = None
    environment: Environment | None = None
    collect: tuple[Collect, ...] = ()

    @model_validator(mode="after")
    def _a_shared_verifier_has_no_environment(self) -> Verifier:
        if self.environment_mode == "shared" and self.environment is not None:
            raise ValueError("environment_mode 'shared' and a [verifier.environment] exclude each other")
        return self

    @property
    def declared_mode(self) -> VerifierMode | None:
        """``separate`` also where only an environment is given; None where nothing is said."""
        return self.environment_mode or ("separate" if self.environment is not None else None)


class Artifact(Section):
    """A file or directory taken from the agent's sandbox when it has ended.

    Attributes:
        source: path inside, relative to the working directory or absolute.
        destination: where below ``artifacts/``; None: the source without its leading slash.
        exclude: patterns that are left out of a directory.
        service: which container; only ``main`` exists in a sandbox of one container.
    """

    source: SandboxPath
    destination: Destination = None
    exclude: tuple[str, ...] = ()
    service: ServiceName = "main"

    @model_validator(mode="after")
    def _other_services_need_absolute_paths(self) -> Artifact:
        if self.service != "main" and not re.match(r"/|[A-Za-z]:[/\\]", self.source):
            raise ValueError(f"source {self.source!r} of service {self.service!r} must be absolute")
        return self


def _as_artifact(value: Any) -> Any:
    return {"source": value} if isinstance(value, str) else value


ArtifactEntry = Annotated[Artifact, BeforeValidator(_as_artifact)]
