"""``journeyman worlds build | check | stats | show | new-template``: make worlds and tasks, and look at them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from journeyman.cli.offered import judged
from journeyman.cli.tasks import folders, task_directories
from journeyman.cli.verb import print_json, progress, verb, warn
from journeyman.cli.worlds_count import count_verb
from journeyman.cli.worlds_look import new_template, show, stats
from journeyman.cli.worlds_quality import check_quality

if TYPE_CHECKING:
    from journeyman.tasks.task import Task
    from journeyman.trials.worldgates.building import Order

DIRECTORY = click.argument("directory", type=click.Path(path_type=Path))


@click.group(short_help="Build or check worlds and their tasks.")
def worlds() -> None:
    """Build or check worlds and their tasks.

    \b
    Example:  journeyman worlds build --split train --worlds 4 --out runs/worlds
    """


@verb(
    "build",
    "Make worlds and publish gated tasks in them.",
    "journeyman worlds build --seed 1 --split train --worlds 4 --tasks-per-world 3 --out runs/worlds",
    "journeyman worlds build --seed 7 --worlds 6 --tasks 100 --out runs/office",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same bytes.")
@click.option("--kind", type=click.Choice(["mini", "office"]), help="mini: five files; office: default with --tasks.")
@click.option("--split", help="sft, train, dev or test. mini: train by default; office: train, dev and test mixed.")
@click.option("--worlds", "count", type=int, default=4, show_default=True, help="How many worlds.")
@click.option("--tasks-per-world", type=int, default=3, show_default=True, help="mini: tasks in each world.")
@click.option("--tasks", type=int, help="office: tasks over all worlds.")
@click.option("--templates", multiple=True, metavar="ID", help="office: only these templates; may be given again.")
@click.option("--gates", type=click.Choice(["all", "static"]), default="all", show_default=True, help="office: static"
              " leaves out what needs sandboxes; such tasks say so.")  # fmt: skip
@click.option("--diversify", metavar="URL#NAME", help="office: put instructions into other words by this model; kept"
              " in OUT/wording, asked only for what is not there.")  # fmt: skip
@click.option("--diversify-cache", type=click.Path(path_type=Path), metavar="DIR", help="office: paraphrases of other"
              " builds; new ones are added.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="office: worlds at the same time.")
@click.option("--waive", multiple=True, metavar="LIMIT", help="office: a sandbox limit that may be missing.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("runs/worlds"), show_default=True, help="Where to."
)
def build(
    seed: int,
    kind: str | None,
    split: str | None,
    count: int,
    tasks_per_world: int,
    tasks: int | None,
    templates: tuple[str, ...],
    gates: str,
    diversify: str | None,
    diversify_cache: Path | None,
    jobs: int,
    waive: tuple[str, ...],
    out: Path,
    as_json: bool,
) -> int:
    """Draw worlds of real office files, bind tasks to them, and publish those that pass every gate.

    mini writes OUT/worlds/WORLD/ and OUT/tasks/SPLIT/TASK/ (the Harbor layout); nothing at all when a gate fails.
    office writes OUT/layers/ and OUT/tasks/SPLIT/TASK/; a task that a gate refuses is drawn anew, and the same command
    goes on where it was stopped.
    """
    if kind == "office" or (kind is None and tasks is not None):
        from journeyman.trials.worldgates.building import Order

        wanted = tasks if tasks is not None else count * tasks_per_world
        endpoint, model = _endpoint(diversify)
        order = Order(seed, count, wanted, split or "", templates, gates, model)
        return _build_office(order, out, jobs, waive, endpoint, diversify_cache, as_json)
    from journeyman.worlds.mini.build import build_tasks

    split = split or "train"
    progress(f"building {count} worlds of {tasks_per_world} tasks, split {split}, seed {seed}")
    paths = build_tasks(seed, split, count, tasks_per_world, out)
    if as_json:
        print_json({"seed": seed, "split": split, "worlds": count, "tasks": [str(path) for path in paths]})
    else:
        click.echo(f"{len(paths)} tasks: {out / 'tasks' / split}")
    return 0


def _endpoint(word: str | None) -> tuple[tuple[str, str], str]:
    """(URL, key), model of ``URL#NAME``; ``#NAME`` asks nobody and uses what is kept."""
    import os

    from journeyman.errors import InputError

    url, mark, model = (word or "").rpartition("#")
    if word is not None and not (mark and model):
        allowed = "URL#NAME, e.g. http://localhost:8000/v1#model; #NAME uses kept paraphrases only"
        raise InputError("--diversify", f"{word!r} names no model", allowed=allowed)
    return (url, os.environ.get("OPENAI_API_KEY", "") if url else ""), model


