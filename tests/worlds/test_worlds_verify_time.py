"""What a delivered program may take is time that it ran: the load of the grader's machine does not decide."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from journeyman.worlds.verify.inside.worldverify.casecode import PATIENCE, is_over

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


def test_a_program_that_waits_for_the_machine_is_given_more_time_and_one_that_sleeps_is_not():
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        while True:  # until it sleeps
            with open(f"/proc/{sleeper.pid}/stat", "rb") as file:
                if file.read().rpartition(b")")[2].split()[0] == b"S":
                    break
            time.sleep(0.01)
        assert not is_over(sleeper.pid, 4.9, 5.0)
        assert is_over(sleeper.pid, 5.1, 5.0)
    finally:
        sleeper.kill()
        sleeper.wait()
    me = os.getpid()  # running, and far from having run for an hour
    assert not is_over(me, 3601.0, 3600.0)
    assert is_over(me, PATIENCE * 3600.0 + 1, 3600.0)
    assert is_over(me, 0.02, 0.01)  # it has run for longer than that


def test_a_process_that_is_gone_has_had_its_time():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert is_over(gone.pid, 5.1, 5.0)
