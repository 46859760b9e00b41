"""``journeyman worlds stats | show | new-template``: a set of office tasks, one of them, and a new template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from journeyman.cli.verb import print_json, verb

if TYPE_CHECKING:
    from journeyman.evals.rungs import Rungs


@verb("stats", "Say what office tasks are like and what they cost.", "journeyman worlds stats runs/office")
@click.argument("directory", type=click.Path(path_type=Path))
def stats(directory: Path, as_json: bool) -> int:
    """Diversity, traps, feedback per length, baselines, gates, refusals and costs of the build in DIRECTORY."""
    from journeyman.evals.rungs import rungs_of
    from journeyman.trials.worldgates.checking import reports_of
    from journeyman.worlds.stats import statistics_of

    found = statistics_of(directory)
    rungs = rungs_of(reports_of(directory))
    if as_json:
        print_json({**found, "ladder": rungs.as_json()})
        return 0
    found.pop("ladder", None)
    for key, value in found.items():
        click.echo(f"{key}: {value}" if not isinstance(value, dict) else f"{key}:")
        for name, one in value.items() if isinstance(value, dict) else ():
            click.echo(f"  {name}: {_flat(one)}")
    click.echo("\n".join(rung_lines(rungs)))
    click.echo(f"{found['tasks']} tasks in {found['worlds']} worlds: {directory}")
    return 0


@verb("show", "Print one office task: what is asked, what is checked, how the gates judged.",
      "journeyman worlds show runs/office/tasks/train/train-0000-00-mc1")  # fmt: skip
@click.argument("task", type=click.Path(path_type=Path))
def show(task: Path, as_json: bool) -> int:
    """Print instruction, checks, controls and gate report of the task directory TASK, without the truth's values."""
    from journeyman.errors import InputError

    origin = _json(task / "tests" / "provenance.json")
    if origin is None:
        raise InputError(str(task), "is no office task", hint="make some: journeyman worlds build --tasks 20 --out DIR")
    report = _json(task / "tests" / "gates.json") or {"gates": {}, "ladder": {}, "oracle_calls": None}
    instruction = (task / "instruction.md").read_text(encoding="utf-8")
    if as_json:
        print_json({"instruction": instruction, **origin, "report": report})
        return 0
    click.echo(instruction)
    for check in origin["checks"]:
        click.echo(f"{check['kind']}\t{check['id']}\t{check['fn']}\tweight {check['weight']}, {check['nodes']} nodes")
    for control in origin["controls"]:
        click.echo(f"control\t{control['name']}\tfails {control['fails']}")
    for gate, facts in sorted(report["gates"].items(), key=lambda row: int(row[0][1:])):
        click.echo(f"{gate}\t{'passed' if facts['passed'] else 'FAILED'}\t{facts['cases']} deliverables")
    click.echo(f"ladder: {_flat(report['ladder'])}; oracle calls: {report['oracle_calls']}")
    click.echo(f"{origin['template']} in {task.parent.name}, traps {', '.join(origin['traps']) or 'none'}: {task}")
    return 0


@verb("new-template", "Start a task template: source with oracle and controls, and its test.",
      "journeyman worlds new-template IB13 --domain banking")  # fmt: skip
@click.argument("template_id", metavar="ID")
@click.option("--domain", required=True, help="banking, law, consulting, search, code or coordination.")
@click.option("--into", type=click.Path(path_type=Path), default=Path("src/journeyman/worlds/templates"),
              show_default=True, help="Directory of the templates.")  # fmt: skip
@click.option("--tests", type=click.Path(path_type=Path), default=Path("tests/worlds"), show_default=True,
              help="Directory of the tests.")  # fmt: skip
def new_template(template_id: str, domain: str, into: Path, tests: Path, as_json: bool) -> int:
    """Write a template that binds and passes its gates as it is; docs/worlds.md leads through it in fifteen minutes."""
    from journeyman.worlds.scaffold import new_template as write

    source, test = write(template_id, domain, into, tests)
    if as_json:
        print_json({"template": str(source), "test": str(test)})
    else:
        click.echo(f'add it to TEMPLATES in {into / "__init__.py"}: "{template_id}": {template_id}(),')
        click.echo(f"{test}")
        click.echo(f"template {template_id}: {source}")
    return 0


def rung_lines(rungs: Rungs) -> list[str]:
    """The ladder of baselines; families without traps are marked."""
    from journeyman.evals.rungs import lines_of
    from journeyman.worlds.templates import TEMPLATES

    return lines_of(rungs, [name for name, template in TEMPLATES.items() if not template.traps])


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_flat(one)}" for key, one in value.items())
    return str(value)
