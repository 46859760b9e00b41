"""A world's file that changed is named with what is wrong, without opening it as a document."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from journeyman.worlds.mini.intact import damage, findings
from journeyman.worlds.mini.publish import write_world
from journeyman.worlds.mini.world import make_world

WORLD = make_world(1, "dev", 0)
BY_SUFFIX = {name.rpartition(".")[2]: name for name in WORLD.files}


def flip_inside(data: bytes) -> bytes:
    """The same container with one byte of compressed content changed."""
    place = data.index(b"xl/workbook.xml") + 60
    return data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]


@pytest.mark.parametrize(
    ("suffix", "change", "words"),
    [
        ("xlsx", lambda data: data[:200], "damaged xlsx: File is not a zip file"),
        ("xlsx", lambda data: b"no workbook", "damaged xlsx"),
        ("xlsx", flip_inside, "damaged xlsx"),
        ("docx", lambda data: data[:-30], "damaged docx"),
        ("pdf", lambda data: b"x" + data, "damaged pdf"),
        ("csv", lambda data: b"", "is empty"),
        ("csv", lambda data: data.replace(b"1", b"2"), "differs from what was made"),
    ],
)
def test_the_changed_file_is_named_with_what_is_wrong(
    tmp_path: Path, suffix: str, change: Callable[[bytes], bytes], words: str
) -> None:
    directory = write_world(WORLD, tmp_path)
    assert findings(directory, WORLD.digest, WORLD.files) == []
    path = directory / BY_SUFFIX[suffix]
    path.write_bytes(change(path.read_bytes()))
    (line,) = findings(directory, WORLD.digest, WORLD.files)
    assert line.startswith(f"{path}: {words}")


def test_missing_and_foreign_files_are_named(tmp_path: Path) -> None:
    directory = write_world(WORLD, tmp_path)
    (directory / BY_SUFFIX["eml"]).unlink()
    (directory / "notes.txt").write_text("mine")
    assert set(findings(directory, WORLD.digest, WORLD.files)) == {
        f"{directory / 'notes.txt'}: does not belong to this world",
        f"{directory / BY_SUFFIX['eml']}: is missing",
    }


def test_without_the_originals_only_visible_damage_is_named(tmp_path: Path) -> None:
    directory = write_world(WORLD, tmp_path)
    (directory / BY_SUFFIX["csv"]).write_bytes(b"Client,Q1\n")
    assert findings(directory, WORLD.digest, None) == [
        f"{directory}: the files are not those that world_digest in task.toml names"
    ]
    assert findings(directory, "", None) == []


def test_whole_files_show_no_damage() -> None:
    assert [name for name, data in WORLD.files.items() if damage(name, data)] == []
