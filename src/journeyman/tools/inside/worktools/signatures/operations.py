"""Nested values: slides, and the operations of edit_spreadsheet and edit_slides."""

from __future__ import annotations

from .signature import Schema, fields, flag, grid, integer, many, number, text, value, words

SLIDE: Schema = fields(
    {
        "layout": text(
            "layout", enum=["title", "title_and_content", "section_header", "two_content", "title_only", "blank"]
        ),
        "title": text("title"),
        "subtitle": text("subtitle"),
        "bullets": fields({"items": words("bullet points")}, ("items",)),
        "table": fields({"rows": grid("rows of texts"), "header": flag("first row is a header")}, ("rows",)),
        "columns": fields({"left": words("bullet points"), "right": words("bullet points")}),
        "notes": text("speaker's notes"),
    },
    ("layout",),
)


def one_of(kinds: dict[str, tuple[dict[str, Schema], tuple[str, ...]]]) -> Schema:
    """An object whose ``type`` says which other fields it has; ``kinds`` maps a type to (fields, required ones)."""
    return {
        "type": "object",
        "oneOf": [
            fields({"type": {"type": "string", "const": kind}, **properties}, ("type", *required))
            for kind, (properties, required) in kinds.items()
        ],
    }


_SHEET = {"sheet": text("name of the tab")}
_RANGE = {**_SHEET, "range": text("e.g. A1:C10")}
_CELL = {**_SHEET, "cell": text("e.g. B7")}
_BOUNDS = ("sheet", "range")

EDIT_SPREADSHEET: Schema = one_of(
    {
        "set_cell": ({**_CELL, "value": value()}, ("cell", "value")),
        "append_rows": ({**_SHEET, "rows": grid("rows below the last used one")}, ("sheet", "rows")),
        "rename_sheet": ({**_SHEET, "new_name": text("new name")}, ("sheet", "new_name")),
        "format_cells": (
            {
                **_RANGE,
                "font_name": text("font"),
                "font_size": number("points", minimum=1, maximum=400),
                "font_bold": flag("bold"),
                "font_italic": flag("italic"),
                "font_underline": flag("underlined"),
                "font_color": text("RRGGBB"),
                "fill_color": text("RRGGBB"),
                "fill_pattern": text("pattern, solid when left out"),
                "horizontal_alignment": text("horizontal", enum=["left", "center", "right", "justify", "general"]),
                "vertical_alignment": text("vertical", enum=["top", "center", "bottom"]),
                "wrap_text": flag("wrap long texts"),
                "border_style": text("style", enum=["thin", "medium", "thick", "dashed", "dotted", "double", "hair"]),
                "border_color": text("RRGGBB"),
                "border_sides": words("left, right, top, bottom; all when left out"),
            },
            _BOUNDS,
        ),
        "merge_cells": (_RANGE, _BOUNDS),
        "unmerge_cells": (_RANGE, _BOUNDS),
        "set_column_width": (
            {**_SHEET, "column": text("letter"), "width": number("characters", minimum=0, maximum=255)},
            ("sheet", "column", "width"),
        ),
        "set_row_height": (
            {**_SHEET, "row": integer("row from 1", minimum=1), "height": number("points", minimum=0, maximum=409)},
            ("sheet", "row", "height"),
        ),
        "freeze_panes": ({**_SHEET, "cell": text("first cell that scrolls; none unfreezes")}, ("sheet",)),
        "add_named_range": ({"name": text("name"), **_RANGE}, ("name", "sheet", "range")),
        "delete_named_range": ({"name": text("name")}, ("name",)),
        "add_data_validation": (
            {
                **_RANGE,
                "validation_type": text(
                    "kind", enum=["list", "whole", "decimal", "date", "time", "textLength", "custom"]
                ),
                "operator": text("e.g. between, equal, greaterThan"),
                "formula1": text('list as "a,b", first bound or formula'),
                "formula2": text("second bound"),
                "allow_blank": flag("empty cells pass"),
                "show_error_message": flag("refuse other values"),
                "error_title": text("title of the refusal"),
                "error_message": text("text of the refusal"),
                "show_input_message": flag("show a hint"),
                "input_title": text("title of the hint"),
                "input_message": text("text of the hint"),
            },
            (*_BOUNDS, "validation_type"),
        ),
        "add_conditional_formatting": (
            {
                **_RANGE,
                "rule_type": text(
                    "kind",
                    enum=["cellIs", "formula", "colorScale", "dataBar", "top10", "containsText", "duplicateValues"],
                ),
                "operator": text("for cellIs, e.g. greaterThan"),
                "formula": text("value or formula"),
                "formula2": text("second bound of between"),
                "font_color": text("RRGGBB"),
                "fill_color": text("RRGGBB"),
                "font_bold": flag("bold"),
                "font_italic": flag("italic"),
                "color_scale_colors": words("two or three colours"),
                "data_bar_color": text("RRGGBB"),
                "rank": integer("for top10", minimum=1),
                "percent": flag("rank is a percentage"),
                "text": text("for containsText"),
            },
            (*_BOUNDS, "rule_type"),
        ),
        "set_auto_filter": ({**_SHEET, "range": text("e.g. A1:C10; the used range when left out")}, ("sheet",)),
        "set_number_format": ({**_RANGE, "format": text("e.g. #,##0.00")}, (*_BOUNDS, "format")),
        "add_image": (
            {
                **_CELL,
                "image_path": text("image"),
                "width": integer("pixels", minimum=1),
                "height": integer("pixels", minimum=1),
            },
            ("sheet", "image_path", "cell"),
        ),
    }
)
"""The operations of ``edit_spreadsheet``."""

