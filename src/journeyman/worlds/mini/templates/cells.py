"""Cells as templates draw, look up and confuse them, and the negative controls every family shares."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from journeyman.worlds.mini.protocol import FIELD_SEPARATOR, Control, Step
from journeyman.worlds.mini.world import World


@dataclass(frozen=True)
class Cell:
    """One cell of a world's table and its value."""

    file: str
    entity: str
    quarter: str
    value: int

    @property
    def text(self) -> str:
        return str(self.value)

    @property
    def lookup(self) -> Step:
        """The call that reads it."""
        return Step("lookup", {"path": self.file, "row": self.entity, "col": self.quarter})

    @property
    def command(self) -> str:
        """The same as a shell command."""
        return f"lookup {self.file} {self.entity} {self.quarter}"


def cell_at(world: World, file: str, entity: str, quarter: str) -> Cell:
    """The cell of a file by its labels. Raises KeyError."""
    return Cell(file, entity, quarter, world.table(file).values[entity, quarter])


def draw_cells(world: World, rng: random.Random, files: list[str]) -> list[Cell]:
    """One cell for each file named, of different entities and values, quarters free."""
    while True:
        entities = rng.sample(world.entities, len(files))
        quarters = [rng.choice(world.table(file).quarters) for file in files]
        cells = [cell_at(world, *labels) for labels in zip(files, entities, quarters, strict=True)]
        if len({cell.value for cell in cells}) == len(cells):
            return cells


def draw_files(world: World, rng: random.Random, count: int) -> list[str]:
    """Different table files, uniform over the four formats."""
    return rng.sample([table.file for table in world.tables], count)


def swapped(world: World, cell: Cell, part: str) -> list[Cell]:
    """The cells that differ from ``cell`` in one label, ``part`` = entity, quarter or file."""
    files = [table.file for table in world.tables] if part == "file" else [cell.file]
    entities = world.entities if part == "entity" else [cell.entity]
    quarters = world.table(cell.file).quarters if part == "quarter" else [cell.quarter]
    others = [cell_at(world, f, e, q) for f in files for e in entities for q in quarters]
    return [other for other in others if other != cell and (other.file != cell.file or part != "file")]


def first_wrong(name: str, answers: Iterable[str], answer: str, fails: str) -> list[Control]:
    """A control of the first answer that differs from the right one in the field it must fail; none if all agree."""
    index = int(fails.rpartition("-")[2]) - 1
    right = answer.split(FIELD_SEPARATOR)
    for wrong in answers:
        if wrong.split(FIELD_SEPARATOR)[index] != right[index]:
            return [Control(name, wrong, fails)]
    return []


def standing_controls(instruction: str, answer: str) -> list[Control]:
    """Controls for every family: the instruction handed back, and an empty answer."""
    fails = "field-1" if FIELD_SEPARATOR not in answer else "fields"
    return [Control("echo", instruction, fails), Control("empty", "", fails)]
