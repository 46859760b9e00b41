"""``serve``: three fixed names of a run directory over HTTP on loopback, until Ctrl-C."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from journeyman.errors import InputError

HOST = "127.0.0.1"
PORTS = range(8730, 8750)
"""Tried in this order when no port is given."""

_TYPES = {
    "report.html": "text/html; charset=utf-8",
    "report.json": "application/json",
    "report.md": "text/markdown; charset=utf-8",
}
_SERVED = {"/": "report.html", **{f"/{name}": name for name in _TYPES}}
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Viewer(ThreadingHTTPServer):
    """A listening server for the report in ``directory``; ``url`` is where the report is."""

    def __init__(self, directory: Path, port: int) -> None:
        self.directory = directory
        super().__init__((HOST, port), _Handler)
        self.url = f"http://{HOST}:{self.server_port}/"


def open_viewer(directory: Path, port: int | None = None) -> Viewer:
    """Listen for readers of the report in ``directory``.

    Args:
        port: this port and no other, 0 for any free one; None tries ``PORTS``.

    Raises:
        InputError: there is no report, or no port is free.
    """
    if not (directory / "report.html").is_file():
        problem = "holds no report.html" if directory.is_dir() else "is no directory"
        raise InputError(str(directory), problem, hint="give the run directory that a finished step printed")
    for candidate in PORTS if port is None else [port]:
        try:
            return Viewer(directory, candidate)
        except OSError:
            continue
    taken = f"{PORTS.start} to {PORTS.stop - 1} are" if port is None else f"{port} is"
    raise InputError("--port", f"{taken} not free on {HOST}", hint="--port 0 takes any free port")


def serve(directory: Path, *, port: int | None = None, as_json: bool = False) -> int:
    """Serve the report of ``directory`` until Ctrl-C; prints the address first, as JSON when ``as_json``.

    Returns:
        0: Ctrl-C is how a reader leaves.

    Raises:
        InputError: as ``open_viewer``.
    """
    viewer = open_viewer(directory, port)
    line = json.dumps({"url": viewer.url}) if as_json else f"{viewer.url}  (Ctrl-C ends)"
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
        viewer.serve_forever()
    except KeyboardInterrupt:
        return 0
    finally:
        viewer.server_close()
    return 0


class _Handler(BaseHTTPRequestHandler):
    """GET and HEAD of the served names, for requests whose Host and Origin are this server's own."""

    server: Viewer
    server_version = "journeyman"
    sys_version = ""

    def do_GET(self) -> None:
        own = {f"{HOST}:{self.server.server_port}", f"localhost:{self.server.server_port}"}
        origin = self.headers.get("Origin")
        if self.headers.get("Host") not in own or (origin is not None and origin.removeprefix("http://") not in own):
            return self._answer(403, "text/plain", b"this viewer answers its own address only\n")
        name = _SERVED.get(self.path)
        try:
            body = (self.server.directory / name).read_bytes() if name else None
        except OSError:
            body = None
        if name is None or body is None:
            return self._answer(404, "text/plain", b"not here; the report is at /\n")
        return self._answer(200, _TYPES[name], body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal belongs to the reader."""

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
