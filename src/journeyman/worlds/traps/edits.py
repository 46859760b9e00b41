"""Changes to planned documents, of the kinds that traps need."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from journeyman.worlds.content import Block, Book, Cell, Delimited, Paragraph, Prose, Sheet
from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Document


def revise_blocks(draft: Draft, path: str, change: Callable[[list[Block]], list[Block]]) -> None:
    """Change the blocks of a text document."""
    content = draft.plan.documents[path].content
    assert isinstance(content, Prose)
    draft.plan.revise(path, content.with_blocks(change(list(content.blocks))))


def revise_sheet(draft: Draft, path: str, name: str, change: Callable[[Sheet], Sheet]) -> None:
    """Change one sheet of a workbook."""
    content = draft.plan.documents[path].content
    assert isinstance(content, Book)
    sheets = tuple(change(sheet) if sheet.name == name else sheet for sheet in content.sheets)
    draft.plan.revise(path, replace(content, sheets=sheets))


def revise_rows(draft: Draft, path: str, change: Callable[[list[tuple[str, ...]]], Iterable[tuple[str, ...]]]) -> None:
    """Change the rows of a CSV file, header first."""
    content = draft.plan.documents[path].content
    assert isinstance(content, Delimited)
    draft.plan.revise(path, replace(content, rows=tuple(change(list(content.rows)))))


def with_cells(sheet: Sheet, cells: dict[tuple[int, int], Cell]) -> Sheet:
    """A sheet with some cells written or overwritten."""
    return replace(sheet, cells={**sheet.cells, **cells})


def last_row(sheet: Sheet) -> int:
    """Index of the last row that holds something."""
    return max(row for row, _ in sheet.cells)


def with_note(blocks: list[Block], index: int, note: str) -> list[Block]:
    """Blocks with a footnote added to the paragraph at ``index``."""
    block = blocks[index]
    assert isinstance(block, Paragraph)
    return [*blocks[:index], replace(block, notes=(*block.notes, note)), *blocks[index + 1 :]]


def one_of_kind(draft: Draft, kind: str) -> Document | None:
    """The only document of a kind, or None when there are none or several."""
    found = draft.plan.of_kind(kind)
    return found[0] if len(found) == 1 else None
