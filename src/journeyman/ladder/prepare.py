"""What must exist before any policy acts: worlds, published tasks, read documents, a tokenizer.

Each part is a stage of the run directory, so a resumed run makes only what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from journeyman.digest import directory_sha256, sha256, sha256_file
from journeyman.harness import HARNESSES
from journeyman.ladder.demonstrations import tokenizer_corpus
from journeyman.ladder.profiles import PROFILES
from journeyman.ladder.smollm2 import save_tokenizer
from journeyman.ladder.workshop import Workshop
from journeyman.tasks.task import Task
from journeyman.tokens.tokenizer import train as train_tokenizer
from journeyman.tools import call
from journeyman.worlds.mini import pools
from journeyman.worlds.mini.build import build_tasks

SCORED_SPLITS = ("train", "dev", "test")
POOL_GROWTH_WORLDS = 8


def make_tasks(workshop: Workshop) -> dict[str, Any]:
    """Publish the tasks of the scored splits; returns counts and digests per split."""
    worlds = workshop.recipe.worlds
    record = workshop.run.load("tasks")
    if record is not None:
        return record
    for split in SCORED_SPLITS:
        build_tasks(
            workshop.recipe.seed,
            split,
            getattr(worlds, f"{split}_worlds"),
            getattr(worlds, f"{split}_tasks_per_world"),
            workshop.run.root,
        )
    facts = {
        split: {
            "n_tasks": len(workshop.tasks(split)),
            "n_worlds": len({task.world_id for task in workshop.tasks(split)}),
            "sha256": directory_sha256(workshop.run.path("tasks", split)),
        }
        for split in SCORED_SPLITS
    }
    return workshop.run.finish("tasks", facts)


def grow_pool(workshop: Workshop, first_world: int) -> list[Task]:
    """Publish ``POOL_GROWTH_WORLDS`` more training worlds from index ``first_world`` on, and read their documents."""
    build_tasks(
        workshop.recipe.seed,
        "train",
        POOL_GROWTH_WORLDS,
        workshop.recipe.worlds.train_tasks_per_world,
        workshop.run.root,
        first_index=first_world,
    )
    added = [task for task in workshop.tasks("train") if int(task.world_id.rpartition("-")[2]) >= first_world]
    fill_reads(workshop, added)
    return added


def fill_reads(workshop: Workshop, tasks: Iterable[Task]) -> int:
    """Read every document of the tasks' worlds, in a sandbox; returns how many were read now.

    Raises:
        InputError: a world holds a document that cannot be read; it names the file.
    """
    files: dict[str, tuple[str, bytes]] = {}
    for root in {workshop.world_directory(task) for task in tasks}:
        for path in sorted(root.iterdir()):
            data = path.read_bytes()
            files.setdefault(sha256(data), (str(path.relative_to(workshop.run.root)), data))
    return workshop.reads.fill(files)


def fill_demonstration_reads(workshop: Workshop) -> int:
    """Read the documents of the demonstration worlds; returns how many were read now."""
    files = {sha256(data): (f"{w.id}/{name}", data) for w in workshop.sft_worlds for name, data in w.files.items()}
    return workshop.reads.fill(files)


def make_tokenizer(workshop: Workshop) -> dict[str, Any]:
    """Train the tokenizer on demonstrations' text and on every name, or take the pretrained one; returns its facts."""
    record = workshop.run.load("tokenizer")
    if record is None:
        directory = workshop.run.path("tokenizer")
        if PROFILES[workshop.recipe.profile].pretrained:
            made = save_tokenizer(directory)
        else:
            made = train_tokenizer(_corpus(workshop), directory, vocab_size=workshop.recipe.model.tokenizer_size)
        record = workshop.run.finish(
            "tokenizer", {"vocab_size": made.vocab_size, "sha256": sha256_file(Path(directory, "tokenizer.json"))}
        )
    return record


def _corpus(workshop: Workshop) -> list[str]:
    texts: list[str] = []
    for world, bound in tokenizer_corpus(workshop.sft_worlds, workshop.recipe.seed):
        tools = workshop.tools_of_world(world)
        results = [call(step.tool, step.arguments, tools).text for step in bound.plan]
        calls = [_call_text(step.tool, step.arguments) for step in bound.plan]
        files = " ".join(bound.inputs)
        for harness in HARNESSES.values():
            framing = harness.framing
            final = _call_text(framing.final_verb, {framing.final_argument: bound.answer})
            parts = [framing.system, f"{bound.instruction}\nfiles: {files}", *calls, *results, final]
            texts.append("\n".join(["system", "user", "assistant", "tool", *parts]))
    names = [*pools.ENTITIES, *pools.PEOPLE, *pools.TABLES, *pools.FORMATS]
    return [*texts, *([" ".join(names)] * 20)]


def _call_text(name: str, arguments: Mapping[str, str]) -> str:
    return json.dumps({"name": name, "arguments": dict(arguments)}, separators=(",", ":"))
