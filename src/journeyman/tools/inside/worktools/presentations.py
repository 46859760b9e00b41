"""presentations: slides read by index with all that is on them, and changed through python-pptx."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

from .deck_edits import apply_operation
from .deck_slides import LAYOUTS, Deck, fill_slide
from .deck_things import add_image, add_shape, insert_chart, insert_table, modify_image, read_image
from .deck_views import opened, shown_slides
from .word_blocks import set_properties
from .workspace import Refused, Workspace


def create_deck(
    workspace: Workspace,
    directory: str,
    file_name: str,
    slides: Sequence[dict[str, Any]],
    metadata: dict[str, Any] | None = None,
) -> str:
    """A new presentation; the answer is its slides as they were saved."""
    from pptx import Presentation

    path = workspace.new_file(directory, file_name, ".pptx")
    file = Presentation()
    for at, slide in enumerate(slides):
        try:
            made = file.slides.add_slide(file.slide_layouts[LAYOUTS[slide["layout"]]])
            fill_slide(made, slide)
        except (Refused, ValueError) as error:
            raise Refused(f"slides[{at}]: {error}") from error
    set_properties(file.core_properties, {"author": "", "comments": "", **(metadata or {})})
    buffer = BytesIO()
    file.save(buffer)
    workspace.write(path, buffer.getvalue())
    return f"saved; read back:\n{read_completedeck(workspace, workspace.shown(path))}"


def delete_deck(workspace: Workspace, file_path: str) -> dict[str, Any]:
    """Remove the file."""
    path = workspace.file(file_path)
    if path.suffix.lower() not in (".pptx", ".pptm", ".ppsx", ".potx"):
        raise Refused(f"{file_path} is no presentation; it was left")
    workspace.remove(path)
    return {"deleted": workspace.shown(path), "exists": path.exists()}


def add_slide(
    workspace: Workspace,
    file_path: str,
    index: int | None = None,
    layout: str = "title_and_content",
    title: str | None = None,
    subtitle: str | None = None,
    bullets: Sequence[str] | None = None,
) -> str:
    """One more slide, at a position or last."""
    deck = Deck(workspace, file_path)
    count = len(deck.file.slides)
    position = count if index is None else index
    if position > count:
        raise Refused(f"{file_path} has {count} slides; index is at most {count}")
    made = deck.file.slides.add_slide(deck.layout(layout))
    wanted = {"title": title, "subtitle": subtitle, "bullets": {"items": list(bullets)} if bullets else None}
    fill_slide(made, {key: value for key, value in wanted.items() if value is not None})
    deck.move(count, position)
    return deck.saved(position)


def edit_slides(
    workspace: Workspace,
    file_path: str,
    operations: Sequence[dict[str, Any]],
    metadata: dict[str, Any] | None = None,
) -> str:
    """All operations or none; the answer is the slides that they touched, as saved."""
    deck = Deck(workspace, file_path)
    notes: list[str] = []
    for at, operation in enumerate(operations):
        try:
            notes.append(f"{at} {operation['type']}: {apply_operation(deck, operation)}")
        except (Refused, ValueError, IndexError, KeyError) as error:
            raise Refused(f"operation {at} ({operation['type']}): {error}; nothing was saved") from error
    set_properties(deck.file.core_properties, metadata or {})
    deck.save()
    touched = sorted({int(one["index"]) for one in operations if "index" in one})
    document = opened(workspace, file_path)[2]
    kinds = {one["type"] for one in operations}
    moves = kinds & {"delete_slide", "duplicate_slide"} or "replace_text" in kinds
    shown = None if moves else [one for one in touched if one < len(deck.file.slides)]
    return "\n".join(["saved; read back:", *notes, shown_slides(document, shown)])


def read_slides(workspace: Workspace, file_path: str, start: int = 0, end: int | None = None) -> str:
    """Slides from ``start`` to ``end``, both included."""
    document = opened(workspace, file_path)[2]
    count = sum(node.kind == "slide" for node in document.nodes)
    last = count - 1 if end is None else end
    if start >= count or last < start:
        raise Refused(f"{file_path} has {count} slides, 0 to {count - 1}; got {start} to {last}")
    return shown_slides(document, list(range(start, min(last, count - 1) + 1)))


def read_completedeck(workspace: Workspace, file_path: str) -> str:
    """Every slide."""
    return shown_slides(opened(workspace, file_path)[2], None)


def read_individualslide(workspace: Workspace, file_path: str, slide_index: int) -> str:
    """One slide with places and sizes."""
    document = opened(workspace, file_path)[2]
    count = sum(node.kind == "slide" for node in document.nodes)
    if slide_index >= count:
        raise Refused(f"{file_path} has {count} slides, 0 to {count - 1}; no slide {slide_index}")
    return shown_slides(document, [slide_index], is_full=True)


TOOLS: dict[str, Callable[..., Any]] = {
    "create_deck": create_deck,
    "delete_deck": delete_deck,
    "add_slide": add_slide,
    "edit_slides": edit_slides,
    "add_image": add_image,
    "modify_image": modify_image,
    "insert_chart": insert_chart,
    "insert_table": insert_table,
    "add_shape": add_shape,
    "read_slides": read_slides,
    "read_completedeck": read_completedeck,
    "read_individualslide": read_individualslide,
    "read_image": read_image,
}
