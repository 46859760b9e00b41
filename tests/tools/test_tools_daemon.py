"""The tools' program in a shell's sandbox: it is ready when it says so."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from journeyman.tools.inside.worktools.daemon import open_pipes


def test_a_request_that_comes_before_the_program_serves_is_not_lost(tmp_path: Path):
    requests, held = open_pipes(tmp_path / "pipes")
    try:
        writer = os.open(tmp_path / "pipes" / "in", os.O_RDWR | os.O_NONBLOCK)
        os.write(writer, b"\0\0\0\2{}")
        os.close(writer)  # as the shell does it, maybe before the program looks
        assert os.read(requests, 6) == b"\0\0\0\2{}"
        assert [stat.S_ISFIFO(os.fstat(one).st_mode) for one in held] == [True, True]
    finally:
        for one in (requests, *held):
            os.close(one)
