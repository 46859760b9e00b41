"""``task.toml`` of a Harbor task directory, schema 1.4, as models.

The models accept what Harbor 0.25 accepts and keep unknown keys, which ``unknown_keys`` lists so that a misspelt key is
reported instead of silently dropped. Defaults and key names: harness.md 4.2. Times are seconds, sizes MB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

SCHEMA_VERSION = "1.4"
SCHEMA_MAJOR = "1"

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
Megabytes = Annotated[int, Field(gt=0, strict=True)]
Count = Annotated[int, Field(ge=0, strict=True)]
NetworkMode = Literal["public", "no-network", "allowlist"]


def _inside(path: str) -> str:
    """Refuse a path that could name something outside the directory it is taken from."""
    if not path or "\0" in path or "\\" in path or ".." in path.split("/") or path.startswith("~"):
        raise ValueError(f"path {path!r} leaves the sandbox")
    return path


def _relative_inside(path: str) -> str:
    if path.startswith("/"):
        raise ValueError(f"path {path!r} leaves the sandbox: it must be relative to /logs/artifacts")
    return _inside(path)


def _known_major(version: str) -> str:
    if version.split(".")[0] != SCHEMA_MAJOR:
        raise ValueError(f"unknown schema version; allowed: {SCHEMA_MAJOR}.x (written for {SCHEMA_VERSION})")
    return version


SandboxPath = Annotated[str, AfterValidator(_inside)]
DeliverablePath = Annotated[str, AfterValidator(_relative_inside)]


class Section(BaseModel):
    """A table of the file. Unknown keys are kept, for the warnings."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Author(Section):
    name: str
    email: str | None = None


class TaskSection(Section):
    """``[task]``: identity."""

    name: str
    version: str | None = None
    description: str = ""
    authors: tuple[Author, ...] = ()
    keywords: tuple[str, ...] = ()


class Journeyman(Section):
    """``[metadata.journeyman]``: where a task of our own comes from.

    Attributes:
        deliverables: files below ``/logs/artifacts`` that are graded; a name that ends in ``/`` is a directory.
        inputs: world files that the prompt lists, of all that the agent may open; empty lists every file.
        exit_code: what a non-zero status of the test script means: ``error`` (a verifier error) or ``ignore`` (Harbor's
            rule: a valid reward file counts).
    """

    family: str
    world_id: str
    split: str
    world_digest: str
    deliverables: Annotated[tuple[DeliverablePath, ...], Field(min_length=1)]
    inputs: tuple[str, ...] = ()
    exit_code: Literal["error", "ignore"] = "error"


class Metadata(Section):
    """``[metadata]``: a free table, of which only our own part is typed."""

    journeyman: Journeyman | None = None


class Agent(Section):
    timeout_sec: Seconds | None = None
    user: str | int | None = None
    network_mode: NetworkMode | None = None
    allowed_hosts: tuple[str, ...] = ()


class Healthcheck(Section):
    command: str
    interval_sec: Seconds = 5
    timeout_sec: Seconds = 30
    start_period_sec: Annotated[float, Field(ge=0, strict=True)] = 0
    start_interval_sec: Seconds = 5
    retries: Count = 3


class McpServer(Section):
    name: str
    transport: Literal["sse", "streamable-http", "http", "stdio"] = "sse"
    url: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    headers: dict[str, str] = {}


class Environment(Section):
    build_timeout_sec: Seconds = 600
    docker_image: str | None = None
    os: Literal["linux", "windows"] = "linux"
    cpus: Annotated[float, Field(gt=0, strict=True)] | None = None
    memory_mb: Megabytes | None = None
    storage_mb: Megabytes | None = None
    gpus: Count | None = None
    gpu_types: tuple[str, ...] = ()
    tpu: dict[str, Any] | None = None
    env: dict[str, str] = {}
    skills_dir: str | None = None
    workdir: str | None = None
    network_mode: NetworkMode = "public"
    allowed_hosts: tuple[str, ...] = ()
    mcp_servers: tuple[McpServer, ...] = ()
    healthcheck: Healthcheck | None = None
    memory: str | None = None
    storage: str | None = None
    allow_internet: bool | None = None


class Collect(Section):
    command: str
    service: str = "main"
    timeout_sec: Seconds = 60
    user: str | int | None = None


class Verifier(Section):
    timeout_sec: Seconds = 600
    env: dict[str, str] = {}
    user: str | int | None = None
    environment_mode: Literal["shared", "separate"] | None = None
    network_mode: NetworkMode | None = None
    allowed_hosts: tuple[str, ...] = ()
    environment: Environment | None = None
    collect: tuple[Collect, ...] = ()


class Solution(Section):
    env: dict[str, str] = {}


class Artifact(Section):
    """A file or directory taken from the agent's sandbox when it has ended."""

    source: SandboxPath
    destination: Annotated[str, AfterValidator(_relative_inside)] | None = None
    exclude: tuple[str, ...] = ()
    service: str = "main"


def _as_artifact(value: Any) -> Any:
    return {"source": value} if isinstance(value, str) else value


class TaskToml(Section):
    """The whole file."""

    schema_version: Annotated[str, AfterValidator(_known_major)] = Field(
        default=SCHEMA_VERSION, validation_alias=AliasChoices("schema_version", "version")
    )
    source: str | None = None
    multi_step_reward_strategy: Literal["mean", "final"] = "mean"
    artifacts: tuple[Annotated[Artifact, BeforeValidator(_as_artifact)], ...] = ()
    task: TaskSection | None = None
    metadata: Metadata = Metadata()
    agent: Agent = Agent()
    environment: Environment = Environment()
    verifier: Verifier = Verifier()
    solution: Solution = Solution()
    steps: tuple[dict[str, Any], ...] = ()


def unknown_keys(section: Section, prefix: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Dotted path of each key that no model knows, with the names allowed in its table; ``[metadata]`` is free."""
    allowed = tuple(type(section).model_fields)
    if not isinstance(section, Metadata):
        yield from ((f"{prefix}{key}", allowed) for key in section.model_extra or {})
    for name in allowed:
        value = getattr(section, name)
        for index, child in enumerate(value if isinstance(value, tuple) else (value,)):
            if isinstance(child, Section):
                position = f"[{index}]" if isinstance(value, tuple) else ""
                yield from unknown_keys(child, f"{prefix}{name}{position}.")
