"""The signed term sheet as an agent reads it: what was agreed on each term, with the notes that replace its table."""

from __future__ import annotations

import re

from journeyman.worlds.template import Lost
from journeyman.worlds.templates import reading

LINE = re.compile(r'\["([^"]+)", "([^"]+)"\]')
NOTE = re.compile(r"\(1\) Agreed at signing: (.+?) instead")


def term_sheet() -> reading.Reading:
    """Term -> what was agreed, as it is written. Raises Lost when there is no term sheet."""
    paths = yield from reading.list_files("*term*sheet*signed*.pdf", "deals")
    if not paths:
        raise Lost("no signed term sheet")
    text = yield from reading.document_text(paths[0])
    note = NOTE.search(" ".join(text.split()))
    agreed = {}
    for label, value in LINE.findall(text):
        plain = value.removesuffix(" (1)")
        agreed[label] = note[1] if note is not None and plain != value else plain
    return agreed
