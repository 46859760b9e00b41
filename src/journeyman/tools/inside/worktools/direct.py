"""Serve requests one after another in one process: for a world whose files and requests are all one's own.

    python3 -I -S direct.py LIB FORKSERVER_DIRECTORY

The same frames and the same answers as ``frames`` under the fork server. What a request costs is its work alone, and a
library is loaded by the first one that needs it; but one that hangs or is killed ends the program.
"""

from __future__ import annotations

import importlib
import os
import signal
import struct
import sys


def main() -> None:
    """Answer frames until the input ends."""
    sys.path[:0] = sys.argv[1:3]
    forkserver = importlib.import_module("forkserver")
    handle = importlib.import_module("worktools.serve").handle
    requests, answers = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):  # a library that prints, and what a request starts, must not reach the frames
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    while len(header := forkserver.read_exactly(requests, 4)) == 4:
        payload = forkserver.read_exactly(requests, struct.unpack(">I", header)[0])
        try:
            answer = bytes([forkserver.OK]) + handle(payload)
        except BaseException as error:  # whatever it is, it belongs to this request
            answer = bytes([forkserver.RAISED]) + f"{type(error).__name__}\n{error}".encode(errors="replace")
        signal.setitimer(signal.ITIMER_REAL, 0)
        forkserver.sweep()
        forkserver.write_all(answers, struct.pack(">I", len(answer)) + answer)


if __name__ == "__main__":
    main()
