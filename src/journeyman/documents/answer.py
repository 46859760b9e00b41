"""The command ``answer TEXT``: write the deliverable ``answer.json`` where a task's verifier collects it."""

from __future__ import annotations

import os
import sys


def main(arguments: list[str] | None = None) -> int:
    """Replace ``$LOGS_DIR/artifacts/answer.json`` (``/logs`` by default) by ``{"answer": TEXT}``.

    Returns 0, 1 when the place cannot be written (the reason on standard error), 2 for bad usage.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1:
        sys.stderr.write("usage: answer TEXT\n")
        return 2
    folder = f"{os.environ.get('LOGS_DIR', '/logs')}/artifacts"
    try:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103  # pathlib costs 5 ms at each start
        with open(f"{folder}/answer.json", "w", encoding="utf-8") as file:
            file.write(f'{{"answer": {_quoted(arguments[0])}}}\n')
    except OSError as error:
        sys.stderr.write(f"error: cannot write {folder}/answer.json: {error.strerror}\n")
        return 1
    return 0


def _quoted(text: str) -> str:
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    import json

    return json.dumps(text)
