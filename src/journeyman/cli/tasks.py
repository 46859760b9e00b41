"""``journeyman tasks check | prove | import``: task directories checked, solved, and made of tasks of others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from journeyman.cli.verb import print_json, verb, warn

if TYPE_CHECKING:
    from journeyman.tasks.imports.directory import Imported


@click.group(short_help="Check, prove and import task directories.")
def tasks() -> None:
    """Work with task directories (the Harbor layout).

    \b
    Example:  journeyman tasks check tasks/train
    """


@verb("check", "Check task directories: every problem at once.", "journeyman tasks check tasks/train")
@click.argument("directory", type=click.Path(path_type=Path))
def check(directory: Path, as_json: bool) -> int:
    """Read every task directory at or below DIRECTORY and print all problems. Exit code 2 when there is one."""
    from journeyman.errors import InputError
    from journeyman.tasks.steps import load_any

    problems: dict[str, str] = {}
    warnings: dict[str, list[str]] = {}
    found = task_directories(directory)
    for path in found:
        try:
            warnings[str(path)] = list(load_any(path).warnings)
        except InputError as error:
            problems[str(path)] = str(error)
    for name, lines in warnings.items():
        for line in lines:
            warn(f"{name}: {line}")
    for text in problems.values():
        warn(text)
    if as_json:
        given = {name: lines for name, lines in warnings.items() if lines}
        print_json({"tasks": len(found), "problems": problems, "warnings": given})
    else:
        click.echo(f"{len(found)} tasks, {len(problems)} with problems: {directory}")
    return InputError.exit_code if problems else 0


def task_directories(directory: Path) -> list[Path]:
    """``directory`` itself when it is a task, else its sub-directories, sorted; a directory of tasks gives those in it.

    Raises:
        InputError: it is no directory, or holds nothing that could be a task.
    """
    if directory.is_dir() and _is_task(directory):
        return [directory]
    found: list[Path] = []
    for path in folders(directory):
        has_tasks = not _is_task(path) and any(_is_task(inner) for inner in path.iterdir())
        found += task_directories(path) if has_tasks else [path]
    return found


def _is_task(path: Path) -> bool:
    return (path / "task.toml").exists() or (path / "instruction.md").exists()


def folders(directory: Path) -> list[Path]:
    """The sub-directories of a directory of tasks, sorted.

    Raises:
        InputError: it is no directory, or holds none.
    """
    from journeyman.errors import InputError

    if not directory.is_dir():
        raise InputError(str(directory), "is not a directory", allowed="a task directory or a directory of them")
    found = sorted(path for path in directory.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not found:
        raise InputError(str(directory), "holds no task directory", hint="make some: journeyman worlds build")
    return found


@verb(
    "prove",
    "Run each task's own solution in a sandbox and grade it.",
    "journeyman tasks prove tasks/hello",
)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--waive", multiple=True, metavar="LIMIT", help="A sandbox limit that may be missing.")
def prove(directory: Path, waive: tuple[str, ...], as_json: bool) -> int:
    """Run solution/solve.sh of every task at or below DIRECTORY, ours or imported, and grade what it leaves.

    Exit code 1 when one does not score 1. What a task's image has and a sandbox has not is named.
    """
    from journeyman.ladder.proving import prove_imported

    proofs = prove_imported(task_directories(directory), frozenset(waive))
    unsolved = {path: proof for path, proof in proofs.items() if proof.verdict.reward != 1.0}
    for path, proof in proofs.items():
        for line in proof.missing:
            warn(f"{path}: the sandbox does not have: {line}")
    for path, proof in unsolved.items():
        verdict = proof.verdict
        reward = "no reward" if verdict.reward is None else f"reward {verdict.reward:g}"
        warn(f"{path}: {reward}, {verdict.kind} {verdict.error or ''} {verdict.explain}".rstrip())
    if as_json:
        print_json({"tasks": {str(path): proof.verdict.to_dict() for path, proof in proofs.items()}})
    else:
        click.echo(f"{len(proofs) - len(unsolved)} of {len(proofs)} solutions score 1: {directory}")
    return 1 if unsolved else 0


@click.group("import", short_help="Make task directories of tasks in other formats.")
def imports() -> None:
    """Make task directories, or trials, of what other programs wrote.

    \b
    Example:  journeyman tasks import apex apex-agents --out tasks/apex
    """


OUT = click.option("--out", type=click.Path(path_type=Path), required=True, help="Directory for what is made.")
SOURCE = click.argument("source", type=click.Path(path_type=Path))


@verb(
    "apex",
    "Import the APEX-Agents data layout.",
    "journeyman tasks import apex apex-agents --out tasks/apex",
)
@SOURCE
@OUT
def apex(source: Path, out: Path, as_json: bool) -> int:
    """Make a task directory of every row of SOURCE/tasks_and_rubrics.json.

    Worlds come from world_files_zipped/, further files from task_files/. The rubric is kept and graded by a judge;
    without one such a task has no reward.
    """
    from journeyman.tasks.imports.apex import import_apex

    return _report(import_apex(source, out), out, as_json)


@verb(
    "archipelago",
    "Import Archipelago tasks and worlds.",
    "journeyman tasks import archipelago example --out tasks/archipelago",
)
@SOURCE
@OUT
def archipelago(source: Path, out: Path, as_json: bool) -> int:
    """Make a task directory of every Archipelago task at SOURCE or one level below.

    Read are the world (zip, or filesystem/ and .apps_data/), the files laid over it, the messages and the
    configuration of the grading (verifiers.json, eval_configs.json, scoring_config.json).
    """
    from journeyman.tasks.imports.archipelago import import_archipelago

    return _report(import_archipelago(source, out), out, as_json)


@verb(
    "atif",
    "Import ATIF trajectories as the trials of a run.",
    "journeyman tasks import atif trajectories --out runs/theirs",
)
@SOURCE
@OUT
@click.option("--model", type=click.Path(path_type=Path), help="Model directory: writes text trajectories as tokens.")
@click.option("--family", default="qwen3", show_default=True, help="With --model: whose chat format it has.")
def atif(source: Path, out: Path, model: Path | None, family: str, as_json: bool) -> int:
    """Make a trial of every *.json below SOURCE (or of SOURCE): to view, pack, and learn from.

    Steps copied from other trajectories are context and never learned from.
    """
    from journeyman.trials.store.atif_read import import_atif, renderer_of

    files = sorted(source.rglob("*.json")) if source.is_dir() else [source]
    renderer = renderer_of(model, family) if model is not None else None
    written = import_atif(files, out, renderer)
    if as_json:
        print_json({"trials": [str(path) for path in written]})
    else:
        click.echo(f"{len(written)} trials: {out}")
    return 0


def _report(made: Imported, out: Path, as_json: bool) -> int:
    for line in made.warnings:
        warn(line)
    if as_json:
        print_json({"tasks": [str(path) for path in made.tasks], "warnings": list(made.warnings)})
    else:
        click.echo(f"{len(made.tasks)} tasks, graded by a judge: {out}")
    return 0


for command in (apex, archipelago, atif):
    imports.add_command(command)
tasks.add_command(check)
tasks.add_command(prove)
tasks.add_command(imports)
