"""Types of single fields of ``task.toml``: times, sizes, paths inside a sandbox, names, hosts."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

SCHEMA_VERSION = "1.4"
SCHEMA_MAJOR = "1"

NetworkMode = Literal["public", "no-network", "allowlist"]


class Section(BaseModel):
    """A table of the file. Unknown keys are kept, for the warnings."""

    model_config = ConfigDict(extra="allow", frozen=True)


def inside(path: str) -> str:
    """Refuse a path that could name something outside the directory it is taken from."""
    if not path or "\0" in path or ".." in re.split(r"[/\\]", path) or path.startswith("~"):
        raise ValueError(f"path {path!r} leaves the sandbox")
    return path


def relative_inside(path: str) -> str:
    """Refuse what is not a relative path with forward slashes that stays below ``/logs/artifacts``."""
    if path.startswith("/") or "\\" in path or re.match(r"[A-Za-z]:", path):
        raise ValueError(f"path {path!r} leaves the sandbox: it must be relative to /logs/artifacts")
    return inside(path)


def _destination(path: str) -> str | None:
    if not path:
        return None
    if relative_inside(path).strip("/") == "manifest.json":
        raise ValueError("manifest.json is the name of the list of what was collected")
    return path


def _known_major(version: str) -> str:
    if version.split(".")[0] != SCHEMA_MAJOR:
        raise ValueError(f"unknown schema version; allowed: {SCHEMA_MAJOR}.x (written for {SCHEMA_VERSION})")
    return version


def _organised(name: str) -> str:
    part = r"[A-Za-z0-9][A-Za-z0-9._-]*"
    if ".." in name or not re.fullmatch(f"{part}/{part}", name):
        raise ValueError("is no name of the form org/name (letters, digits, '.', '_', '-')")
    return name


def _service(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise ValueError("is no service name (letters, digits, '.', '_', '-')")
    return name


_DEVICE = re.compile(r"(CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(COM|LPT)[1-9¹²³])", re.IGNORECASE)


def _step_name(name: str) -> str:
    """A directory name on every system, or ValueError."""
    plain = name.strip() and name not in (".", "..") and not name.endswith((".", " "))
    if not plain or re.search(r'[<>:"/\\|?*\x00-\x1f\x7f]', name) or len(name.encode()) > 255:
        raise ValueError("is no portable directory name")
    if _DEVICE.fullmatch(name.partition(".")[0].rstrip(" ")):
        raise ValueError("is the name of a device on some systems")
    return name


def step_key(name: str) -> str:
    """What two step names may not share: file systems that fold case or normalise would mix them up."""
    return unicodedata.normalize("NFC", name).casefold()


def size_mb(text: str) -> int:
    """MB of a size such as ``2G``, ``512M`` or ``1024K`` (the deprecated spelling). Raises ValueError."""
    found = re.fullmatch(r"\s*([0-9.]+)\s*([GMK])\s*", text.upper())
    try:
        number = float(found[1]) if found else -1.0
    except ValueError:
        number = -1.0
    if not found or number <= 0:
        raise ValueError("is no size; allowed: a number and G, M or K")
    return int(number * {"G": 1024, "M": 1, "K": 1 / 1024}[found[2]])


def _size(text: str) -> str:
    size_mb(text)
    return text


def network_hosts(hosts: Sequence[str]) -> tuple[str, ...]:
    """Hosts of an allowlist, normalised: names, ``*.name``, addresses, networks. Raises ValueError for others."""
    return tuple(_host(host.strip().lower().rstrip(".")) for host in hosts)


def _host(host: str) -> str:
    try:
        if "/" in host and "%" not in host:
            return ipaddress.ip_network(host, strict=True).compressed
        if ":" in host and "%" not in host:
            return ipaddress.IPv6Address(host).compressed
    except ValueError:
        raise ValueError(f"{host!r} is no address or network (no URLs, ports or host bits)") from None
    name = host.removeprefix("*.")
    label = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
    is_wildcard_of_address = host.startswith("*.") and re.fullmatch(r"[0-9.]+", name)
    if not re.fullmatch(rf"{label}(\.{label})*", name) or is_wildcard_of_address:
        raise ValueError(f"{host!r} is no host; allowed: a name, *.name, an address, a network (no URL, port or path)")
    return host


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
SecondsOrZero = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Megabytes = Annotated[int, Field(gt=0, strict=True)]
Count = Annotated[int, Field(ge=0, strict=True)]
Cores = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
Finite = Annotated[float, Field(allow_inf_nan=False, strict=True)]
User = Annotated[int, Field(strict=True)] | str
SandboxPath = Annotated[str, AfterValidator(inside)]
DeliverablePath = Annotated[str, AfterValidator(relative_inside)]
Destination = Annotated[str | None, AfterValidator(lambda path: None if path is None else _destination(path))]
SchemaVersion = Annotated[str, AfterValidator(_known_major)]
OrgName = Annotated[str, AfterValidator(_organised)]
ServiceName = Annotated[str, AfterValidator(_service)]
StepName = Annotated[str, AfterValidator(_step_name)]
OldSize = Annotated[str, AfterValidator(_size)]
Hosts = Annotated[tuple[str, ...], AfterValidator(network_hosts)]
OperatingSystem = Annotated[Literal["linux", "windows"], BeforeValidator(_lower)]
