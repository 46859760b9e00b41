"""read_file: a whole document as text, the costly way to find a value."""

from __future__ import annotations

from journeyman.tools.protocol import Tool, ToolContext, text_arguments


def read_file(context: ToolContext, path: str) -> str:
    """The tables of a document, one line a row and a tab between cells; the running text if it has no table.

    Raises:
        ToolRefusal: no such file, or an unreadable file.
    """
    tree = context.tree(path)
    lines = ["\t".join(cells) for table in tree["tables"] for cells in [table["header"], *table["rows"]]]
    return "\n".join(lines) or str(tree["text"])


TOOL = Tool("read_file", read_file, text_arguments({"path": "file name"}), "pure", "Read a whole file as text.")