def _build_office(
    order: Order,
    out: Path,
    jobs: int,
    waive: tuple[str, ...],
    endpoint: tuple[str, str],
    cache: Path | None,
    as_json: bool,
) -> int:
    from journeyman.cli.bar import bar
    from journeyman.errors import GateFailed
    from journeyman.trials.worldgates.building import WORDING
    from journeyman.trials.worldgates.building import build as build_office
    from journeyman.worlds.diversify import copy_paraphrases

    progress(f"building {order.worlds} office worlds with {order.tasks} tasks, seed {order.seed}")
    if cache is not None:
        copy_paraphrases(cache, out / WORDING)
    with bar("worlds") as step:
        made = build_office(order, out, jobs=jobs, waive=frozenset(waive), endpoint=endpoint, progress=step)
    if cache is not None:
        copy_paraphrases(out / WORDING, cache)
    if not made.tasks:
        raise GateFailed("\n".join(["no task was published", *_refusals(made.refused)]))
    if order.templates:  # whoever builds a template wants to know what its gates say
        for line in _refusals(made.refused):
            warn(line)
    missing = order.tasks - len(made.tasks)
    if missing:
        warn(f"{missing} places stay empty: no template fits there; journeyman worlds stats says what was refused")
    if as_json:
        print_json(
            {"seed": order.seed, "worlds": order.worlds, "tasks": list(made.tasks), "refused": dict(made.refused)}
        )
    else:
        click.echo(f"{len(made.tasks)} tasks: {out / 'tasks'}")
    return 0


def _refusals(refused: Mapping[str, int], shown: int = 12) -> list[str]:
    """Template, gate and evidence of what was refused most often."""
    found = sorted(refused.items(), key=lambda item: (-item[1], item[0]))
    return [f"{why} ({count} times)" if count > 1 else why for why, count in found[:shown]]


@verb(
    "check",
    "Check built worlds: whole, unmixed and, given the seed, equal to a rebuild.",
    "journeyman worlds check runs/worlds --seed 1",
    "journeyman worlds check runs/worlds --prove",
    "journeyman worlds check runs/office",
    "journeyman worlds check runs/office --quality 200",
)
@DIRECTORY
@click.option("--seed", type=int, help="Build everything again with this seed, gates included, and compare the bytes.")
@click.option("--prove", is_flag=True, help="Execute every oracle and grade every negative control in sandboxes.")
@click.option("--quality", type=click.IntRange(1), metavar="N", help="office: examine the verifiers of N sampled tasks"
              " instead; --seed draws them.")  # fmt: skip
@click.option("--regrade", type=click.IntRange(0), default=0, metavar="K", help="With --quality: grade deliverables of"
              " 10 of them K times, in two time zones and locales.")  # fmt: skip
@judged
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="office: worlds at the same time.")
@click.option("--waive", multiple=True, metavar="LIMIT", help="A sandbox limit that may be missing.")
def check(
    directory: Path,
    seed: int | None,
    prove: bool,
    quality: int | None,
    regrade: int,
    judge: str,
    judge_keys: tuple[str, ...],
    jobs: int,
    waive: tuple[str, ...],
    as_json: bool,
) -> int:
    """Check what `worlds build` wrote to DIRECTORY. Exit code 2 when something does not hold.

    Every task loads; its world's files are those that were published; no world serves two splits. With --seed, all of
    it is built again: gates must pass, and truth, tests and files must come out the same. With --prove, every document
    is read, every oracle must score 1 and every negative control must fail, in sandboxes (exit 3 where there is none).
    Office worlds are always built again, with every gate, and the table of gates is printed. With --quality nothing is
    built: published verifiers grade right answers, inaction, controls, fresh mutants and resaved forms; the table is
    written to DIRECTORY/quality.json, and the exit code is 1 when a bound is missed.
    """
    from journeyman.errors import InputError

    if quality is not None:
        return check_quality(
            directory,
            quality,
            seed=seed or 0,
            times=regrade,
            jobs=jobs,
            waive=waive,
            judge=judge,
            judge_keys=judge_keys,
            as_json=as_json,
        )
    if regrade or judge:
        raise InputError("--regrade" if regrade else "--judge", "goes with --quality N")
    if (directory / "build.json").is_file():
        return _check_office(directory, jobs, waive, as_json)
    splits = folders(directory / "tasks")
    tasks: list[Task] = []
    findings = [finding for split in splits for finding in _load(split, tasks)]
    findings += _changed(tasks, directory / "worlds") or _mixed(tasks)
    if seed is not None and not findings:
        for split in splits:
            progress(f"building split {split.name} again")
            findings += _rebuilt(split, [task for task in tasks if task.split == split.name], seed)
    if prove and tasks and not findings:
        findings += _unproven(tasks, frozenset(waive))
    for finding in findings:
        warn(finding)
    if as_json:
        names = [split.name for split in splits]
        print_json(
            {
                "tasks": len(tasks),
                "splits": names,
                "rebuilt": seed is not None,
                "proven": prove,
                "findings": findings,
            }
        )
    else:
        click.echo(f"{len(tasks)} tasks, {len(findings)} findings: {directory}")
    return InputError.exit_code if findings else 0


