"""A program on a leash ends with its owner, and everything that it started ends with it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from journeyman.sandbox.leash import leashed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
FAMILY = "echo $$; setsid sleep 600 & echo $!; exec sleep 600"
"""Prints the ids of a program and of a child in a session of its own."""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def all_gone(pids: list[int], limit_s: float = 10.0) -> bool:
    until = time.monotonic() + limit_s
    while any(map(is_alive, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(map(is_alive, pids))


def test_a_program_has_the_streams_and_gives_its_status() -> None:
    done = subprocess.run(
        leashed(["sh", "-c", "cat; echo said >&2; exit 3"]), input="given", capture_output=True, text=True, timeout=20
    )
    assert (done.stdout, done.stderr, done.returncode) == ("given", "said\n", 3)


def test_what_a_program_left_in_another_session_ends_as_soon_as_it_has_ended() -> None:
    done = subprocess.run(
        leashed(["sh", "-c", "setsid sleep 600 >/dev/null & echo $!"]), capture_output=True, text=True, timeout=20
    )
    assert all_gone([int(done.stdout)], 1.0)


@pytest.mark.parametrize("has_pipe", [False, True])
def test_killing_the_owner_ends_all_of_it(has_pipe: bool) -> None:
    words = leashed(["sh", "-c", FAMILY], grace_s=0.2, has_pipe=has_pipe)
    owner = f"import subprocess; p = subprocess.Popen({words!r}, stdin=subprocess.PIPE); p.wait()"
    with subprocess.Popen([sys.executable, "-c", owner], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(process.stdout.readline()) for _ in range(2)]
        process.kill()
        assert all_gone(pids)


@pytest.mark.parametrize("how", ["told", "closed"])
def test_being_told_or_the_end_of_the_pipe_ends_all_of_it(how: str) -> None:
    words = leashed(["sh", "-c", FAMILY], grace_s=0.2, has_pipe=True)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        pids = [int(holder.stdout.readline()) for _ in range(2)]
        if how == "told":
            holder.terminate()
        else:
            holder.stdin.close()
        assert all_gone(pids)
        assert holder.wait(timeout=10) != 0


def test_what_a_program_says_before_it_ends_at_once_is_passed_on_every_time() -> None:
    words = leashed(["sh", "-c", "echo no licence >&2; exit 3"])
    for _ in range(15):
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)
        assert (done.returncode, done.stderr) == (3, "no licence\n")
