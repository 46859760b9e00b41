"""Exports of a run into formats of other programs: one explicit dict of formats."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from journeyman.errors import InputError, nearest
from journeyman.redact import process_redactor
from journeyman.trials.store.atif import Decode, atif_document
from journeyman.trials.store.harbor_jobs import write_harbor
from journeyman.trials.store.place import is_url, place_at
from journeyman.trials.store.run import Run, open_run
from journeyman.trials.store.samples import sample_lines

LOG = logging.getLogger(__name__)
LINES_PER_FILE = 1024


@dataclass(frozen=True)
class Exported:
    """What was written, and where."""

    where: str
    n_documents: int
    bytes: int


def export_run(path_or_url: str | Path, format_name: str, out: str | Path, decode: Decode | None = None) -> Exported:
    """Write every closed trial of a run in another format.

    Args:
        path_or_url: the run, as for ``open_run``.
        format_name: a key of ``FORMATS``.
        out: directory or fsspec URL for the files.
        decode: ids to text, where the format has messages.

    Raises:
        InputError: no such format or run.
        StorageError: the files cannot be written.
    """
    if format_name not in FORMATS:
        near = nearest(format_name, FORMATS)
        hint = f"Did you mean {near}?" if near else None
        raise InputError("--as", f"unknown format {format_name!r}", allowed=", ".join(FORMATS), hint=hint)
    with open_run(path_or_url) as run:
        n_documents, size = FORMATS[format_name](run, out, decode and _redacted(decode))
    LOG.info("exported %d documents as %s", n_documents, format_name)
    return Exported(str(out), n_documents, size)


def _redacted(decode: Decode) -> Decode:
    """Messages are text about a run: without the secrets that this process holds. The ids beside them stay."""
    redact = process_redactor()
    return lambda ids: redact(decode(ids))


def default_out(path_or_url: str | Path, format_name: str) -> Path:
    """``exports/FORMAT`` in a run of this machine. Raises InputError for a run at a URL: exports need a place."""
    if is_url(path_or_url):
        raise InputError("--out", "is missing; a run at a URL needs it", allowed="a directory or a URL")
    return Path(path_or_url) / "exports" / format_name


def write_atif(run: Run, out: str | Path, decode: Decode | None) -> tuple[int, int]:
    """ATIF-v1.8: one JSON document per trial."""
    place, size = place_at(out), 0
    name = Path(run.root).name or "run"
    rows = run.trials()
    for row in rows:
        told = run.record(row.key), run.trajectory(row.key), run.segments(row.key)
        document = atif_document(row.key, name, *told, decode)
        data = json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
        place.write(f"{re.sub(r'[^A-Za-z0-9._-]+', '-', row.key)}.json", data)
        size += len(data)
    return len(rows), size


def write_samples(run: Run, out: str | Path, decode: Decode | None) -> tuple[int, int]:
    """prime-rl-style training samples: JSON lines, 1,024 per file."""
    place, size, count = place_at(out), 0, 0
    lines: list[bytes] = []

    def flush() -> int:
        data = b"".join(lines)
        place.write(f"samples-{(count - 1) // LINES_PER_FILE:05d}.jsonl", data)
        lines.clear()
        return len(data)

    for sample in sample_lines(run):
        lines.append(json.dumps(sample, allow_nan=False).encode() + b"\n")
        count += 1
        if len(lines) == LINES_PER_FILE:
            size += flush()
    if lines:
        size += flush()
    return count, size


FORMATS: dict[str, Callable[[Run, str | Path, Decode | None], tuple[int, int]]] = {
    "atif": write_atif,
    "harbor": write_harbor,
    "prime-rl": write_samples,
}
