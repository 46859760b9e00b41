"""The sampling process: opens the site a plan describes, then serves orders between two tokens until told to end.

It ends when the other end of its connection is gone, killed or not, and its sandboxes with it. (A signal at the
parent's death would come when the thread that started it ends.)
``python -m journeyman.ladder.training.site_process FD``.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from journeyman.engines.errors import EngineError
from journeyman.errors import EnvironmentMissing, InputError
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
    try:
        site = open_site(plan)
    except (InputError, EnvironmentMissing, EngineError) as error:  # nothing that another start would mend
        connection.send(("unusable", (error.exit_code, str(error))))
        return error.exit_code
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
            if arrivals.trials or arrivals.probes or time.monotonic() - reported_at > REPORT_EVERY_S:
                gauges = replace(arrivals.gauges, cpu_s=used_s())
                connection.send(("arrivals", replace(arrivals, gauges=gauges)))
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
            site.update_weights(checked(Path(path), version), version)
        except EngineError as error:
            connection.send(("refused", str(error)))
        else:
            connection.send(("version", version))


def used_s() -> float:
    """Seconds of cores that this process and its ended children used."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _leave(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
