"""Imported once by the server that forks the graders: everything that checks need is loaded before the first fork."""

from __future__ import annotations

import contextlib
import importlib

from . import scoring as scoring

MODULES = (
    *("lxml.etree", "formualizer", "charset_normalizer", "email.parser", "email.policy", "decimal", "difflib"),
    *("officedocs.opening", "officedocs.errors", "officedocs.amounts", "officedocs.xlsx.reading", "officedocs.diff"),
    *("officedocs.xlsx.engines.embedded", "officedocs.xlsx.recalculation", "officedocs.diff.workbook"),
    *("officedocs.diff.trees", "officedocs.docx.reader", "officedocs.pptx.reader", "officedocs.delimited"),
)

for _name in MODULES:
    with contextlib.suppress(ImportError):  # a check that needs what is not there says so itself
        importlib.import_module(_name)