_INDEX = {"index": integer("slide from 0", minimum=0)}
_SPOT = {**_INDEX, "placeholder": text("part", default="body", enum=["body", "left", "right"])}
_TEXT_SPOT = {
    **_INDEX,
    "placeholder": text("part", enum=["title", "body", "left", "right"]),
    "paragraph_index": integer("paragraph from 0; all when left out", minimum=0),
    "run_index": integer("run from 0; all when left out", minimum=0),
}
_TABLE_SPOT = {
    **_INDEX,
    "table_idx": integer("table of the slide from 0", minimum=0),
    "row": integer("row from 0", minimum=0),
    "column": integer("column from 0", minimum=0),
}
_FONT = {
    "bold": flag("bold"),
    "italic": flag("italic"),
    "underline": flag("underlined"),
    "font_size": number("points", minimum=1, maximum=400),
    "font_color": text("RRGGBB"),
}
_TABLE_NEED = ("index", "table_idx", "row", "column")

EDIT_SLIDES: Schema = one_of(
    {
        "update_slide_title": ({**_INDEX, "title": text("new title")}, ("index", "title")),
        "update_slide_subtitle": ({**_INDEX, "subtitle": text("new subtitle")}, ("index", "subtitle")),
        "set_bullets": ({**_SPOT, "items": words("bullet points")}, ("index", "items")),
        "append_bullets": ({**_SPOT, "items": words("bullet points")}, ("index", "items")),
        "clear_placeholder": (_SPOT, ("index",)),
        "replace_text": (
            {"search": text("words to replace"), "replace": text("new words"), "match_case": flag("capitals matter")},
            ("search", "replace"),
        ),
        "append_table": (
            {**_SPOT, "rows": many(many({"type": "string"}, "row"), "rows"), "header": flag("first row is a header")},
            ("index", "rows"),
        ),
        "update_table_cell": ({**_TABLE_SPOT, "text": text("new text")}, (*_TABLE_NEED, "text")),
        "delete_slide": (_INDEX, ("index",)),
        "duplicate_slide": ({**_INDEX, "position": text("where", enum=["after", "end"])}, ("index",)),
        "set_notes": ({**_INDEX, "notes": text("speaker's notes")}, ("index", "notes")),
        "apply_text_formatting": (
            {
                **_TEXT_SPOT,
                **_FONT,
                "font_name": text("font"),
                "alignment": text("alignment", enum=["left", "center", "right", "justify"]),
            },
            ("index", "placeholder"),
        ),
        "add_hyperlink": ({**_TEXT_SPOT, "url": text("address")}, ("index", "placeholder", "url")),
        "format_table_cell": ({**_TABLE_SPOT, **_FONT, "bg_color": text("RRGGBB")}, _TABLE_NEED),
    }
)
"""The operations of ``edit_slides``."""
