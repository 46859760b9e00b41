"""Which tool servers a trial uses: the ``mcpServers`` objects of common clients and of Archipelago, and Harbor's list.

    {"mcpServers": {"time": {"command": "mcp-server-time", "args": ["--local-timezone", "UTC"]},
                    "docs": {"url": "http://127.0.0.1:8931/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}}}

``${NAME}`` and ``${NAME:-default}`` in values are taken from the environment, so that a file holds no credential.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from journeyman.errors import InputError, nearest

Transport = Literal["stdio", "http", "sse"]

TRANSPORTS: dict[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "sse": "sse",
}
"""Every spelling in use -> ours."""

_KEYS = ("transport", "type", "command", "args", "env", "cwd", "url", "headers", "prefix", "standby", "name")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True)
class McpServer:
    """One server and how it is reached.

    Attributes:
        name: in errors and, with ``prefix``, before the names of its tools.
        transport: ``stdio`` starts a program; ``http`` is streamable HTTP; ``sse`` its predecessor.
        command: program of ``stdio``.
        args: its arguments.
        env: added to the few variables that a server inherits (HOME, LOGNAME, PATH, SHELL, TERM, USER).
        cwd: its working directory, None for ours.
        url: of ``http`` and ``sse``.
        headers: sent with every request; never shown.
        has_prefix: tools are offered as ``<name>_<tool>``.
        has_standby: a second program is kept ready, so that the death of the first costs no start.
    """

    name: str
    transport: Transport
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    has_prefix: bool = False
    has_standby: bool = False


def servers_of(
    document: Any, *, where: str = "mcpServers", environ: Mapping[str, str] | None = None
) -> tuple[McpServer, ...]:
    """Read a configuration of servers.

    Args:
        document: ``{"mcpServers": {name: ...}}``, the object below it, or a list whose entries have a ``name``
            (Harbor's ``[[environment.mcp_servers]]``, whose transport is ``sse`` when none is given).
        where: file or field, for errors.
        environ: variables for ``${NAME}``, None for those of this process.

    Tools of several servers carry the server's name as prefix, those of a single one do not; ``prefix`` in an entry
    decides otherwise.

    Raises:
        InputError: names entry and field.
    """
    environ = os.environ if environ is None else environ
    if isinstance(document, Mapping) and "mcpServers" in document:
        document, where = document["mcpServers"], f"{where}:mcpServers" if where != "mcpServers" else where
    if isinstance(document, Mapping):
        entries = [(str(name), entry, "http", f"{where}.{name}") for name, entry in document.items()]
    elif isinstance(document, Sequence) and not isinstance(document, str):
        entries = list(_harbor(document, where))
    else:
        raise InputError(where, f"is of type {type(document).__name__}", allowed="an object of servers, or a list")
    if not entries:
        raise InputError(where, "names no server")
    names = [name for name, *_ in entries]
    for name in names:
        if names.count(name) > 1:
            raise InputError(where, f"names the server {name!r} twice")
    return tuple(
        _server(name, entry, url_kind, place, environ, len(entries)) for name, entry, url_kind, place in entries
    )


def _harbor(entries: Sequence[Any], where: str) -> Iterator[tuple[str, Any, str, str]]:
    for index, entry in enumerate(entries):
        if hasattr(entry, "model_dump"):  # as ``tasks`` reads them
            entry = {key: value for key, value in entry.model_dump().items() if value not in (None, (), {})}
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise InputError(f"{where}[{index}].name", "is missing", allowed="a text")
        yield entry["name"], entry, "sse", f"{where}[{index}]"


def _server(
    name: str, entry: Any, url_kind: str, where: str, environ: Mapping[str, str], num_servers: int
) -> McpServer:
    if not _NAME.fullmatch(name):
        raise InputError(where, f"{name!r} is no name", allowed="1 to 64 of A-Z a-z 0-9 . _ -")
    if not isinstance(entry, Mapping):
        raise InputError(where, f"is of type {type(entry).__name__}", allowed="an object")
    for key in entry:
        if key not in _KEYS:
            found = nearest(str(key), _KEYS)
            hint = f"did you mean {found}?" if found else None
            raise InputError(f"{where}.{key}", "is no known field", allowed=", ".join(_KEYS[:-1]), hint=hint)
    given = entry.get("transport", entry.get("type", "stdio" if "command" in entry else url_kind))
    transport = TRANSPORTS.get(given) if isinstance(given, str) else None
    if transport is None:
        raise InputError(f"{where}.transport", f"is {given!r}", allowed=", ".join(TRANSPORTS))
    needed, useless = (
        ("command", ("url", "headers"))
        if transport == "stdio"
        else ("url", ("command", "args", "env", "cwd", "standby"))
    )
    for key in useless:
        if entry.get(key):
            raise InputError(f"{where}.{key}", f"has no meaning for transport {transport!r}")
    if not entry.get(needed):
        raise InputError(f"{where}.{needed}", "is missing", allowed=f"a text; transport {transport!r} needs it")
    prefix, standby = entry.get("prefix", num_servers > 1), entry.get("standby", False)
    for key, value in (("prefix", prefix), ("standby", standby)):
        if not isinstance(value, bool):
            raise InputError(f"{where}.{key}", f"is {value!r}", allowed="true or false")

    def text(key: str, value: Any) -> str:
        if not isinstance(value, str):
            raise InputError(f"{where}.{key}", f"is of type {type(value).__name__}", allowed="a text")
        return _filled(value, f"{where}.{key}", environ)

    def texts(key: str) -> dict[str, str]:
        values = entry.get(key) or {}
        if not isinstance(values, Mapping):
            raise InputError(f"{where}.{key}", f"is of type {type(values).__name__}", allowed="an object of texts")
        return {str(inner): text(f"{key}.{inner}", value) for inner, value in values.items()}

    args = entry.get("args") or ()
    if isinstance(args, str) or not isinstance(args, Sequence):
        raise InputError(f"{where}.args", f"is {args!r}", allowed="a list of texts")
    return McpServer(
        name=name,
        transport=transport,
        command=text("command", entry["command"]) if transport == "stdio" else None,
        args=tuple(text(f"args[{index}]", value) for index, value in enumerate(args)),
        env=texts("env"),
        cwd=text("cwd", entry["cwd"]) if entry.get("cwd") else None,
        url=text("url", entry["url"]) if transport != "stdio" else None,
        headers=texts("headers"),
        has_prefix=prefix,
        has_standby=standby,
    )


def _filled(value: str, where: str, environ: Mapping[str, str]) -> str:
    """The text with its variables filled in; a value is never shown."""

    def fill(match: re.Match[str]) -> str:
        found = environ.get(match[1], match[2])
        if found is None:
            raise InputError(where, f"names the variable {match[1]}, which is not set", hint=f"export {match[1]}=...")
        return found

    return _VARIABLE.sub(fill, value)
