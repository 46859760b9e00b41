"""``journeyman capture``: record any agent program token by token."""

from __future__ import annotations

from pathlib import Path

import click

from journeyman.cli.verb import verb

PATH = click.Path(path_type=Path)


@verb(
    "capture",
    "Record any agent program token by token.",
    "journeyman capture --engine models/warm-start --out runs/capture",
    "journeyman capture --engine vllm:http://127.0.0.1:8000 --tokenizer models/qwen3 --out runs/capture",
)
@click.option("--engine", required=True, help="DIR, hf:ORG/NAME@REV, vllm:URL[,URL] or scripted:FILE.")
@click.option("--out", required=True, type=PATH, help="Folder of the recording; one that exists is continued.")
@click.option("--tokenizer", type=PATH, help="Folder with the model's tokenizer, for vllm and scripted.")
@click.option("--family", help="Renderer; found by the chat template when left out.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address; others than loopback need --token.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="Port; 0 takes any free one.")
@click.option("--token", envvar="JOURNEYMAN_CAPTURE_TOKEN", help="What programs must send; a new one when left out.")
@click.option("--model", default="policy", show_default=True, help="Model name shown to programs.")
@click.option("--thinking/--no-thinking", default=False, help="Ask the model to think.")
@click.option("--max-len", type=click.IntRange(2), help="Tokens of context; the engine's when left out.")
@click.option("--max-new-tokens", default=4096, show_default=True, type=click.IntRange(1), help="Of one turn, at most.")
@click.option(
    "--temperature", default=1.0, show_default=True, type=click.FloatRange(0), help="Where none is asked for."
)
@click.option("--seed", default=0, show_default=True, help="Of the sampling.")
def capture(
    engine: str,
    out: Path,
    tokenizer: Path | None,
    family: str | None,
    host: str,
    port: int,
    token: str | None,
    model: str,
    thinking: bool,
    max_len: int | None,
    max_new_tokens: int,
    temperature: float,
    seed: int,
    as_json: bool,
) -> int:
    """Serve an OpenAI-style and an Anthropic-style endpoint in front of an engine, until Ctrl-C.

    Point an agent program at the printed address with the printed token. What it does is recorded below --out as the
    tokens that were sampled: a conversation that only grows is one line; one that the program rewrites is forked.
    """
    from journeyman.engines.capture import CaptureSpec, serve
    from journeyman.engines.capture.turns import Limits

    limits = Limits(max_new_tokens=max_new_tokens, temperature=temperature, seed=seed)
    spec = CaptureSpec(engine, out, tokenizer, family, host, port, token, model, thinking, max_len, limits)
    return serve(spec, as_json=as_json)
