"""``serve_world``: everything between the command line and the last process of a served world."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec

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
    if find_spec("mcp") is None:
        raise EnvironmentMissing("serving tools needs the protocol's SDK; pip install 'journeyman[mcp]'")
    with ExitStack() as stack:
        with _sdk_loading():
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


@contextmanager
def _sdk_loading() -> Iterator[None]:
    """Load the SDK beside what the block does; it is there when the block ends. Without collections, which find nothing
    in classes that stay."""
    gc.disable()
    thread = threading.Thread(target=partial(import_module, "mcp.server.lowlevel"), name="mcp-sdk", daemon=True)
    thread.start()
    try:
        yield
        thread.join()
    finally:
        gc.freeze()
        gc.enable()


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise InputError("--http", f"is {text!r}", allowed="HOST:PORT, e.g. 127.0.0.1:8931 or [::1]:0")
    return host.strip("[]"), int(port)
