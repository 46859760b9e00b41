"""Worlds: same seed, same bytes; files that show the truth and nothing of what made it."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from journeyman.documents import cell, read
from journeyman.worlds.mini import pools
from journeyman.worlds.mini.world import SPLITS, World, make_world

DIGESTS = """
from journeyman.worlds.mini.world import make_world
for split in ("train", "test"):
    for index in range(3):
        world = make_world(7, split, index)
        print(world.id, world.digest, world.canary)
"""


@pytest.fixture(scope="module")
def worlds() -> list[World]:
    return [make_world(11, "train", index) for index in range(120)]


def test_two_processes_make_the_same_bytes_whatever_their_hash_seed_time_zone_and_directory(tmp_path: Path) -> None:
    outputs = set()
    for number, (hash_seed, zone) in enumerate([("1", "Asia/Kathmandu"), ("4242", "America/Los_Angeles")]):
        cwd = tmp_path / str(number)
        cwd.mkdir()
        environment = {"PYTHONHASHSEED": hash_seed, "TZ": zone, "PATH": "/usr/bin:/bin", "LANG": "C"}
        argv = [sys.executable, "-c", DIGESTS]
        outputs.add(subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(outputs) == 1
    expected = make_world(7, "train", 0)
    assert f"{expected.id} {expected.digest} {expected.canary}" in outputs.pop()


def test_another_seed_split_or_index_makes_another_world() -> None:
    digests = {make_world(seed, split, i).digest for seed in (1, 2) for split in SPLITS for i in (0, 1)}
    assert len(digests) == 2 * len(SPLITS) * 2


def test_every_world_has_one_file_of_each_kind(worlds: list[World]) -> None:
    for world in worlds:
        assert sorted(name.rpartition(".")[2] for name in world.files) == ["csv", "docx", "eml", "pdf", "xlsx"]
        assert {table.name for table in world.tables} == set(pools.TABLES)
        assert list(world.files) == sorted(world.files)


def test_every_table_is_given_every_format(worlds: list[World]) -> None:
    pairs = Counter(table.file for world in worlds for table in world.tables)
    assert len(pairs) == 16
    assert min(pairs.values()) > 120 / 4 / 2


def test_tables_share_their_clients_but_not_their_order(worlds: list[World]) -> None:
    orders = [len({table.entities for table in world.tables}) for world in worlds]
    assert all(len({frozenset(table.entities) for table in world.tables}) == 1 for world in worlds)
    assert sum(orders) / len(orders) > 3.5
    for world in worlds:
        values = [value for table in world.tables for value in table.values.values()]
        assert len(values) == 4 * 5 * 3
        assert all(100 <= value <= 999 for value in values)
        assert all(table.quarters == tuple(sorted(table.quarters)) for table in world.tables)
        assert sorted(world.clients.values()) == list(world.entities)


def test_the_pools_are_one_word_names_without_overlap() -> None:
    assert (len(set(pools.ENTITIES)), len(set(pools.PEOPLE))) == (64, 31)
    words = [*pools.ENTITIES, *pools.PEOPLE, *pools.TABLES, *pools.QUARTERS]
    assert len(set(words)) == len(words)
    assert all(word.isalpha() and word.istitle() for word in (*pools.ENTITIES, *pools.PEOPLE))


def test_the_files_say_exactly_what_is_true(worlds: list[World]) -> None:
    for world in worlds[:25]:
        for table in world.tables:
            tree = read(world.files[table.file], table.file)
            (found,) = tree["tables"]
            assert [found["header"], *found["rows"]] == [[str(v) for v in line] for line in table.lines()]
        owners = read(world.files[pools.OWNERS_FILE], pools.OWNERS_FILE)
        assert {person: cell(owners, person) for person in world.clients} == dict(world.clients)


@pytest.mark.parametrize(("split", "index"), [("validation", 0), ("train", -1)])
def test_an_unknown_split_or_index_is_refused(split: str, index: int) -> None:
    with pytest.raises(ValueError, match="splits: sft, train, dev, test"):
        make_world(0, split, index)
