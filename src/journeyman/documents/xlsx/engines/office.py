"""LibreOffice, where ``soffice`` is installed: one process per call, its own profile, killed at the deadline."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from ..book import load
from . import Place, Result

LIMIT_S = 60.0

_ALWAYS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load"><prop oor:name="OOXMLRecalcMode" oor:op="fuse">
<value>0</value></prop></item></oor:items>
"""
"""Settings of a profile: compute every formula when a file is opened. By default stored values are believed."""


def program() -> str:
    """Path of the program. Raises ValueError where it is not installed."""
    import shutil

    found = shutil.which("soffice") or shutil.which("libreoffice")
    if found is None:
        raise ValueError("LibreOffice is not installed")
    return found


def resave(data: bytes, limit_s: float = LIMIT_S) -> bytes:
    """The workbook as LibreOffice recalculates and saves it. Raises ValueError, also when the deadline passes."""
    import os
    import signal
    import subprocess
    import tempfile

    command = program()
    with tempfile.TemporaryDirectory(prefix="office-") as folder:
        source, out = Path(folder) / "in" / "book.xlsx", Path(folder) / "out"
        source.parent.mkdir()
        source.write_bytes(data)
        profile = Path(folder) / "profile"
        (profile / "user").mkdir(parents=True)
        (profile / "user" / "registrymodifications.xcu").write_text(_ALWAYS)
        arguments = [
            command, f"-env:UserInstallation={profile.as_uri()}", "--headless", "--norestore",
            "--convert-to", "xlsx:Calc MS Excel 2007 XML", "--outdir", str(out), str(source),
        ]  # fmt: skip
        process = subprocess.Popen(
            arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise ValueError(f"LibreOffice did not end within {limit_s:g} s") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        made = out / "book.xlsx"
        if not made.exists():
            raise ValueError("LibreOffice wrote no file")
        return made.read_bytes()


def evaluate(data: bytes, cells: list[Place], clock: datetime, epoch: int) -> dict[Place, Result]:
    """The value of each cell as a conversion stores it. Raises ValueError."""
    book = load(resave(data), "book.xlsx", is_light=True)
    sheets = {sheet.name: sheet.cells for sheet in book.sheets}
    found: dict[Place, Result] = {}
    for sheet, row, column in cells:
        cell = sheets.get(sheet, {}).get((row, column))
        if cell is None or cell.value is None:
            found[sheet, row, column] = "?", "no cached value"
        else:
            found[sheet, row, column] = cell.kind, cell.value
    return found


def knows(function: str) -> bool:
    """Not asked: one call costs a process."""
    return True
