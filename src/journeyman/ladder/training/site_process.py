"""The sampling process: opens the site a plan describes, then serves orders between two tokens until told to end.

It ends when the other end of its connection is gone, killed or not, and its sandboxes with it. (A signal at the
parent's death would come when the thread that started it ends.)
``python -m journeyman.ladder.training.site_process FD``.
"""

from __future__ import annotations

import signal
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from journeyman.engines.errors import EngineError
from journeyman.ladder.training.open_site import open_site
from journeyman.ladder.training.site import Site
from journeyman.ladder.training.weights import checked

POLL_S = 0.02
"""How long sampling goes on between two looks at what the trainer says."""
REPORT_EVERY_S = 0.5
"""Between two reports of gauges when nothing ended."""


def main(argv: list[str]) -> int:
    """Entry of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the trainer's business; it ends this process in order
    signal.signal(signal.SIGTERM, _leave)
    connection = Connection(int(argv[0]))
    kind, plan = connection.recv()
    assert kind == "open"
    site = open_site(plan)
    try:
        serve(site, connection)
    finally:
        site.close()
    return 0


def serve(site: Site, connection: Connection) -> None:
    """Obey until ``close`` or until the other end is gone."""
    reported_at = 0.0
    while True:
        try:
            while connection.poll():
                kind, value = connection.recv()
                if kind == "close":
                    return
                obey(site, connection, kind, value)
            arrivals = site.poll(POLL_S)
            if arrivals.trials or time.monotonic() - reported_at > REPORT_EVERY_S:
                connection.send(("arrivals", arrivals))
                reported_at = time.monotonic()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def obey(site: Site, connection: Connection, kind: str, value: Any) -> None:
    """One message of the trainer."""
    if kind == "submit":
        site.submit(value)
    elif kind == "cancel":
        site.cancel(value)
    elif kind == "limit":
        site.limit(value)
    elif kind == "weights":
        path, version = value
        try:
            site.engine.update_weights(checked(Path(path), version), version)
        except EngineError as error:
            connection.send(("refused", str(error)))
        else:
            connection.send(("version", version))


def _leave(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
