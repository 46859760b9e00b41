"""``journeyman view``: look at a run in the browser."""

from __future__ import annotations

from pathlib import Path

import click

from journeyman.cli.verb import verb


@verb("view", "Look at a run in the browser.", "journeyman view runs/quickstart")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--port", type=click.IntRange(0, 65535), help="Port on this machine; 0 takes any free one.")
def view(directory: Path, port: int | None, as_json: bool) -> int:
    """Serve the pages of the run in DIRECTORY on this machine only, until Ctrl-C."""
    from journeyman.viewer import serve

    return serve(directory, port=port, as_json=as_json)