def _check_office(directory: Path, jobs: int, waive: tuple[str, ...], as_json: bool) -> int:
    from journeyman.cli.bar import bar
    from journeyman.cli.worlds_look import rung_lines
    from journeyman.errors import InputError
    from journeyman.evals.rungs import rungs_of
    from journeyman.trials.worldgates.checking import check_build, table_lines

    with bar("worlds built again") as step:
        checked = check_build(directory, jobs=jobs, waive=frozenset(waive), progress=step)
    rungs = rungs_of(checked.reports)
    findings = sorted({*checked.findings, *rungs.findings})
    for finding in findings:
        warn(finding)
    if as_json:
        print_json({"tasks": checked.tasks, "gates": checked.table, "ladder": rungs.as_json(), "findings": findings})
    else:
        click.echo("\n".join(table_lines(checked.table, checked.legs)))
        click.echo("\n".join(["", *rung_lines(rungs)]))
        click.echo(f"{checked.tasks} tasks, {len(findings)} findings: {directory}")
    return InputError.exit_code if findings else 0


def _load(split: Path, tasks: list[Task]) -> Iterator[str]:
    """Load every task of a split into ``tasks``; yields what cannot be loaded."""
    from journeyman.errors import InputError
    from journeyman.tasks.task import load_task

    for path in task_directories(split):
        try:
            tasks.append(load_task(path))
        except InputError as error:
            yield str(error)


def _changed(tasks: list[Task], worlds: Path) -> list[str]:
    """World files that are not those that were published, each named once."""
    from journeyman.worlds.mini.intact import findings

    lines: dict[tuple[str, str], str] = {}
    for task in tasks:
        place = worlds / task.world_id
        made = {path.name: path.read_bytes() for path in place.iterdir()} if place.is_dir() else None
        for line in findings(task.world, task.world_digest, made):
            problem = line.removeprefix(str(task.world))
            lines.setdefault((task.world_id, problem), line)
    return list(lines.values())


def _mixed(tasks: list[Task]) -> Iterator[str]:
    """What is wrong between tasks: another split's task in a split's folder, changed or shared world files."""
    from journeyman.errors import InputError
    from journeyman.worlds.splits import refuse_mixed, refuse_shared_content

    try:
        for split in {task.path.parent.name for task in tasks}:
            refuse_mixed([task for task in tasks if task.path.parent.name == split], split)
        refuse_shared_content(tasks)
    except InputError as error:
        yield str(error)


def _unproven(tasks: list[Task], waive: frozenset[str]) -> list[str]:
    """What the proofs of the tasks find wrong."""
    from journeyman.ladder.proving import findings_of, prove_tasks

    progress(f"executing {len(tasks)} oracles in sandboxes")
    proof = prove_tasks(tasks, waive)
    progress(f"{proof['n_oracles_scoring_1']} oracles score 1, {proof['n_controls_failing']} controls fail")
    return findings_of(proof)


def _rebuilt(split: Path, tasks: list[Task], seed: int) -> Iterator[str]:
    """Where a rebuild of the split differs from what lies there."""
    from journeyman.digest import directory_sha256
    from journeyman.sandbox.scratch import scratch
    from journeyman.worlds.mini.build import build_tasks

    count = len({task.world_id for task in tasks})
    with scratch("worlds-check") as place:
        again = build_tasks(seed, split.name, count, len(tasks) // count, place)
        rebuilt = {path.name: directory_sha256(path) for path in again}
        if rebuilt.keys() != {task.id for task in tasks}:
            yield f"{split}: seed {seed} does not make these {len(tasks)} tasks"
        for task in tasks:
            if task.id in rebuilt and directory_sha256(task.path) != rebuilt[task.id]:
                yield f"{task.path}: differs from what seed {seed} makes"


for command in (build, check, stats, show, count_verb, new_template):
    worlds.add_command(command)
