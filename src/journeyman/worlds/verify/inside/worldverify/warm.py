"""Imported once by the server that forks the graders: everything that checks need is loaded before the first fork."""

from __future__ import annotations

import contextlib
import importlib
import io
import zipfile

from . import scoring as scoring
from .bundle import Bundle

MODULES = (
    *("lxml.etree", "formualizer", "charset_normalizer", "email.parser", "email.policy", "decimal", "difflib"),
    *("officedocs.opening", "officedocs.errors", "officedocs.amounts", "officedocs.xlsx.reading", "officedocs.diff"),
    *("officedocs.xlsx.engines.embedded", "officedocs.xlsx.recalculation", "officedocs.diff.workbook"),
    *("officedocs.diff.trees", "officedocs.docx.reader", "officedocs.pptx.reader", "officedocs.delimited"),
)

for _name in MODULES:
    with contextlib.suppress(ImportError):  # a check that needs what is not there says so itself
        importlib.import_module(_name)

_SPACE = "http://schemas.openxmlformats.org"
_SMALL = {
    "[Content_Types].xml": f'<Types xmlns="{_SPACE}/package/2006/content-types"/>',
    "_rels/.rels": f'<Relationships xmlns="{_SPACE}/package/2006/relationships"><Relationship Id="r1" Type="{_SPACE}'
    '/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_SPACE}/spreadsheetml/2006/main" xmlns:r="{_SPACE}/officeDocument/2006'
    '/relationships"><sheets><sheet name="A" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_SPACE}/package/2006/relationships"><Relationship Id="r1" '
    f'Type="{_SPACE}/officeDocument/2006/relationships/worksheet" Target="worksheets/a.xml"/></Relationships>',
    "xl/worksheets/a.xml": f'<worksheet xmlns="{_SPACE}/spreadsheetml/2006/main"><sheetData><row r="1"><c r="A1"><v>1'
    "</v></c></row></sheetData></worksheet>",
}


def _run_once() -> None:
    """Grade something small, so that what a first time costs is paid before the forks. No formula: engines start
    threads, and a fork must not happen beside them."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in _SMALL.items():
            archive.writestr(name, text)
    params = {"file": "a.xlsx", "columns": [{"name": "1"}], "rows": [["1,200 USD"]]}
    truth = {"checks": [{"id": "a", "fn": "table", "params": params}]}
    scoring.grade({"a.xlsx": made.getvalue()}, truth)
    scoring.CHECKS["json.fields"](Bundle({"a.json": b'{"a": "1,200"}'}), {"file": "a.json", "fields": {"a": 1200}})


with contextlib.suppress(Exception):  # it only saves time; what is wrong shows with the first deliverable
    _run_once()
