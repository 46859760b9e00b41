"""Signatures of documents and spreadsheets."""

from __future__ import annotations

from .operations import EDIT_SPREADSHEET
from .signature import (
    CHANGE_IMAGE,
    COLOR,
    DIRECTORY,
    FILE,
    FILE_NAME,
    Signature,
    fields,
    flag,
    grid,
    integer,
    many,
    number,
    record,
    text,
    tool,
    value,
    words,
)

_WORD_BLOCK = fields(
    {
        "type": text("kind of block", enum=["paragraph", "heading", "bullet_list", "numbered_list", "table"]),
        "text": text("of a paragraph or heading"),
        "level": integer("of a heading", minimum=1, maximum=9),
        "style": text("name of a style, e.g. Quote"),
        "bold": flag("of a paragraph"),
        "italic": flag("of a paragraph"),
        "items": words("of a list"),
        "rows": grid("of a table"),
        "header": flag("whether a table's first row is its header"),
    },
    ("type",),
)
_BLOCKS = many(_WORD_BLOCK, "blocks, in order")
_PLACE = text("address as reading gives it, e.g. body/p3 or body/t1/r2c1")
_ANNOTATION = text("image as reading names it, e.g. image1")
_SECTION = integer("section from 0", default=0, minimum=0)
_SIDES = {
    side: number(f"{side} margin in inches", minimum=0, maximum=20) for side in ("top", "bottom", "left", "right")
}

DOCUMENTS: dict[str, Signature] = {
    "create_document": tool(
        "Write a new Word document from blocks; answers with what it holds.",
        "idempotent",
        {"directory": DIRECTORY, "file_name": FILE_NAME, "content": _BLOCKS},
        {"metadata": record("title, subject, author, comments")},
    ),
    "delete_document": tool("Delete a Word document.", "idempotent", {"file_path": FILE}),
    "get_document_overview": tool(
        "Headings, tables, images, sections and length of a Word document, with addresses.",
        "pure",
        {"file_path": FILE},
        reads="file_path",
    ),
    "read_document_content": tool(
        "Read a Word document with the address of each paragraph and cell; long ones in pages of 100 blocks.",
        "pure",
        {"file_path": FILE},
        {"page_index": integer("page of blocks from 0", default=0, minimum=0)},
        reads="file_path",
    ),
    "read_image": tool(
        "Look at an image of a Word document.",
        "pure",
        {"file_path": FILE, "annotation": _ANNOTATION},
        reads="file_path",
    ),
    "add_content_text": tool(
        "Add text as a new paragraph, or to the text of a paragraph.",
        "unsafe",
        {"file_path": FILE, "identifier": _PLACE, "text": text("text to add")},
        {
            "position": text(
                "start and end are within the text, before and after make a paragraph",
                default="end",
                enum=["start", "end", "before", "after"],
            )
        },
    ),
    "edit_content_text": tool(
        "Replace the text of a paragraph or cell.",
        "idempotent",
        {"file_path": FILE, "identifier": _PLACE, "new_text": text("the whole new text")},
    ),
    "delete_content_text": tool(
        "Empty a paragraph or cell, or remove the paragraph, row or table.",
        "unsafe",
        {"file_path": FILE, "identifier": _PLACE},
        {
            "scope": text("content empties it, element removes it", default="content", enum=["content", "element"]),
            "collapse_whitespace": flag("also remove empty paragraphs beside it", default=False),
        },
    ),
    "add_image": tool(
        "Put an image at the end of a paragraph, or in a paragraph before or after it.",
        "unsafe",
        {"file_path": FILE, "image_path": FILE, "identifier": _PLACE},
        {
            "position": text("where", default="end", enum=["start", "end", "before", "after"]),
            "width": number("inches", minimum=0.01, maximum=50),
            "height": number("inches", minimum=0.01, maximum=50),
        },
    ),
    "modify_image": tool(
        "Turn, mirror, brighten or change the contrast of an image.",
        "unsafe",
        {
            "file_path": FILE,
            "image_index": integer("image from 0", minimum=0),
            "operation": text("what to do", enum=["rotate", "flip", "brightness", "contrast"]),
        },
        CHANGE_IMAGE,
    ),
    "apply_formatting": tool(
        "Format the text of a paragraph or cell; what is left out stays.",
        "idempotent",
        {"file_path": FILE, "identifier": _PLACE},
        {
            **{name: flag(name) for name in ("bold", "italic", "underline", "strikethrough")},
            "font_size": number("points", minimum=1, maximum=400),
            "font_color": COLOR,
        },
    ),
    "header_footer": tool(
        "Read, set, append to or clear a header or footer.",
        "unsafe",
        {
            "file_path": FILE,
            "action": text("what to do", enum=["read", "set", "append", "clear", "link"]),
            "area": text("which", enum=["header", "footer"]),
        },
        {
            "section_index": _SECTION,
            "content": _BLOCKS,
            "link_to_previous": flag("show the previous section's instead, for link"),
        },
    ),
    "page_margins": tool(
        "Read or set the margins of a section.",
        "idempotent",
        {"file_path": FILE, "action": text("what to do", enum=["read", "set"])},
        {"section_index": _SECTION, **_SIDES},
    ),
    "page_orientation": tool(
        "Read or set the orientation of a section.",
        "idempotent",
        {"file_path": FILE, "action": text("what to do", enum=["read", "set"])},
        {"section_index": _SECTION, "orientation": text("new one", enum=["portrait", "landscape"])},
    ),
    "comments": tool(
        "Read, add or delete comments.",
        "unsafe",
        {"file_path": FILE, "action": text("what to do", enum=["read", "add", "delete"])},
        {
            "identifier": _PLACE,
            "text": text("of the comment, for add"),
            "author": text("of the comment, for add"),
            "comment_id": integer("for delete", minimum=0),
        },
    ),
}

