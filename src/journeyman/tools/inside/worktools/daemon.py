"""Serve requests in a sandbox whose supervisor is a shell: named pipes in, named pipes out, a forked child per request.

    python3 -I -S daemon.py DIRECTORY LIB FORKSERVER_DIRECTORY

The shell writes a frame (4-byte length, request) to ``DIRECTORY/in`` and reads the answer (status byte, body) from
``DIRECTORY/out0`` and ``out1`` by turns. This program holds the pipe of an answer open until the answer is written: a
reader sees its end, and sees the end at once when this program is killed. The modules are loaded once; each child has
them and dies with its request.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
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
    into, outs = home / "in", (home / "out0", home / "out1")
    for path in (into, *outs):
        if not path.exists():
            os.mkfifo(path, 0o600)
    os.dup2(os.open(into, os.O_RDWR), 0)  # held open for good, so that no request is lost between two
    held = [os.open(path, os.O_RDWR) for path in outs]
    (home / "pid.part").write_text(str(os.getpid()))
    (home / "pid.part").rename(home / "pid")  # whoever sees it sees all of it
    waiter = select.poll()
    waiter.register(0, select.POLLIN)
    turn = 0
    while True:
        waiter.poll()
        if turn:  # whoever read the last answer is done, or would not have asked again
            held[(turn - 1) % 2] = os.open(outs[(turn - 1) % 2], os.O_RDWR)
        answer_fd, write_fd = os.pipe()
        child = os.fork()
        if child == 0:
            for descriptor in (answer_fd, *held):
                os.close(descriptor)
            forkserver.work(handle, write_fd, 0, None)
        os.close(write_fd)
        answer = forkserver.collect(child, answer_fd, DEADLINE_S)
        forkserver.write_all(held[turn % 2], answer or bytes([forkserver.KILLED]) + b"no request arrived")
        os.close(held[turn % 2])  # the end of the answer
        turn += 1


if __name__ == "__main__":
    main()
