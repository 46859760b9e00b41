"""Which layout trains fastest here: every allowed combination is opened, timed on real steps, recorded and ranked.

A record is written after each cell, so a sweep that was stopped goes on where it was. A cell that fails (out of memory,
a layout the model cannot be cut into) is a record as well, with its reason: what does not fit is a result.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from journeyman import durable
from journeyman.config import Knobs
from journeyman.digest import sha256_json
from journeyman.errors import JourneymanError
from journeyman.train.backends.spec import BackendSpec
from journeyman.train.backends.table import check_spec, make_trainer
from journeyman.train.losses import resolve_loss
from journeyman.train.optimizer import OptimizerSpec
from journeyman.train.protocol import TrainRow
from journeyman.train.update import UpdateSpec, update_policy


class Grid(Knobs):
    """Values to combine; an empty list keeps the back-end's own."""

    tp: tuple[int, ...] = ()
    pp: tuple[int, ...] = ()
    ep: tuple[int, ...] = ()
    cp: tuple[int, ...] = ()
    offload: tuple[bool, ...] = ()
    checkpoint_layers: tuple[bool, ...] = ()
    tokens_per_micro_batch: tuple[int, ...] = ()


class SweepRecipe(Knobs):
    """What ``journeyman sweep`` measures."""

    model: Path = Field(description="Hugging Face directory")
    backend: BackendSpec = BackendSpec()
    grid: Grid = Grid()
    rows: int = Field(16, ge=1, description="rows of a step")
    tokens: int = Field(4096, ge=8, description="tokens of the longest row; the others are shorter, as trials are")
    steps: int = Field(3, ge=1, description="steps that count")
    warm_up: int = Field(1, ge=0, description="steps before them")
    seed: int = Field(0, ge=0)
    out: Path = Path("sweep.jsonl")


@dataclass(frozen=True)
class Cell:
    """One combination and what it came to.

    Attributes:
        name: what differs from the recipe's back-end, in words.
        key: digest of everything that decides the figure.
        tokens_per_s: median over the steps; 0 for one that failed.
        step_s: median.
        failed: why it could not run, or "".
    """

    name: str
    key: str
    tokens_per_s: float = 0.0
    step_s: float = 0.0
    failed: str = ""


_LAYOUT = ("tp", "pp", "ep", "cp", "offload")


def cells(recipe: SweepRecipe) -> Iterator[tuple[str, BackendSpec]]:
    """Every combination of the grid with its name, allowed or not: ``run_cell`` says which cannot run."""
    grid = {name: values for name, values in recipe.grid.model_dump().items() if values}
    for chosen in itertools.product(*grid.values()):
        settings = dict(zip(grid, chosen, strict=True))
        layout = {name: value for name, value in settings.items() if name in _LAYOUT}
        rest = {name: value for name, value in settings.items() if name not in _LAYOUT}
        fields = recipe.backend.model_dump() | rest
        fields["layout"] = recipe.backend.layout.model_dump() | layout
        name = " ".join(f"{name}={value}" for name, value in settings.items()) or "as given"
        yield name, BackendSpec.model_validate(fields)


def sweep(recipe: SweepRecipe, say: Callable[[str], None]) -> list[Cell]:
    """Measure what is not recorded yet in ``recipe.out``; all cells, the fastest first, failed ones last.

    Raises:
        StorageError: the record cannot be written. What a cell raises is its record.
    """
    known = {cell.key: cell for cell in read_cells(recipe.out)}
    found = []
    for name, spec in cells(recipe):
        key = _key(recipe, spec)
        cell = known.get(key)
        if cell is None:
            say(f"{name}: opening")
            cell = run_cell(recipe, replace(Cell(name, key)), spec)
            known[key] = cell
            _record(recipe.out, list(known.values()))
        say(f"{name}: {cell.failed or f'{cell.tokens_per_s:,.0f} tokens/s'}")
        found.append(cell)
    return sorted(found, key=lambda cell: -cell.tokens_per_s)


def run_cell(recipe: SweepRecipe, cell: Cell, spec: BackendSpec) -> Cell:
    """Open one trainer, take its steps, close it."""
    optimizer = OptimizerSpec(lr=1e-6)
    try:
        check_spec(spec, optimizer)
        with closing(make_trainer(spec, recipe.model, optimizer)) as trainer:
            rows = rows_of(recipe, _vocabulary(recipe.model))
            seconds = []
            for _ in range(recipe.warm_up + recipe.steps):
                began = time.perf_counter()
                update_policy(trainer, rows, UpdateSpec(resolve_loss("reinforce")))
                seconds.append(time.perf_counter() - began)
    except (JourneymanError, RuntimeError, MemoryError) as error:
        return replace(cell, failed=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300])
    median = statistics.median(seconds[recipe.warm_up :])
    return replace(cell, tokens_per_s=sum(len(row.ids) for row in rows) / median, step_s=median)


def rows_of(recipe: SweepRecipe, vocabulary: int) -> list[TrainRow]:
    """Rows with the lengths of trials: lognormal, cut at ``tokens``, the longest exactly that long; half is trained."""
    rng = np.random.default_rng(recipe.seed)
    lengths = np.clip(rng.lognormal(math.log(recipe.tokens / 4), 0.9, recipe.rows), 8, recipe.tokens).astype(int)
    lengths[int(np.argmax(lengths))] = recipe.tokens
    rows = []
    for i, length in enumerate(lengths.tolist()):
        mask = (np.arange(length) % 16 >= 8).astype(np.uint8)
        ids = rng.integers(0, vocabulary, length).astype(np.int32)
        advantage = 1.0 if i % 2 else -1.0
        rows.append(TrainRow(ids, mask, np.zeros(length, np.float32), advantage, i // 2))
    return rows


def read_cells(path: Path) -> list[Cell]:
    """The recorded cells; a line cut short by a kill is left out."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            found.append(Cell(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return found


def table(found: Sequence[Cell]) -> list[str]:
    """Lines for people, the fastest first, with its share of the fastest."""
    best = max((cell.tokens_per_s for cell in found), default=0.0) or 1.0
    width = max((len(cell.name) for cell in found), default=4)
    lines = [f"{'layout':<{width}} {'tokens/s':>12} {'s/step':>10} {'of best':>8}"]
    for cell in found:
        if cell.failed:
            lines.append(f"{cell.name:<{width}} {'-':>12} {'-':>10} {'-':>8}  {cell.failed}")
        else:
            share = cell.tokens_per_s / best
            lines.append(f"{cell.name:<{width}} {cell.tokens_per_s:>12,.0f} {cell.step_s:>10.3f} {share:>8.2f}")
    return lines


def _key(recipe: SweepRecipe, spec: BackendSpec) -> str:
    rest: dict[str, Any] = recipe.model_dump(mode="json", exclude={"grid", "out", "backend"})
    return sha256_json(rest | {"backend": spec.model_dump(mode="json")})[:16]


def _record(path: Path, found: Sequence[Cell]) -> None:
    durable.write_text(path, "".join(json.dumps(asdict(cell)) + "\n" for cell in found))


def _vocabulary(model: Path) -> int:
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    return int((config.get("text_config") or config)["vocab_size"])
