"""The operations of edit_slides."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from .deck_slides import Deck, placeholder, set_lines
from .deck_things import color_of, put_table
from .workspace import Refused

Operation = dict[str, Any]


def apply_operation(deck: Deck, operation: Operation) -> str:
    """Do one operation; returns what was done in words. Raises Refused."""
    return OPERATIONS[operation["type"]](deck, operation)


def _title(deck: Deck, operation: Operation) -> str:
    placeholder(deck.slide(operation["index"]), "title").text_frame.text = operation["title"]
    return "title set"


def _subtitle(deck: Deck, operation: Operation) -> str:
    placeholder(deck.slide(operation["index"]), "subtitle").text_frame.text = operation["subtitle"]
    return "subtitle set"


def _spot(deck: Deck, operation: Operation) -> Any:
    return placeholder(deck.slide(operation["index"]), operation.get("placeholder") or "body")


def _set_bullets(deck: Deck, operation: Operation) -> str:
    set_lines(_spot(deck, operation), operation["items"])
    return f"{len(operation['items'])} bullets set"


def _append_bullets(deck: Deck, operation: Operation) -> str:
    set_lines(_spot(deck, operation), operation["items"], appended=True)
    return f"{len(operation['items'])} bullets added"


def _clear(deck: Deck, operation: Operation) -> str:
    _spot(deck, operation).text_frame.clear()
    return "cleared"


def _paragraphs(deck: Deck) -> Iterator[Any]:
    """Every paragraph on every slide, in groups and tables too."""
    for slide in deck.file.slides:
        stack = list(slide.shapes)
        while stack:
            shape = stack.pop(0)
            if shape.shape_type == 6:  # MSO_SHAPE_TYPE.GROUP
                stack = [*shape.shapes, *stack]
            elif shape.has_text_frame:
                yield from shape.text_frame.paragraphs
            elif getattr(shape, "has_table", False):
                for row in shape.table.rows:
                    for cell in row.cells:
                        yield from cell.text_frame.paragraphs


def _replace(deck: Deck, operation: Operation) -> str:
    if not operation["search"]:
        raise Refused("search is empty")
    pattern = re.compile(re.escape(operation["search"]), 0 if operation.get("match_case") else re.IGNORECASE)
    count = 0
    for paragraph in _paragraphs(deck):
        text = "".join(run.text for run in paragraph.runs)
        new, found = pattern.subn(lambda _: operation["replace"], text)
        if not found:
            continue
        count += found
        inside = sum(len(pattern.findall(run.text)) for run in paragraph.runs)
        if inside == found:  # no hit crosses a run: formats stay where they are
            for run in paragraph.runs:
                run.text = pattern.sub(lambda _: operation["replace"], run.text)
        else:
            for at, run in enumerate(paragraph.runs):
                run.text = new if at == 0 else ""
    if not count:
        raise Refused(f"{operation['search']!r} does not occur")
    return f"{count} replaced"


def _append_table(deck: Deck, operation: Operation) -> str:
    slide = deck.slide(operation["index"])
    box = (0.5, 1.8, 9.0, 4.0)
    word = operation.get("placeholder") or "body"
    if word in ("left", "right"):
        box = (0.5 if word == "left" else 5.1, 1.8, 4.4, 4.0)
    put_table(slide, operation["rows"], bool(operation.get("header", True)), box)
    return "table added"


def _cell(deck: Deck, operation: Operation) -> Any:
    tables = [one.table for one in deck.slide(operation["index"]).shapes if getattr(one, "has_table", False)]
    if operation["table_idx"] >= len(tables):
        raise Refused(f"slide {operation['index']} has {len(tables)} tables")
    table = tables[operation["table_idx"]]
    rows, columns = len(table.rows), len(table.columns)
    if operation["row"] >= rows or operation["column"] >= columns:
        raise Refused(f"the table has {rows} rows and {columns} columns")
    return table.cell(operation["row"], operation["column"])


def _set_cell(deck: Deck, operation: Operation) -> str:
    cell = _cell(deck, operation)
    cell.text_frame.text = operation["text"]
    return f"cell is {cell.text_frame.text!r}"


def _delete(deck: Deck, operation: Operation) -> str:
    deck.delete(operation["index"])
    return f"{len(deck.file.slides)} slides are left"


def _duplicate(deck: Deck, operation: Operation) -> str:
    made = deck.duplicate(operation["index"])
    if operation.get("position", "after") == "after":
        deck.move(made, operation["index"] + 1)
        made = operation["index"] + 1
    return f"the copy is slide {made}"


def _notes(deck: Deck, operation: Operation) -> str:
    deck.slide(operation["index"]).notes_slide.notes_text_frame.text = operation["notes"]
    return "notes set"


def _runs(deck: Deck, operation: Operation) -> tuple[list[Any], list[Any]]:
    """(paragraphs, runs) that an operation means. Raises Refused."""
    paragraphs = list(_spot(deck, operation).text_frame.paragraphs)
    at = operation.get("paragraph_index")
    if at is not None:
        if at >= len(paragraphs):
            raise Refused(f"the placeholder has {len(paragraphs)} paragraphs")
        paragraphs = [paragraphs[at]]
    runs = [run for paragraph in paragraphs for run in paragraph.runs]
    number = operation.get("run_index")
    if number is not None:
        if number >= len(runs):
            raise Refused(f"there are {len(runs)} runs")
        runs = [runs[number]]
    if not runs:
        raise Refused("there is no text there")
    return paragraphs, runs


def _font(font: Any, operation: Operation) -> None:
    from pptx.util import Pt

    for key in ("bold", "italic", "underline"):
        if operation.get(key) is not None:
            setattr(font, key, operation[key])
    if operation.get("font_size") is not None:
        font.size = Pt(operation["font_size"])
    if operation.get("font_color"):
        font.color.rgb = color_of(operation["font_color"])
    if operation.get("font_name"):
        font.name = operation["font_name"]


def _format(deck: Deck, operation: Operation) -> str:
    from pptx.enum.text import PP_ALIGN

    paragraphs, runs = _runs(deck, operation)
    for run in runs:
        _font(run.font, operation)
    if operation.get("alignment"):
        for paragraph in paragraphs:
            paragraph.alignment = getattr(PP_ALIGN, operation["alignment"].upper())
    return f"{len(runs)} runs formatted"


def _link(deck: Deck, operation: Operation) -> str:
    _, runs = _runs(deck, operation)
    for run in runs:
        run.hyperlink.address = operation["url"]
    return f"{len(runs)} runs linked to {operation['url']}"


def _format_cell(deck: Deck, operation: Operation) -> str:
    cell = _cell(deck, operation)
    for paragraph in cell.text_frame.paragraphs:
        for run in paragraph.runs:
            _font(run.font, operation)
    if operation.get("bg_color"):
        cell.fill.solid()
        cell.fill.fore_color.rgb = color_of(operation["bg_color"])
    return "cell formatted"


OPERATIONS: dict[str, Callable[[Deck, Operation], str]] = {
    "update_slide_title": _title,
    "update_slide_subtitle": _subtitle,
    "set_bullets": _set_bullets,
    "append_bullets": _append_bullets,
    "clear_placeholder": _clear,
    "replace_text": _replace,
    "append_table": _append_table,
    "update_table_cell": _set_cell,
    "delete_slide": _delete,
    "duplicate_slide": _duplicate,
    "set_notes": _notes,
    "apply_text_formatting": _format,
    "add_hyperlink": _link,
    "format_table_cell": _format_cell,
}
"""Type of an operation -> what does it."""
