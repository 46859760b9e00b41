"""``journeyman gc``: free the space of what is packed, and say what stays and why."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from journeyman.cli.verb import print_json, verb


@verb(
    "gc",
    "Free the space of trials that are packed; --dry-run only says what would go.",
    "journeyman gc runs/quickstart --dry-run",
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Change nothing; say what would go, and its bytes.")
@click.option("--force", is_flag=True, help="Also tokens of closed trials that are not packed: lost for good.")
@click.option("--abandoned", is_flag=True, help="Also trials never closed that nobody has written for a day.")
@click.option("--discarded", is_flag=True, help="Also tokens of batches that an interrupted step left aside.")
@click.option("--keep-days", type=float, default=0.0, show_default=True, help="Closed trials younger than this stay.")
def gc(run: Path, dry_run: bool, force: bool, abandoned: bool, discarded: bool, keep_days: float, as_json: bool) -> int:
    """Remove hot tokens and events of packed trials in RUN. Records and index rows always stay."""
    from journeyman.trials.store.retention import Rules, carry_out, plan_removal

    plan = plan_removal(run, Rules(force=force, abandoned=abandoned, discarded=discarded, keep_days=keep_days))
    if not dry_run:
        carry_out(run, plan)
    count: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for removal in plan.removals:
        count[removal.reason] += 1
        size[removal.reason] += removal.bytes
    if as_json:
        going = [{"reason": reason, "directories": count[reason], "bytes": size[reason]} for reason in count]
        kept = [{"reason": reason, "directories": n, "bytes": b} for reason, (n, b) in plan.kept.items()]
        print_json({"run": str(run), "dry_run": dry_run, "bytes": plan.bytes, "removed": going, "kept": kept})
        return 0
    for reason in count:
        click.echo(f"{'would go' if dry_run else 'gone':<9} {count[reason]:>7}  {size[reason]:>14,} bytes  {reason}")
    for reason, (n, b) in plan.kept.items():
        click.echo(f"{'stays':<9} {n:>7}  {b:>14,} bytes  {reason}")
    click.echo(f"{plan.bytes:,} bytes {'would be freed' if dry_run else 'freed'}: {run}")
    return 0
