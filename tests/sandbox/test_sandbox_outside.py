"""What is read of a sandbox from outside: its regular files, by no way that leads out of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from journeyman.sandbox import outside
from journeyman.sandbox.protocol import Sandbox
from journeyman.trials.collect import MAX_FILES, collect_files

FOLDER = "mkdir -p /tmp/logs/artifacts && cd /tmp/logs/artifacts && "


def num_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def delivered(open_bwrap: Callable[..., Sandbox]) -> Callable[[str], dict[str, bytes]]:
    """What is collected after a shell line, once from outside and once by commands inside; both have to be the same."""

    def of(line: str) -> dict[str, bytes]:
        sandbox = open_bwrap()
        assert sandbox.exec(line, deadline_s=20).return_code == 0
        found = collect_files(sandbox, "/tmp/logs", 20, 10)
        sandbox._has_root = False  # type: ignore[attr-defined]
        assert collect_files(sandbox, "/tmp/logs", 20, 10) == found
        sandbox.destroy()
        return found

    return of


def test_files_in_folders_come_with_their_bytes_and_hard_links_twice(
    delivered: Callable[..., object],
) -> None:
    line = f"{FOLDER}mkdir in && printf a >b && printf '' >empty && printf c >in/d && ln b in/e"
    assert delivered(line) == {"b": b"a", "empty": b"", "in/d": b"c", "in/e": b"a"}


def test_without_the_folder_nothing_was_delivered(delivered: Callable[..., object]) -> None:
    assert delivered("true") == {}
    assert delivered("mkdir /tmp/logs") == {}


@pytest.mark.parametrize("line", ["ln -s /etc/passwd a", "ln -s /etc a", "mkfifo a", "ln -s ../../ws a"])
def test_links_and_pipes_are_not_opened(delivered: Callable[..., object], line: str) -> None:
    assert delivered(f"{FOLDER}{line} && printf 1 >z") == {"z": b"1"}


def test_a_link_in_place_of_the_folder_leads_nowhere(delivered: Callable[..., object], tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the host")
    assert delivered(f"mkdir /tmp/logs && ln -s {tmp_path} /tmp/logs/artifacts") == {}


def test_a_link_above_the_folder_is_followed_inside_only(delivered: Callable[..., object]) -> None:
    line = "mkdir -p /tmp/own/artifacts && printf 1 >/tmp/own/artifacts/a && ln -s /tmp/own /tmp/logs"
    assert delivered(line) == {"a": b"1"}


def test_more_files_than_a_verifier_reads_are_cut_and_the_depth_is_bounded(
    open_bwrap: Callable[..., Sandbox],
) -> None:
    sandbox = open_bwrap()
    deep = "/".join(["d"] * (outside.MAX_DEPTH + 2))
    many = f"i=0; while [ $i -lt {MAX_FILES + 5} ]; do : >f$i; i=$((i+1)); done"
    assert sandbox.exec(f"{FOLDER}mkdir -p {deep} && printf 1 >{deep}/a && {many}", deadline_s=20).return_code == 0
    before = num_descriptors()
    found = collect_files(sandbox, "/tmp/logs", 20, 10)
    assert len(found) == MAX_FILES
    assert all("/" not in name for name in found)
    assert num_descriptors() == before
    sandbox.destroy()


def test_a_sandbox_that_ended_has_no_root(open_bwrap: Callable[..., Sandbox]) -> None:
    sandbox = open_bwrap()
    root = sandbox.root()
    assert root is not None
    os.close(root)
    sandbox.destroy()
    assert sandbox.root() is None
