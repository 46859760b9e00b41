"""Right deliverables written otherwise: another writer, another number format, other order; they must stay right."""

from __future__ import annotations

import copy
import csv
import io
import json
import random
import zipfile
from collections.abc import Callable
from typing import Any

from journeyman.worlds.template import Bound, Files, Template
from journeyman.worlds.variants.leaves import at, is_number, mapped

CREATED_BY = "another program"


def openpyxl_resaved(data: bytes, rng: random.Random) -> bytes:
    """Saved by openpyxl: stored values of formulas are gone, styles renumbered."""
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data))
    return _saved(book)


def number_formats(data: bytes, rng: random.Random) -> bytes:
    """Numbers shown with separators, currency or fewer places; values stay."""
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data))
    for page in book.worksheets:
        for row in page.iter_rows():
            for cell in row:
                if is_number(cell.value) and cell.number_format == "General":
                    cell.number_format = rng.choice(["#,##0.00", "$#,##0", "0.0", "#,##0;(#,##0)"])
    return _saved(book)


def _saved(book: Any) -> bytes:
    made = io.BytesIO()
    book.save(made)
    return made.getvalue()


def rezipped(data: bytes, rng: random.Random) -> bytes:
    """The same parts in another order, stored without compression."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as target:
        names = source.namelist()
        for name in sorted(names, key=lambda one: (one != "[Content_Types].xml", one)):
            target.writestr(name, source.read(name))
    return made.getvalue()


def json_respelt(data: bytes, rng: random.Random) -> bytes:
    """Other white space, other order of keys, numbers as text with separators."""
    value = json.loads(data)

    def spell(path: Any, one: Any) -> Any:
        return f"{one:,}" if isinstance(one, int) and not isinstance(one, bool) and abs(one) >= 1_000_000 else one

    return json.dumps(mapped(value, spell), sort_keys=True, ensure_ascii=True).encode()


def csv_respelt(data: bytes, rng: random.Random) -> bytes:
    """Every field in quotes, Windows line ends, a byte-order mark."""
    rows = list(csv.reader(io.StringIO(data.decode())))
    made = io.StringIO()
    csv.writer(made, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
    return made.getvalue().encode("utf-8-sig")


def docx_resaved(data: bytes, rng: random.Random) -> bytes:
    """Saved by python-docx."""
    import docx

    made = io.BytesIO()
    docx.Document(io.BytesIO(data)).save(made)
    return made.getvalue()


def pptx_resaved(data: bytes, rng: random.Random) -> bytes:
    """Saved by python-pptx."""
    import pptx

    made = io.BytesIO()
    pptx.Presentation(io.BytesIO(data)).save(made)
    return made.getvalue()


REWRITINGS: dict[str, dict[str, Callable[[bytes, random.Random], bytes]]] = {
    "xlsx": {"openpyxl": openpyxl_resaved, "number formats": number_formats, "rezipped": rezipped},
    "json": {"respelt": json_respelt},
    "csv": {"respelt": csv_respelt},
    "docx": {"python-docx": docx_resaved, "rezipped": rezipped},
    "pptx": {"python-pptx": pptx_resaved, "rezipped": rezipped},
}
"""Suffix -> name -> another way to write the same."""


def positives(template: Template, bound: Bound, world: Files, rng: random.Random) -> list[tuple[str, dict[str, bytes]]]:
    """Right deliverables in other forms."""
    right = template.write(bound, bound.answer, world)
    found = []
    for name, data in right.items():
        for how, rewrite in REWRITINGS.get(name.rpartition(".")[2], {}).items():
            found.append((f"{name} {how}", {**right, name: rewrite(data, rng)}))
    if bound.unordered:
        answer = copy.deepcopy(bound.answer)
        for path in bound.unordered:
            rng.shuffle(at(answer, tuple(path.split("."))))
        found.append(("rows in another order", template.write(bound, answer, world)))
    found.append(("a file more", {**right, "notes.txt": b"Working notes.\n"}))
    return found
