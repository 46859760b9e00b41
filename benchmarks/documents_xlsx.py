"""Spreadsheets beside their peers; a section of ``documents.py``, which runs it and prints its rows.

- recalculation of the workbook of 1,549 formulas, with the second engine as check: under 100 ms of wall clock, since
  that engine has a process of its own whose CPU time is not ours; beside LibreOffice
  where ``soffice`` is installed, else beside a load and evaluation by ironcalc alone, which stores nothing;
- the difference of that workbook before and after one edit: under 1 s, exactly 26 entries, none false, beside a loop
  over openpyxl that compares stored values;
- the values of 100,000 cells: under 0.3 s, beside openpyxl (read only) and, where it is installed, pandas.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from documents import Row, best

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "documents"))

from reference_workbook import saved, workbook

RECALCULATION_S, DIFF_S, VALUES_S = 0.1, 1.0, 0.3
"""Gates: seconds of wall clock, then CPU seconds."""


def rows(rounds: int) -> Iterator[Row]:
    """The three measurements."""
    yield recalculation(rounds)
    yield difference(rounds)
    yield from reading(rounds)


def recalculation(rounds: int) -> Row:
    """1,549 formulas without any stored value."""
    from journeyman.documents.xlsx import recalculate

    data = saved(workbook())
    name, peer = _peer_engine(data)
    alone, checked, theirs = best(
        rounds,
        lambda: recalculate(data, "reference.xlsx", check=None),
        lambda: recalculate(data, "reference.xlsx"),
        peer,
    )
    done = checked[1]
    wall_s = min(_wall(lambda: recalculate(data, "reference.xlsx")) for _ in range(rounds))
    facts = {
        "formulas": done.formulas,
        "stored": len(done.changed),
        "disagreements": len(done.disagreements),
        "without_check_s": round(alone[0], 4),
        "wall_s": round(wall_s, 4),
    }
    passed = wall_s < RECALCULATION_S and (done.formulas, len(done.changed), done.disagreements) == (1549, 1549, ())
    return Row("xlsx", "recalculate 1,549 formulas", checked[0], name, theirs[0], facts, passed)


def _wall(task: Callable[[], Any]) -> float:
    began = time.perf_counter()
    task()
    return time.perf_counter() - began


def _peer_engine(data: bytes) -> tuple[str, Callable[[], Any]]:
    if shutil.which("soffice"):
        from journeyman.documents.xlsx.engines.office import resave

        return "LibreOffice (its process is not counted)", lambda: resave(data)
    import tempfile

    import ironcalc

    path = Path(tempfile.mkdtemp(prefix="benchmark-")) / "reference.xlsx"
    path.write_bytes(data)

    def evaluate() -> Any:
        model = ironcalc.load_from_xlsx(str(path), "en", "UTC", "en")
        model.evaluate()
        return model

    return "ironcalc, load and evaluate only", evaluate


def difference(rounds: int) -> Row:
    """One input changed and one label added, saved by a library that drops stored values."""
    from openpyxl import load_workbook

    from journeyman.documents.diff import diff
    from journeyman.documents.xlsx import recalculate

    before = recalculate(saved(workbook()), "reference.xlsx").data
    book = load_workbook(BytesIO(before))
    book["DCF"]["B10"], book["DCF"]["A12"] = 0.06, "NPV"
    after = saved(book)

    def naive() -> int:
        first, second = (load_workbook(BytesIO(data), data_only=True) for data in (before, after))
        count = 0
        for sheet in first.sheetnames:
            one, two = first[sheet], second[sheet]
            for row in range(1, max(one.max_row, two.max_row) + 1):
                for column in range(1, max(one.max_column, two.max_column) + 1):
                    count += one.cell(row, column).value != two.cell(row, column).value
        return count

    ours, theirs = best(rounds, lambda: diff(before, after, "before.xlsx", "after.xlsx"), naive)
    found = ours[1]
    columns = "CDEFGHIJKL"
    true = {f"DCF!{column}{row}" for column in columns for row in (2, 3)}
    true |= {f"DCF!{cell}" for cell in ("B10", "A12", "B12", "B13", "B14", "E15")}
    false = [entry.address for entry in found.entries if entry.address not in true]
    facts = {"entries": len(found.entries), "false": len(false), "entries_by_peer": theirs[1]}
    passed = ours[0] < DIFF_S and len(found.entries) == 26 and not false
    return Row("xlsx", "difference of one edit", ours[0], "openpyxl, stored values", theirs[0], facts, passed)


def reading(rounds: int) -> Iterator[Row]:
    """100,000 numbers and texts in 10,000 rows."""
    from openpyxl import load_workbook

    from journeyman.documents.xlsx import read, values

    data = _large()

    def openpyxl() -> int:
        book = load_workbook(BytesIO(data), read_only=True, data_only=True)
        return sum(len(row) for row in book.active.iter_rows(values_only=True))

    peers: dict[str, Callable[[], Any]] = {"openpyxl, read only": openpyxl}
    try:
        import pandas
    except ImportError:
        pass
    else:
        peers["pandas"] = lambda: pandas.read_excel(BytesIO(data), header=None).size
    ours, tree, *theirs = best(
        rounds, lambda: values(data, "large.xlsx"), lambda: read(data, "large.xlsx"), *peers.values()
    )
    count = sum(len(row) for sheet in ours[1].values() for row in sheet)
    for (name, _), found in zip(peers.items(), theirs, strict=True):
        passed = ours[0] < VALUES_S and count == found[1] == 100_000
        facts = {"cells": count, "whole_tree_s": round(tree[0], 3)}
        yield Row("xlsx", "values of 100,000 cells", ours[0], name, found[0], facts, passed)


def _large() -> bytes:
    import xlsxwriter

    out = BytesIO()
    book = xlsxwriter.Workbook(out, {"in_memory": True})
    sheet = book.add_worksheet("Large")
    for row in range(10_000):
        for column in range(10):
            sheet.write(row, column, f"text {row % 97}" if column == 0 else row * column / 7)
    book.close()
    return out.getvalue()
