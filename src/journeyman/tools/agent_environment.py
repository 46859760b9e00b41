"""What the agent's own Python environment holds: readers, commands, libraries; never journeyman, seeds or truth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import journeyman.documents
from journeyman.documents.commands import COMMANDS, PACKAGE
from journeyman.sandbox.environment import forkserver_entry

AGENT_DISTRIBUTIONS: tuple[str, ...] = ("openpyxl", "pdfplumber", "python-docx")
"""Distributions with everything they require."""

AGENT_PACKAGES: Mapping[str, Path] = {PACKAGE: Path(journeyman.documents.__file__).parent}
"""Top-level package in the environment -> directory it is copied from."""

AGENT_PROGRAMS: Mapping[str, str] = COMMANDS
"""Command name -> text of an executable file in ``bin``."""

READER_DEADLINE_S = 45.0
"""Wall-clock of one request to the reader, about 20 documents; a document that takes longer is hostile."""

READER_ENTRY: tuple[str, ...] = forkserver_entry(
    f"{PACKAGE}.serve:handle_many", deadline_s=READER_DEADLINE_S, file_mb=0
)
"""Entry program of a reader sandbox: forks one child per request, which cannot write a file."""
