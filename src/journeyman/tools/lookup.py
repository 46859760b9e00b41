"""lookup: one value of a document by its row and column labels."""

from __future__ import annotations

from journeyman.documents import NoSuchCell, NoSuchRow, cell
from journeyman.tools.protocol import Tool, ToolContext, ToolRefusal, text_arguments


def lookup(context: ToolContext, path: str, row: str, col: str | None = None) -> str:
    """The text of one cell, also of PDF and Word tables and of ``name: value`` lines in mails.

    Raises:
        ToolRefusal: no such file, row or cell, or an unreadable file.
    """
    try:
        return cell(context.tree(path), row, col)
    except NoSuchRow:
        raise ToolRefusal("no such row") from None
    except NoSuchCell:
        raise ToolRefusal("no such cell") from None


TOOL = Tool(
    "lookup",
    lookup,
    text_arguments(
        {"path": "file name", "row": "label in the first column"},
        {"col": "label in the header; may be left out when there are two columns"},
    ),
    "pure",
    "Read one value from a table in a file.",
)
