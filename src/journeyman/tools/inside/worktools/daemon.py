"""Serve requests in a sandbox whose supervisor is a shell: named pipes in, named pipes out, a forked child per request.

    python3 -I -S daemon.py KIND DIRECTORY LIB FORKSERVER_DIRECTORY

KIND says what is loaded before the first request, and so how much a child costs: ``plain`` is the standard library
and the tools that read no office file, ``parsers`` the libraries too (``kinds.py``). The program goes into the
background once its pipes are there, and prints its process id.

The shell writes a frame (4-byte length, request) to ``DIRECTORY/in`` and reads the answer (status byte, body) from
``DIRECTORY/out0`` and ``out1`` by turns. This program holds the pipe of an answer open until the answer is written: a
reader sees its end, and sees the end at once when this program is killed. The modules are loaded once; each child has
them and dies with its request.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import sys
from pathlib import Path
from typing import Any

#: Pipes of answers, taken by turns.
OUTS = ("out0", "out1")

#: Wall-clock of a request that names no other bound, seconds.
DEADLINE_S = 120.0

#: Loaded before the first request, since loading takes longer than most requests.
PLAIN = (
    *("json", "hashlib", "difflib", "sqlite3", "mailbox", "email.policy", "email.parser", "zoneinfo", "fnmatch"),
    *("worktools.filesystem", "worktools.mail", "worktools.chat", "worktools.calendar", "worktools.search"),
    *("worktools.code", "worktools.output"),
)
PARSERS = (
    *("zipfile", "json", "hashlib", "difflib", "lxml.etree", "openpyxl", "docx", "pptx", "PIL.Image", "pypdfium2"),
    *("python_calamine", "formualizer", "officedocs.opening", "officedocs.xlsx.editing", "officedocs.docx.reader"),
    *("officedocs.pptx.reader", "officedocs.xlsx.reading", "officedocs.pdf", "officedocs.docx.edits", "sqlite3"),
    *("csv", "officedocs.delimited.editing", "officedocs.delimited.reading", "officedocs.delimited.writing"),
    *("officedocs.xlsx.engines.embedded", "PIL.BmpImagePlugin", "PIL.GifImagePlugin", "PIL.PpmImagePlugin"),
    *("PIL.JpegImagePlugin", "PIL.PngImagePlugin", "encodings.utf_16_le"),
    *("worktools.filesystem", "worktools.spreadsheets", "worktools.documents", "worktools.pdfs"),
    *("worktools.presentations", "worktools.mail", "worktools.chat", "worktools.calendar", "worktools.search"),
)
PRELOADED = {"plain": PLAIN, "parsers": PARSERS}


def preload(names: tuple[str, ...] = PARSERS) -> None:
    """Load what calls need; what is not installed here is missed by the call that needs it."""
    gc.disable()
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:
            continue
    gc.collect()
    gc.freeze()
    gc.enable()


def rehearse(times: int = 1) -> None:
    """Open one small file of the commonest kinds: what a library prepares with its first file, every child then has.

    Args:
        times: more than once for a server that lives long: Python adapts what it runs some eight times, and a child
            pays for each page that it is the first to write.
    """
    with contextlib.suppress(Exception):
        from officedocs import open_document

        files = samples(all_kinds=times > 1)
        for _ in range(times):
            for name, data in files.items():
                open_document(data, name)


def samples(*, all_kinds: bool = False) -> dict[str, bytes]:
    """Name -> bytes of small files."""
    from io import BytesIO

    from openpyxl import Workbook

    buffer = BytesIO()
    Workbook().save(buffer)
    found = {"a.xlsx": buffer.getvalue(), "a.csv": b"a,b\n1,2\n"}
    if all_kinds:
        from docx import Document

        document = Document()
        document.add_heading("Terms", 1)
        document.add_paragraph("The price is due.")
        document.add_table(2, 2).cell(0, 0).text = "client"
        document.save(buffer := BytesIO())
        found["a.docx"] = buffer.getvalue()
        found["a.pdf"] = small_pdf()
        found["a.eml"] = b"From: a@a.example\nTo: b@b.example\nSubject: terms\n\nThe price is due.\n"
    return found


def small_pdf() -> bytes:
    """A page with some lines, its table of objects left to the reader."""
    lines = b" T* ".join(b"(Line %d: 1,200 USD is due on 31 March 2025.) Tj" % n for n in range(1, 9))
    content = b"BT /F1 11 Tf 72 720 Td 14 TL " + lines + b" ET"
    bodies = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    objects = b"".join(b"%d 0 obj%sendobj\n" % item for item in enumerate(bodies, start=1))
    return b"%PDF-1.4\n" + objects + b"trailer<</Root 1 0 R/Size 6>>\n%%EOF\n"


def to_background(home: Path) -> None:
    """Go on in a child, whose process id is kept and printed; the program that was started ends."""
    child = os.fork()
    if child:
        (home / "pid").write_text(str(child))
        os.write(1, f"{child}\n".encode())
        os._exit(0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def open_pipes(home: Path) -> tuple[int, list[int]]:
    """Make the pipes and hold them open: a request into a pipe that nobody holds is lost when its writer closes it."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("in", *OUTS):
        if not (home / name).exists():
            os.mkfifo(home / name, 0o600)
    return os.open(home / "in", os.O_RDWR), [os.open(home / name, os.O_RDWR) for name in OUTS]


def serve(home: Path, requests: int, held: list[int], forkserver: Any, handle: Any) -> None:
    """Answer what comes through the pipes of ``home``, open as ``open_pipes`` gives them, until killed."""
    os.dup2(requests, 0)
    outs = tuple(home / name for name in OUTS)
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
        try:
            answer = forkserver.collect(child, answer_fd, DEADLINE_S)
        except forkserver.OutOfStep as error:  # the next call starts this program anew
            forkserver.write_all(held[turn % 2], bytes([forkserver.KILLED]) + str(error).encode())
            return
        forkserver.write_all(held[turn % 2], answer or bytes([forkserver.KILLED]) + b"no request arrived")
        os.close(held[turn % 2])  # the end of the answer
        turn += 1


def main() -> None:
    """Load, make the pipes, go into the background, serve until killed."""
    kind, directory, library, forkserver_directory = sys.argv[1:5]
    sys.path[:0] = [library, forkserver_directory]
    forkserver = importlib.import_module("forkserver")
    importlib.import_module("worktools.kinds").be(kind)
    handle = importlib.import_module("worktools.serve").handle
    preload(PRELOADED[kind])
    if kind == "parsers":
        rehearse()
        forkserver.settle()  # the other holds so little that large pages would only cost memory
    home = Path(directory)
    requests, held = open_pipes(home)  # before anybody is told that this program is ready
    to_background(home)
    serve(home, requests, held, forkserver, handle)


if __name__ == "__main__":
    main()
