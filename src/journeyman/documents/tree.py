"""The tree of a document: a JSON value of text only, and how one cell is found in it.

``{"format": "xlsx", "tables": [{"name", "where", "header": [text], "rows": [[text]]}], "text": text}``

``where`` locates the table in its file (sheet and range, page and box, lines). Rows are as wide as the header or
shorter. Importing this module must stay cheap, so ``typing`` is only named for the type checker.
"""

from __future__ import annotations

from .errors import UnreadableDocument as UnreadableDocument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Tree: TypeAlias = dict[str, Any]
else:
    Tree = dict

MAX_SHOWN = 80
"""Characters of a foreign message that an error repeats."""


class NoSuchRow(LookupError):
    """No table of the document has this text in its first column."""


class NoSuchCell(LookupError):
    """The row exists, but not with this column, or a column must be named."""


def table(name: str, where: str, lines: list[list[str]]) -> Tree:
    """One table from its lines of text, the first of which is the header."""
    return {"name": name, "where": where, "header": lines[0] if lines else [], "rows": lines[1:]}


def cell(tree: Tree, row: str, col: str | None = None) -> str:
    """The text of one cell.

    Args:
        tree: a document.
        row: text in the first column, compared without surrounding white space; the first row that matches counts.
        col: text in the header; None means the second column of a table that has exactly two.

    Raises:
        NoSuchRow: no table has the row.
        NoSuchCell: no table that has the row has the column as well.
    """
    row, found = row.strip(), False
    for one in tree["tables"]:
        position = _position(one["header"], col)
        for cells in one["rows"]:
            if not cells or cells[0].strip() != row:
                continue
            found = True
            if position is not None and position < len(cells):
                return str(cells[position])
            break
    raise NoSuchCell(col or "") if found else NoSuchRow(row)


def _position(header: list[str], col: str | None) -> int | None:
    if col is None:
        return 1 if len(header) == 2 else None
    names = [name.strip() for name in header]
    return names.index(col.strip()) if col.strip() in names else None


def brief(error: BaseException) -> str:
    """First line of a foreign error, bounded, for use inside an ``UnreadableDocument``."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:MAX_SHOWN]
