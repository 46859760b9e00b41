"""Readers of office files beside their peers, in one run.

    python benchmarks/documents.py [--rounds N] [--only SECTION] [--json FILE]

Each section generates its files, checks what was read and prints our time and the peer's; the best round of each
counts, taken in turns so that both see the same neighbours on the machine. Times are CPU seconds of this process
(``time.process_time``); no other process takes part. Exit code 1 when a gate is missed.

- ``pdf``: the whole tree (columns, tables, running titles, annotations) beside ``pdfplumber``'s ``extract_text()``, on
  the page's two-column file (250 marked paragraphs) and the file written in rows across columns (500). Gates: at least
  10 times faster, every paragraph kept, none mixed, and no fewer kept than by pdfplumber.
- ``xlsx``: recalculation, semantic difference and values of workbooks, see ``documents_xlsx.py``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from document_files import kept_and_mixed, row_order, two_col

PDF_RATIO_GATE = 10.0


@dataclass
class Row:
    """One measurement.

    Attributes:
        section: key of ``SECTIONS``.
        what: file and task.
        ours_s: our best time, CPU seconds.
        peer: name of the peer, empty for none.
        peer_s: its best time, CPU seconds, 0 for none.
        facts: what was checked, e.g. paragraphs kept and mixed by each.
        passed: whether the section's gates hold.
    """

    section: str
    what: str
    ours_s: float
    peer: str = ""
    peer_s: float = 0.0
    facts: dict[str, Any] | None = None
    passed: bool = True

    @property
    def ratio(self) -> float:
        """How many times faster we are than the peer."""
        return self.peer_s / self.ours_s if self.ours_s else 0.0


def best(rounds: int, *tasks: Callable[[], Any]) -> list[tuple[float, Any]]:
    """Least CPU seconds and last result of each task; the tasks take turns."""
    found: list[tuple[float, Any]] = [(float("inf"), None)] * len(tasks)
    for _ in range(rounds):
        for at, task in enumerate(tasks):
            began = time.process_time()
            result = task()
            found[at] = (min(found[at][0], time.process_time() - began), result)
    return found


def pdf(rounds: int) -> Iterator[Row]:
    """Reading order of two files in columns beside pdfplumber."""
    import pdfplumber

    from journeyman.documents import open_document

    def peer(data: bytes) -> str:
        with pdfplumber.open(BytesIO(data)) as document:
            return "\n".join(page.extract_text() for page in document.pages)

    open_document(two_col(1), "warm.pdf")  # libraries are loaded once
    for name, data, n_marks in (("two_col", two_col(), 250), ("row_order", row_order(), 500)):
        ours, theirs = best(rounds, lambda data=data: open_document(data, "a.pdf").text(), lambda data=data: peer(data))
        kept, mixed = kept_and_mixed(ours[1], n_marks)
        peer_kept, peer_mixed = kept_and_mixed(theirs[1], n_marks)
        facts = {"marks": n_marks, "kept": kept, "mixed": mixed, "peer_kept": peer_kept, "peer_mixed": peer_mixed}
        row = Row("pdf", name, ours[0], "pdfplumber", theirs[0], facts)
        row.passed = row.ratio >= PDF_RATIO_GATE and (kept, mixed) == (n_marks, 0) and kept >= peer_kept
        yield row


def xlsx(rounds: int) -> Iterator[Row]:
    """Recalculation, difference and values of workbooks, see ``documents_xlsx.py``."""
    from documents_xlsx import rows

    yield from rows(rounds)


SECTIONS: dict[str, Callable[[int], Iterator[Row]]] = {"pdf": pdf, "xlsx": xlsx}
"""Name -> rows of one section, given the number of rounds."""


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=sorted(SECTIONS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(words)
    rows = []
    for name, section in SECTIONS.items():
        if options.only in (None, name):
            for row in section(options.rounds):
                rows.append(row)
                beside = f"{row.peer} {row.peer_s:.3f} s, {row.ratio:.1f} times" if row.peer else ""
                facts = ", ".join(f"{key} {value}" for key, value in (row.facts or {}).items())
                verdict = "" if row.passed else "  MISSED"
                print(f"{row.section}/{row.what}: {row.ours_s:.3f} s  {beside}  {facts}{verdict}", flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) | {"ratio": row.ratio} for row in rows], indent=1))
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
