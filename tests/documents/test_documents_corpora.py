"""Public collections of difficult files: each ends as a tree or a typed error, within its limits, and no process dies.

``JOURNEYMAN_CORPORA`` names a directory of checkouts, ``owner/repository`` below it; nothing of them is kept here. A
checkout that is absent is skipped by name. The printed table (``pytest -m slow -s``) goes into docs/documents.md.
"""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from journeyman.documents import child
from journeyman.documents.errors import UnreadableDocument
from journeyman.documents.formats import FORMATS, suffix_of

pytestmark = pytest.mark.slow

CORPORA = os.environ.get("JOURNEYMAN_CORPORA", "")
DEADLINE_S = 12.0
FOLDERS = {
    "apache/poi": ("test-data/spreadsheet", "test-data/document", "test-data/slideshow", "test-data/hsmf"),
    "jsvine/pdfplumber": ("tests/pdfs", "examples/pdfs"),
    "mikel/mail": ("spec/fixtures",),
    "mozilla/pdf.js": ("test/pdfs",),
    "python-openxml/python-docx": ("features/steps/test_files", "tests/test_files"),
    "scanny/python-pptx": ("features/steps/test_files", "tests/test_files"),
}
"""Repository -> folders that hold its files."""

UNEXPECTED = {"timeout", "reader_died"}
"""Kinds that say nothing about the file; only so many of a collection may end so."""

MAX_UNEXPECTED_SHARE = 0.005


def files_of(repository: str) -> Iterator[Path]:
    root = Path(CORPORA) / repository
    if not CORPORA or not root.is_dir():
        pytest.skip(f"{repository}: JOURNEYMAN_CORPORA={CORPORA!r} holds no checkout of it")
    for folder in FOLDERS[repository]:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and suffix_of(path.name) in FORMATS.keys() - {"json", "txt", "zip"}:
                yield path


@pytest.mark.parametrize("repository", sorted(FOLDERS))
def test_every_file_is_a_tree_or_a_typed_error_in_time(repository: str) -> None:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    slowest, unexpected, doubled = (0.0, ""), list[str](), list[str]()
    for path in files_of(repository):
        data, addresses = path.read_bytes(), list[str]()
        began = time.monotonic()
        try:
            document = child.read_safely(data, path.name, deadline_s=DEADLINE_S)
            took_s, kind = time.monotonic() - began, "tree"
            addresses = [node.address for node in document.walk()]
        except UnreadableDocument as error:
            took_s, kind = time.monotonic() - began, error.kind
            assert path.name in str(error)
            if kind in UNEXPECTED:
                unexpected.append(str(error))
        counts[suffix_of(path.name)][kind] += 1
        slowest = max(slowest, (took_s, path.name))
        if len(addresses) > len(set(addresses)):
            doubled.append(f"{path.name}: address {Counter(addresses).most_common(1)[0]} is not unique")
    child.close_children()
    for suffix, kinds in sorted(counts.items()):
        rest = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common() if kind != "tree")
        print(f"| {repository} | {suffix} | {kinds.total()} | {kinds['tree']} | {rest} |")
    print(f"slowest {slowest[0]:.1f} s: {slowest[1]}", *unexpected, *doubled, sep="\n")
    assert not doubled
    assert slowest[0] < DEADLINE_S + 3
    assert len(unexpected) <= MAX_UNEXPECTED_SHARE * sum(kinds.total() for kinds in counts.values())
