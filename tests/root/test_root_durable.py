"""A reader sees the old content or the new; a write that fails leaves neither a part nor a temporary file."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from journeyman.durable import publish_directory, write_bytes, write_json, write_text
from journeyman.errors import StorageError


def test_a_write_makes_its_directory_and_replaces_the_old_content(tmp_path):
    target = tmp_path / "deep" / "er" / "file.txt"
    write_text(target, "old")
    write_text(target, "new é")
    assert target.read_text(encoding="utf-8") == "new é"
    assert [p.name for p in target.parent.iterdir()] == ["file.txt"]


def test_json_refuses_nan_and_keeps_the_old_file(tmp_path):
    write_json(tmp_path / "x.json", {"a": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": 1}


def test_a_place_that_cannot_be_written_is_a_storage_error_that_names_it(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(StorageError, match="cannot be written") as caught:
        write_bytes(tmp_path / "taken", b"x")
    assert str(tmp_path / "taken") in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def test_a_file_over_the_size_limit_leaves_the_old_content_and_no_temporary_file(tmp_path):
    # RLIMIT_FSIZE stands in for a full disk: the kernel refuses the write half way, as it does there.
    script = """
import resource, signal, sys
from pathlib import Path
from journeyman.durable import write_bytes
from journeyman.errors import StorageError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
target = Path(sys.argv[1])
write_bytes(target, b"old")
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write_bytes(target, bytes(1_000_000))
except StorageError as error:
    sys.exit(7)
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "f")], check=False, timeout=60)
    assert done.returncode == 7
    assert (tmp_path / "f").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_kill_at_any_moment_leaves_the_old_or_the_new_content(tmp_path):
    script = """
import sys
from pathlib import Path
from journeyman.durable import write_bytes
target = Path(sys.argv[1])
print("ready", flush=True)
for n in range(1_000_000):
    write_bytes(target, bytes([n % 250]) * 200_000)
"""
    target = tmp_path / "f"
    write_bytes(target, b"\x00" * 200_000)
    for pause_s in (0.0, 0.013, 0.031):
        writer = subprocess.Popen([sys.executable, "-c", script, str(target)], stdout=subprocess.PIPE)
        with writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            try:
                writer.wait(pause_s)
            except subprocess.TimeoutExpired:
                writer.kill()
        content = target.read_bytes()
        assert len(content) == 200_000
        assert len(set(content)) == 1


def test_a_published_directory_replaces_the_former_one_whole(tmp_path):
    for name, file in (("first", "a"), ("second", "b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text(name)
        publish_directory(tmp_path / name, tmp_path / "out" / "final")
    assert [p.name for p in (tmp_path / "out" / "final").iterdir()] == ["b"]
    assert not (tmp_path / "second").exists()


def test_publishing_what_is_not_there_is_a_storage_error(tmp_path):
    with pytest.raises(StorageError, match="cannot be written"):
        publish_directory(tmp_path / "absent", tmp_path / "final")
