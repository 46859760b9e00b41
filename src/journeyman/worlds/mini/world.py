"""A world: the truth of a small office and the real files that show it. Same seed, split and index, same bytes.

Four tables (sales, costs, budget, stock) hold the same five clients in different row orders; a permutation drawn per
world gives each table one of four formats, so every world has one xlsx, csv, pdf and docx file, and a mail that says
which person looks after which client.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from journeyman.digest import tree_sha256
from journeyman.seeds import stream
from journeyman.worlds.mini import pools
from journeyman.worlds.mini.render import RENDERERS, render_owners
from journeyman.worlds.splits import SPLITS as SPLITS


@dataclass(frozen=True)
class TableTruth:
    """One table as it was drawn.

    Attributes:
        name: one of ``pools.TABLES``.
        file: file name with extension.
        entities: row labels in the order of the file.
        quarters: column labels, sorted.
        values: integer of each (entity, quarter), 100 to 999.
    """

    name: str
    file: str
    entities: tuple[str, ...]
    quarters: tuple[str, ...]
    values: Mapping[tuple[str, str], int]

    def lines(self) -> list[list[str | int]]:
        """The table as it is written: header first, then one row per entity."""
        rows: list[list[str | int]] = [[e, *(self.values[e, q] for q in self.quarters)] for e in self.entities]
        return [["Client", *self.quarters], *rows]


@dataclass(frozen=True)
class World:
    """Truth and files of one world. The canary stands for the truth: it must never appear in a visible file.

    Attributes:
        id: ``split-index``, e.g. ``train-0007``.
        split: one of ``SPLITS``.
        files: name -> bytes of everything the agent may see.
        tables: the four tables, in the order of ``pools.TABLES``.
        clients: person -> entity.
        canary: a UUID drawn with the world.
    """

    id: str
    split: str
    files: Mapping[str, bytes]
    tables: tuple[TableTruth, ...]
    clients: Mapping[str, str]
    canary: str

    @property
    def digest(self) -> str:
        """sha256 over the names and contents of the files."""
        return tree_sha256(self.files)

    @property
    def entities(self) -> tuple[str, ...]:
        """The five clients, sorted."""
        return tuple(sorted(self.tables[0].entities))

    def table(self, file: str) -> TableTruth:
        """The table behind a file name. Raises KeyError."""
        return {table.file: table for table in self.tables}[file]


def make_world(seed: int, split: str, index: int) -> World:
    """Draw one world and write its files in memory.

    Args:
        seed: root seed of the run.
        split: one of ``SPLITS``.
        index: position in the split, from 0.

    Raises:
        ValueError: an unknown split or a negative index.
    """
    if split not in SPLITS or index < 0:
        raise ValueError(f"no world {split!r} {index}; splits: {', '.join(SPLITS)}; index from 0")
    rng = stream(seed, "world", split, index)
    tables = _draw_tables(rng)
    people = rng.sample(pools.PEOPLE, pools.ROWS_PER_TABLE)
    clients = dict(zip(people, rng.sample(tables[0].entities, pools.ROWS_PER_TABLE), strict=True))
    files = {table.file: RENDERERS[table.file.rpartition(".")[2]](table.name, table.lines()) for table in tables}
    files[pools.OWNERS_FILE] = render_owners(clients)
    canary = str(UUID(int=rng.getrandbits(128), version=4))
    return World(f"{split}-{index:04d}", split, dict(sorted(files.items())), tables, clients, canary)


def _draw_tables(rng: random.Random) -> tuple[TableTruth, ...]:
    entities = rng.sample(pools.ENTITIES, pools.ROWS_PER_TABLE)
    quarters = tuple(sorted(rng.sample(pools.QUARTERS, pools.COLUMNS_PER_TABLE)))
    formats = rng.sample(pools.FORMATS, len(pools.FORMATS))
    tables = []
    for name, suffix in zip(pools.TABLES, formats, strict=True):
        rows = tuple(rng.sample(entities, len(entities)))
        values = {(e, q): rng.randint(pools.LOWEST, pools.HIGHEST) for e in rows for q in quarters}
        tables.append(TableTruth(name, f"{name}.{suffix}", rows, quarters, values))
    return tuple(tables)
