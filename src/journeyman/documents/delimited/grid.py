"""Text as rows of fields, without loss: joined again, the pieces are the text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..errors import TooLarge, UnreadableDocument

DELIMITERS = ",;\t|"
"""In order of preference where several split the rows evenly."""

SAMPLE_ROWS = 50

MAX_FIELDS = 5_000_000
"""A file of more fields is refused."""

NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}


@dataclass(slots=True)
class Row:
    """One record: fields as stored, with their quotes, and the line ending behind it. A blank line has no field."""

    raw: list[str]
    ending: str = "\n"

    def values(self) -> list[str]:
        """Fields without quotes."""
        return [value_of(one) for one in self.raw]


@dataclass(slots=True)
class Grid:
    """A whole file. ``hint`` is a first line ``sep=;`` that names the delimiter, kept as it is."""

    delimiter: str
    rows: list[Row] = field(default_factory=list)
    hint: str = ""

    def text(self) -> str:
        """The file's text."""
        return self.hint + "".join(self.delimiter.join(row.raw) + row.ending for row in self.rows)

    @property
    def ending(self) -> str:
        """The line ending of most rows."""
        counts: dict[str, int] = {}
        for row in self.rows:
            if row.ending:
                counts[row.ending] = counts.get(row.ending, 0) + 1
        return max(counts, key=lambda ending: counts[ending]) if counts else "\n"


def value_of(raw: str) -> str:
    """A field without its quotes; text behind a closing quote belongs to it, as readers take it."""
    if not raw.startswith('"'):
        return raw
    end = _QUOTED.match(raw)
    if end is None:
        return raw
    return end[0][1:-1].replace('""', '"') + raw[end.end() :]


_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_HINT = re.compile(r"sep=(.)(\r\n|\n|\r)", re.IGNORECASE)


def quoted(value: str, delimiter: str, *, always: bool = False) -> str:
    """A value as a field, in quotes where it needs them."""
    special = f'"\r\n{delimiter}'
    needs = always or any(letter in value for letter in special) or value != value.strip()
    return '"' + value.replace('"', '""') + '"' if needs else value


def parse(text: str, name: str, *, delimiter: str = "") -> Grid:
    """The grid of a file's text, with its delimiter found when none is given.

    Raises:
        UnreadableDocument: a quote is never closed; names the row. TooLarge: more than ``MAX_FIELDS`` fields.
    """
    hint = _HINT.match(text)
    if hint and not delimiter and hint[1] in DELIMITERS:
        return Grid(hint[1], _rows(text, hint.end(), hint[1], name), hint[0])
    chosen = delimiter or find_delimiter(text)
    return Grid(chosen, _rows(text, 0, chosen, name))


def _pattern(delimiter: str) -> re.Pattern[str]:
    plain = re.escape(delimiter)
    return re.compile(rf'("(?:[^"]|"")*"[^{plain}\r\n]*|(?!")[^{plain}\r\n]*)({plain}|\r\n|\n|\r|\Z)')


def _rows(text: str, start: int, delimiter: str, name: str, limit: int = 0) -> list[Row]:
    rows: list[Row] = []
    fields: list[str] = []
    count, position, match = 0, start, _pattern(delimiter).match
    while position < len(text):
        found = match(text, position)
        if found is None:
            place = f"r{len(rows) + 1}c{len(fields) + 1}"
            raise UnreadableDocument(name, "a quote that is never closed", place=place, remedy="close it, or double it")
        fields.append(found[1])
        count += 1
        position = found.end()
        if found[2] == delimiter:
            if position == len(text):
                fields.append("")
                rows.append(Row(fields, ""))
                fields = []
            continue
        rows.append(Row([] if fields == [""] else fields, found[2]))
        fields = []
        if limit and len(rows) == limit:
            return rows
        if count > MAX_FIELDS:
            raise TooLarge(name, f"more than {MAX_FIELDS} fields")
    if fields:
        rows.append(Row(fields, ""))
    return rows


def find_delimiter(text: str) -> str:
    """The delimiter that splits the first rows evenly into the most fields; else the one that splits most of them.

    Of two that do it equally well, the one under which quotes only stand around fields is the likelier.
    """
    best, best_score = DELIMITERS[0], (0.0, False, False, 0)
    for delimiter in DELIMITERS:
        try:
            rows = _rows(text, 0, delimiter, "", SAMPLE_ROWS)
        except UnreadableDocument:
            continue
        widths = [len(row.raw) for row in rows if row.raw]
        if not widths or max(widths) == 1:
            continue
        common = max(set(widths), key=lambda width: (widths.count(width), width))
        share = widths.count(common) / len(widths) if common > 1 else 0.0
        inner = [one for row in rows for one in row.raw[1:]]
        is_prose = sum(1 for one in inner if one.startswith(" ")) * 2 > len(inner)  # a comma inside sentences
        is_torn = any(_is_torn(one) for row in rows for one in row.raw)
        score = (share, not is_torn, not is_prose, min(common, 3) if share == 1.0 else 0)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _is_torn(raw: str) -> bool:
    """Whether a quote stands inside the field, as where another delimiter's fields are cut in the wrong place."""
    end = _QUOTED.match(raw)
    return '"' in (raw[end.end() :] if end else raw)


_NUMBER = re.compile(r"[-+(]?[$€£]?\s*\d[\d\s.,']*\)?\s*%?|\d{4}-\d\d-\d\d.*|\d{1,2}[./]\d{1,2}[./]\d{2,4}.*")


def has_header(grid: Grid) -> bool:
    """Whether the first row names the columns: all text, all different, above values of which some are numbers or
    which are longer than its own."""
    rows = [row.values() for row in grid.rows[: SAMPLE_ROWS + 1] if row.raw]
    if len(rows) < 2 or len(rows[0]) < 1:
        return False
    first = [one.strip() for one in rows[0]]
    if not all(first) or len(set(first)) != len(first) or any(_NUMBER.fullmatch(one) for one in first):
        return False
    body = rows[1:]
    for column in range(len(first)):
        values = [row[column].strip() for row in body if column < len(row) and row[column].strip()]
        if values and sum(1 for one in values if _NUMBER.fullmatch(one)) * 2 > len(values):
            return True
    return all(first[n] not in {row[n].strip() for row in body if n < len(row)} for n in range(len(first)))
