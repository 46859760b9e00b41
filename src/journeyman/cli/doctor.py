"""``journeyman doctor``: what this machine offers, what will be used, and how to mend what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import click

from journeyman.cli.verb import print_json, verb

MARKS = {"ok": "ok  ", "lack": "LACK", "note": "note"}


@verb("doctor", "See what this machine offers and how to mend what is missing.", "journeyman doctor")
def doctor(as_json: bool) -> int:
    """Look at Python, extras, torch, engines, sandbox tiers, CPUs, memory and disk, with a fix for each lack.

    A table says which containment test each tier holds here; docs/sandbox.md names the test behind each row.

    Exit code 0 when `journeyman quickstart` can run here, else 3.
    """
    from journeyman.cli import machine
    from journeyman.errors import EnvironmentMissing
    from journeyman.sandbox.containment import tiers

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
    held = tiers()
    if as_json:
        print_json({"quickstart_can_run": is_ready, "facts": [asdict(fact) for fact in facts], "containment": held})
        return 0 if is_ready else EnvironmentMissing.exit_code
    width = max(len(fact.name) for fact in facts)
    for fact in facts:
        click.echo(f"{MARKS[fact.status]}  {fact.name:<{width}}  {fact.text}")
        if fact.fix:
            click.echo(f"{'':<{width + 8}}fix: {fact.fix}")
    for line in containment_lines(held):
        click.echo(line)
    has_lack = any(fact.status == "lack" for fact in facts)
    ready = "can run here, without what is marked LACK" if has_lack else "can run here"
    verdict = f"{ready}: journeyman quickstart" if is_ready else "cannot run here yet: mend what is marked LACK"
    click.echo(f"the quickstart {verdict}")
    return 0 if is_ready else EnvironmentMissing.exit_code


def containment_lines(held: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """The containment table as text: one row per attack, one column per tier that works here."""
    from journeyman.sandbox.containment import ATTACKS

    width = max(len(attack.name) for attack in ATTACKS)
    yield f"{'containment':<{width}}  " + "  ".join(f"{tier:<6}" for tier in held)
    for attack in ATTACKS:
        yield f"{attack.name:<{width}}  " + "  ".join(f"{states[attack.name]:<6}" for states in held.values())
