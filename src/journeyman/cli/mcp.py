"""``journeyman mcp serve``: a world's tools for any client of the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path

import click

from journeyman.cli.verb import verb

PATH = click.Path(path_type=Path)


@click.group(short_help="Serve a world's tools to any MCP client.")
def mcp() -> None:
    """Offer tools over the Model Context Protocol.

    \b
    Example:  journeyman mcp serve worlds/w1
    """


@verb(
    "serve",
    "Serve a world's tools to any MCP client.",
    "journeyman mcp serve worlds/w1",
    "journeyman mcp serve worlds/w1 --http 127.0.0.1:8931 --servers filesystem,pdfs,mail",
)
@click.argument("world", type=PATH)
@click.option("--stdio", "is_stdio", is_flag=True, help="Over standard input and output; the default.")
@click.option("--http", metavar="HOST:PORT", help="Over streamable HTTP; port 0 takes any free one.")
@click.option("--servers", help="Only these, with commas between: filesystem,pdfs,mail,...")
@click.option(
    "--sandbox", "provider", default="bwrap", show_default=True, help="Where the tools run: bwrap, oci, none."
)
@click.option("--waive", multiple=True, help="A limit that may stay unenforced here: memory, pids, disk, cpus.")
@click.option("--faults", type=PATH, help="File of faults to inject, besides the world's own.")
@click.option("--seed", type=int, help="Added to the seeds of the faults, e.g. one per trial.")
@click.option("--workbench", is_flag=True, help="Give code_exec the packages that agents reach for.")
@click.option("--environments", type=PATH, help="Where sandbox environments are kept; the user's cache by default.")
@click.option("--token", envvar="JOURNEYMAN_MCP_TOKEN", help="What HTTP requests must carry as bearer token.")
@click.option("--with-parent", is_flag=True, help="Over HTTP too, end when the program that started this one ends.")
def serve(
    world: Path,
    is_stdio: bool,
    http: str | None,
    servers: str | None,
    provider: str,
    waive: tuple[str, ...],
    faults: Path | None,
    seed: int | None,
    workbench: bool,
    environments: Path | None,
    token: str | None,
    with_parent: bool,
    as_json: bool,
) -> int:
    """Run the tools of WORLD in a sandbox that sees a copy-on-write view of it; WORLD itself is never changed.

    WORLD is a directory of files, or one with filesystem/ and .apps_data/. The server ends with its client, with the
    program that started it, or by a signal, and leaves nothing behind. With --http, clients share one view.
    """
    from journeyman.errors import InputError
    from journeyman.tools.mcp.serve import serve_world
    from journeyman.tools.mcp.world import WorldSpec

    if is_stdio and http:
        raise InputError("--stdio", "cannot be combined with --http")
    spec = WorldSpec(
        directory=world,
        servers=tuple(name.strip() for name in (servers or "").split(",") if name.strip()),
        provider=provider,
        environments=environments,
        faults=faults,
        seed=seed,
        has_workbench=workbench,
        waive=frozenset(waive),
    )
    return serve_world(spec, http=http, token=token, with_parent=with_parent, as_json=as_json)


mcp.add_command(serve)
