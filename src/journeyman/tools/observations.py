"""Answers of pure tools by what they depend on: digest of the file, version of the tools, name and arguments.

In memory and, when a directory is given, in files ``<key>.json`` that other processes and trials find. Only answers
that no foreign code can have touched are kept (``SandboxTools`` stops offering them after the first ``code_exec``).
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from journeyman.digest import sha256_json

MAX_ENTRIES = 4_096
"""Answers held in memory; the one unused for longest goes first."""


class ObservationCache:
    """Kept answers.

    Args:
        version: digest of the environment whose tools answered.
        directory: for files that outlive this process; None for memory only.
    """

    def __init__(self, version: str, directory: Path | None = None) -> None:
        self.version, self.directory = version, directory
        self._kept: OrderedDict[str, dict[str, Any]] = OrderedDict()
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)

    def key(self, name: str, arguments: Mapping[str, Any], file_sha256: str, without: str) -> str:
        """The key of an answer; ``without`` names the argument that the digest stands for."""
        rest = {key: value for key, value in arguments.items() if key != without}
        suffix = str(arguments.get(without, "")).rpartition(".")[2].lower()
        name_shown = str(arguments.get(without, "")).rpartition("/")[2]
        return sha256_json([self.version, name, rest, file_sha256, suffix, name_shown])

    def get(self, key: str) -> dict[str, Any] | None:
        """A kept answer, or None."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        if self.directory is None:
            return None
        try:
            answer = json.loads((self.directory / f"{key}.json").read_bytes())
        except (OSError, ValueError):
            return None
        if not isinstance(answer, dict) or not isinstance(answer.get("content"), str):
            return None
        self._remember(key, answer)
        return answer

    def put(self, key: str, answer: Mapping[str, Any]) -> None:
        """Keep an answer. A directory that cannot be written costs the file only."""
        kept = dict(answer)
        self._remember(key, kept)
        if self.directory is None:
            return
        temporary = self.directory / f".{key}.{os.getpid()}.tmp"
        try:
            temporary.write_text(json.dumps(kept))
            temporary.replace(self.directory / f"{key}.json")
        except OSError:
            temporary.unlink(missing_ok=True)

    def _remember(self, key: str, answer: dict[str, Any]) -> None:
        self._kept[key] = answer
        self._kept.move_to_end(key)
        while len(self._kept) > MAX_ENTRIES:
            self._kept.popitem(last=False)
