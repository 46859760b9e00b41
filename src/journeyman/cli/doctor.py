"""``journeyman doctor``: what this machine offers, what will be used, and how to mend what is missing."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from journeyman.cli.verb import print_json, verb

MARKS = {"ok": "ok  ", "lack": "LACK", "note": "note"}


@verb("doctor", "See what this machine offers and how to mend what is missing.", "journeyman doctor")
def doctor(as_json: bool) -> int:
    """Look at Python, extras, torch, engines, sandbox tiers, CPUs, memory and disk, with a fix for each lack.

    Exit code 0 when `journeyman quickstart` can run here, else 3.
    """
    from journeyman.cli import machine
    from journeyman.errors import EnvironmentMissing

    facts = [
        machine.python_fact(),
        *machine.extra_facts(),
        machine.torch_fact(),
        *machine.engine_facts(),
        *machine.sandbox_facts(),
        machine.cpu_fact(),
        machine.memory_fact(),
        machine.disk_fact(Path.cwd()),
    ]
    is_ready = not any(fact.blocks for fact in facts)
    if as_json:
        print_json({"quickstart_can_run": is_ready, "facts": [asdict(fact) for fact in facts]})
        return 0 if is_ready else EnvironmentMissing.exit_code
    width = max(len(fact.name) for fact in facts)
    for fact in facts:
        click.echo(f"{MARKS[fact.status]}  {fact.name:<{width}}  {fact.text}")
        if fact.fix:
            click.echo(f"{'':<{width + 8}}fix: {fact.fix}")
    has_lack = any(fact.status == "lack" for fact in facts)
    ready = "can run here, without what is marked LACK" if has_lack else "can run here"
    verdict = f"{ready}: journeyman quickstart" if is_ready else "cannot run here yet: mend what is marked LACK"
    click.echo(f"the quickstart {verdict}")
    return 0 if is_ready else EnvironmentMissing.exit_code
