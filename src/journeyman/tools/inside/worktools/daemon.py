"""Serve requests in a sandbox whose supervisor is a shell: named pipes in, named pipes out, a forked child per request.

    python3 -I -S daemon.py DIRECTORY LIB FORKSERVER_DIRECTORY

The shell writes a frame (4-byte length, request) to ``DIRECTORY/in`` and reads the answer (status byte, body) from
``DIRECTORY/out``. The modules are loaded once; each child has them and dies with its request.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from pathlib import Path

#: Wall-clock of a request that names no other bound, seconds.
DEADLINE_S = 120.0

#: Loaded before the first request, since loading takes longer than most requests.
PRELOADED = (
    *("zipfile", "json", "hashlib", "difflib", "lxml.etree", "openpyxl", "docx", "pptx", "PIL.Image", "pypdfium2"),
    *("python_calamine", "formualizer", "officedocs.opening", "officedocs.xlsx.editing", "officedocs.docx.reader"),
    *("officedocs.pptx.reader", "officedocs.xlsx.reading", "officedocs.pdf", "officedocs.docx.edits", "sqlite3"),
    *("worktools.filesystem", "worktools.spreadsheets", "worktools.documents", "worktools.pdfs"),
    *("worktools.presentations", "worktools.mail", "worktools.chat", "worktools.calendar", "worktools.search"),
)


def preload() -> None:
    """Load what calls need; what is not installed here is missed by the call that needs it."""
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except Exception:
            continue
    gc.collect()
    gc.freeze()


def main() -> None:
    """Make the pipes, say that they are there, serve until killed."""
    directory, library, forkserver_directory = sys.argv[1:4]
    sys.path[:0] = [library, forkserver_directory]
    forkserver = importlib.import_module("forkserver")
    handle = importlib.import_module("worktools.serve").handle
    preload()
    home = Path(directory)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    into, out = home / "in", home / "out"
    for path in (into, out):
        if not path.exists():
            os.mkfifo(path, 0o600)
    (home / "pid.part").write_text(str(os.getpid()))
    (home / "pid.part").rename(home / "pid")  # whoever sees it sees all of it
    nowhere = os.open(os.devnull, os.O_RDONLY)
    while True:
        descriptor = os.open(into, os.O_RDONLY)
        os.dup2(descriptor, 0)
        os.close(descriptor)
        answer_fd, write_fd = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(answer_fd)
            forkserver.work(handle, write_fd, 0, None)
        os.close(write_fd)
        os.dup2(nowhere, 0)
        answer = forkserver.collect(child, answer_fd, DEADLINE_S)
        answer_to = os.open(out, os.O_WRONLY)
        try:
            forkserver.write_all(answer_to, answer or bytes([forkserver.KILLED]) + b"no request arrived")
        except BrokenPipeError:
            pass  # whoever asked was stopped meanwhile
        finally:
            os.close(answer_to)


if __name__ == "__main__":
    main()
