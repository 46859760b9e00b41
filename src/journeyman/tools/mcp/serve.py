"""``serve_world``: everything between the command line and the last process of a served world."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack

from journeyman.errors import EnvironmentMissing, InputError
from journeyman.tools.mcp.endpoints import serve_http, serve_stdio
from journeyman.tools.mcp.world import WorldSpec, opened

CLOSE_S = 20.0
"""After this, an end that hangs is cut off; the sandbox dies with the process."""


def serve_world(
    spec: WorldSpec, *, http: str | None, token: str | None, with_parent: bool = False, as_json: bool = False
) -> int:
    """Serve a world over standard streams, or over HTTP at ``HOST:PORT``, until told to end.

    Raises:
        InputError: an address, a directory, a server or a file of faults that cannot be used.
        EnvironmentMissing: the extra ``mcp`` or the sandbox is not there.
    """
    address = None if http is None else _address(http)
    try:
        import mcp  # noqa: F401
    except ImportError as error:
        raise EnvironmentMissing("serving tools needs the protocol's SDK; pip install 'journeyman[mcp]'") from error
    with ExitStack() as stack:
        tools = stack.enter_context(opened(spec))

        def close() -> None:
            guard = threading.Timer(CLOSE_S, os._exit, (EnvironmentMissing.exit_code,))
            guard.daemon = True
            guard.start()
            stack.close()
            guard.cancel()

        if address is None:
            return serve_stdio(tools, close)
        try:
            return serve_http(tools, *address, token=token, with_parent=with_parent, as_json=as_json)
        finally:
            close()


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise InputError("--http", f"is {text!r}", allowed="HOST:PORT, e.g. 127.0.0.1:8931 or [::1]:0")
    return host.strip("[]"), int(port)
