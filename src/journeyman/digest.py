"""Content digests: canonical JSON and sha256, so that equal content has one name everywhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def canonical_json(value: Any) -> bytes:
    """UTF-8 JSON with sorted keys and no white space; NaN and infinities are refused (ValueError)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def sha256(data: bytes) -> str:
    """Hex sha256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def sha256_json(value: Any) -> str:
    """Hex sha256 of the canonical JSON of ``value``."""
    return sha256(canonical_json(value))


def sha256_file(path: Path) -> str:
    """Hex sha256 of a file's bytes, read in one stream."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_sha256(files: Mapping[str, bytes]) -> str:
    """Digest of a set of files by relative path and content; the order of the mapping does not matter."""
    return sha256_json({path: sha256(data) for path, data in files.items()})


def directory_sha256(root: Path) -> str:
    """Digest of every regular file below ``root`` (relative POSIX path and content)."""
    paths = sorted(p for p in root.rglob("*") if p.is_file())
    return sha256_json({p.relative_to(root).as_posix(): sha256_file(p) for p in paths})
