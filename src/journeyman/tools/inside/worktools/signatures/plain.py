"""Signatures of filesystem and pdfs."""

from __future__ import annotations

from .signature import (
    DIRECTORY,
    FILE,
    FILE_NAME,
    Signature,
    fields,
    flag,
    grid,
    integer,
    many,
    record,
    text,
    tool,
    words,
)

_PATH = {"path": text("directory, from the top of the world", default="/")}

FILESYSTEM: dict[str, Signature] = {
    "list_files": tool("List a directory: name, kind and size of each entry.", "pure", optional=_PATH),
    "read_image_file": tool(
        "Look at an image file (png, jpg, gif, webp, bmp, tiff).", "pure", {"file_path": FILE}, reads="file_path"
    ),
    "read_text_file": tool(
        "Read a text file. Office files and PDFs have servers of their own.",
        "pure",
        {"file_path": FILE},
        {
            "encoding": text("character encoding", default="utf-8"),
            "max_size": integer("most bytes to read, 0 for all", default=0, minimum=0),
        },
        reads="file_path",
    ),
    "search_files": tool(
        "Find files by name with a pattern of * and ?.",
        "pure",
        {"pattern": text("e.g. *.xlsx or report*")},
        {
            **_PATH,
            "recursive": flag("also below the directory's directories", default=True),
            "max_results": integer("most files to name", default=100, minimum=1),
        },
    ),
    "get_file_metadata": tool("Size, times, kind and digest of a file or directory.", "pure", {"file_path": FILE}),
    "get_directory_tree": tool(
        "Show a directory as a tree.",
        "pure",
        optional={
            **_PATH,
            "max_depth": integer("levels to show", default=3, minimum=1, maximum=20),
            "include_files": flag("show files, not only directories", default=True),
            "show_size": flag("show sizes", default=False),
        },
    ),
}

_BLOCK = fields(
    {
        "type": text(
            "kind of block",
            enum=[
                *("paragraph", "heading", "bullet list", "numbered list", "bullet_list", "numbered_list"),
                *("table", "page break", "page_break", "spacer"),
            ],
        ),
        "text": text("of a paragraph or heading"),
        "bold": flag("of a paragraph"),
        "italic": flag("of a paragraph"),
        "level": integer("of a heading, from 1", minimum=1, maximum=6),
        "items": words("of a list"),
        "rows": grid("of a table"),
        "header": flag("whether a table's first row is its header"),
        "height": {"type": "number", "description": "of a spacer, in points"},
    },
    ("type",),
)

PDFS: dict[str, Signature] = {
    "create_pdf": tool(
        "Write a new PDF from blocks; answers with what its pages hold.",
        "idempotent",
        {"directory": DIRECTORY, "file_name": FILE_NAME, "content": many(_BLOCK, "blocks, in order", minItems=1)},
        {
            "metadata": record("title, subject, author"),
            "page_size": text("size of the pages", default="letter", enum=["letter", "a4", "legal"]),
        },
    ),
    "read_pdf_pages": tool(
        "Read pages as text in reading order, tables as rows, with the address of each block.",
        "pure",
        {"file_path": FILE},
        {"pages": many({"type": "integer"}, "page numbers from 1; all when left out")},
        reads="file_path",
    ),
    "read_image": tool(
        "Look at an image of a PDF, named as read_pdf_pages names it.",
        "pure",
        {"file_path": FILE, "annotation": text("e.g. p2/image1")},
        reads="file_path",
    ),
    "read_page_as_image": tool(
        "Draw a page as an image.",
        "pure",
        {"file_path": FILE, "page_number": integer("page from 1", minimum=1)},
        reads="file_path",
    ),
    "search_pdf": tool(
        "Find words in a PDF; answers with page, address and the words around.",
        "pure",
        {"file_path": FILE, "query": text("words to find")},
        {
            "case_sensitive": flag("capitals matter", default=False),
            "whole_word": flag("no parts of words", default=False),
            "max_results": integer("most hits", default=100, minimum=1),
            "context_chars": integer("characters shown on each side", default=50, minimum=0, maximum=1000),
        },
        reads="file_path",
    ),
}