_TAB = integer("tab from 0", default=0, minimum=0)
_CELL = text("cell, e.g. B7")
_COMPACT = flag("one line a row instead of JSON", default=False)
_RANGE = text("e.g. A1:D20; the used range when left out")
_SHEET = fields(
    {
        "name": text("name of the tab"),
        "headers": many(value(), "first row"),
        "rows": grid("further rows; a text that begins with = is a formula"),
    },
    ("name", "rows"),
)
_FILTER = fields(
    {
        "column": text("header or letter of the column"),
        "operator": text(
            "how to compare",
            enum=[
                *("equals", "not_equals", "greater_than", "greater_than_or_equal", "less_than", "less_than_or_equal"),
                *("contains", "not_contains", "starts_with", "ends_with", "is_empty", "is_not_empty"),
            ],
        ),
        "value": value("what to compare with"),
    },
    ("column", "operator"),
)

SPREADSHEETS: dict[str, Signature] = {
    "create_spreadsheet": tool(
        "Write a new workbook; answers with its cells, formulas computed.",
        "idempotent",
        {"directory": DIRECTORY, "file_name": FILE_NAME, "sheets": many(_SHEET, "tabs, in order", minItems=1)},
    ),
    "delete_spreadsheet": tool("Delete a workbook or csv file.", "idempotent", {"file_path": FILE}),
    "read_tab": tool(
        "Read the cells of a tab, with their formulas if wanted.",
        "pure",
        {"file_path": FILE},
        {
            "tab_index": _TAB,
            "cell_range": _RANGE,
            "include_formulas": flag("show formulas beside values", default=False),
            "max_rows": integer("most rows", default=200, minimum=1, maximum=20000),
            "max_cols": integer("most columns", default=50, minimum=1, maximum=2000),
            "compact": _COMPACT,
        },
        reads="file_path",
    ),
    "read_csv": tool(
        "Read a csv or tsv file.",
        "pure",
        {"file_path": FILE},
        {
            "delimiter": text("found out when left out"),
            "encoding": text("found out when left out"),
            "has_header": flag("the first row is the header", default=True),
            "row_limit": integer("most rows", default=200, minimum=1, maximum=20000),
            "compact": _COMPACT,
        },
        reads="file_path",
    ),
    "list_tabs_in_spreadsheet": tool(
        "List tabs with their used range.", "pure", {"file_path": FILE}, reads="file_path"
    ),
    "add_tab": tool(
        "Add a tab.",
        "unsafe",
        {"file_path": FILE, "tab_name": text("name of the new tab")},
        {"sheet_data": fields({"headers": many(value(), "first row"), "rows": grid("further rows")})},
    ),
    "delete_tab": tool("Delete a tab.", "unsafe", {"file_path": FILE, "tab_index": integer("tab from 0", minimum=0)}),
    "edit_spreadsheet": tool(
        "Change a workbook by a list of operations, all or none; formulas are computed anew.",
        "unsafe",
        {"file_path": FILE, "operations": many(EDIT_SPREADSHEET, "what to do, in order", minItems=1)},
    ),
    "add_content_text": tool(
        "Write a value or formula into an empty cell or over another.",
        "idempotent",
        {"file_path": FILE, "tab_index": integer("tab from 0", minimum=0), "cell": _CELL, "value": value()},
    ),
    "delete_content_cell": tool(
        "Empty a cell.",
        "idempotent",
        {"file_path": FILE, "tab_index": integer("tab from 0", minimum=0), "cell": _CELL},
    ),
    "create_chart": tool(
        "Add a chart of cells.",
        "unsafe",
        {
            "file_path": FILE,
            "sheet": text("name of the tab with the data"),
            "data_range": text("e.g. A1:C10"),
            "chart_type": text("kind", enum=["bar", "line", "pie"]),
        },
        {
            "title": text("title of the chart"),
            "position": text("cell of its top left corner; right of the data when left out"),
            "categories_column": integer("column of the range with the categories, from 0", minimum=0),
            "include_header": flag("the first row of the range names the series", default=True),
        },
    ),
    "filter_tab": tool(
        "Show the rows of a tab that pass filters.",
        "pure",
        {"file_path": FILE, "tab_index": integer("tab from 0", minimum=0), "filters": many(_FILTER, "conditions")},
        {
            "cell_range": _RANGE,
            "match_all": flag("every condition, not any", default=True),
            "use_headers": flag("the first row names the columns", default=True),
            "include_diagnostics": flag("how many rows each condition passes", default=False),
            "compact": _COMPACT,
        },
        reads="file_path",
    ),
}
