"""``journeyman pack``: keep a run's trials as Parquet, or hand them to another program."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from journeyman.cli.verb import print_json, verb

if TYPE_CHECKING:
    from journeyman.trials.store.atif import Decode


@verb(
    "pack",
    "Keep a run's trials as Parquet parts, here or at a URL; or export them.",
    "journeyman pack runs/quickstart",
    "journeyman pack runs/quickstart --to s3://bucket/quickstart",
    "journeyman pack runs/quickstart --as atif --out runs/quickstart/atif",
)
@click.argument("run")
@click.option("--to", help="Directory or fsspec URL for the parts; without it they stay in the run.")
@click.option("--as", "format_name", default="parquet", show_default=True, help="parquet, atif, harbor or prime-rl.")
@click.option("--out", help="Directory or URL for the exported files; default: RUN/exports/FORMAT.")
@click.option("--model", type=click.Path(path_type=Path), help="Model directory whose tokenizer turns ids into text.")
@click.option("--index", type=click.Path(path_type=Path), help="Where the index lies, when not in the run.")
def pack(
    run: str,
    to: str | None,
    format_name: str,
    out: str | None,
    model: Path | None,
    index: Path | None,
    as_json: bool,
) -> int:
    """Write every closed trial of RUN that is not packed yet; nothing is removed (see journeyman gc).

    Exit code 1 when some trials cannot be packed; they are named, and the others are packed.
    """
    from journeyman.trials.store.export import default_out, export_run
    from journeyman.trials.store.pack import local_run, pack_run

    if format_name != "parquet":
        done = export_run(run, format_name, out or default_out(run, format_name), _decoder(model))
        if as_json:
            print_json(asdict(done))
        else:
            click.echo(f"{done.n_documents} documents, {done.bytes / 1e6:.1f} MB: {done.where}")
        return 0
    packed = pack_run(local_run(run), to=to, index=index)
    if as_json:
        print_json(asdict(packed))
    else:
        if packed.n_packed_before:
            click.echo(f"{packed.n_packed_before} trials were packed before")
        click.echo(
            f"packed {packed.n_trials} trials, {packed.n_tokens:,} tokens, {packed.n_parts} parts, "
            f"{packed.bytes / 1e6:.1f} MB: {packed.where}"
        )
    return 1 if packed.unpackable else 0


def _decoder(model: Path | None) -> Decode | None:
    if model is None:
        return None
    from journeyman.tokens.tokenizer import Tokenizer

    return Tokenizer(model).decode
