"""Changes to planned documents, of the kinds that traps need."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from journeyman.worlds.content import (
    BAR,
    CLOSE,
    OPEN,
    Block,
    Book,
    Cell,
    Delimited,
    Paragraph,
    Prose,
    Revision,
    Sheet,
    unmarked,
)
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


def with_change(blocks: list[Block], fact: str, bait: str, *, author: str, day: str, comment: str = "") -> list[Block]:
    """Blocks in which the paragraph that states a fact has it replaced as a tracked change.

    Args:
        fact: what is stated now; afterwards only deleted text says it.
        bait: marked text that is inserted.
        author, day: of the change.
        comment: of the same author on the paragraph.
    """
    stated = re.compile(f"{OPEN}{re.escape(fact)}{BAR}([^{CLOSE}]*){CLOSE}")
    made: list[Block] = []
    for block in blocks:
        found = stated.search(block.text) if isinstance(block, Paragraph) else None
        if found is not None and isinstance(block, Paragraph):
            change = Revision(found[1], unmarked(bait)[0], author, day)
            note = (author, comment) if comment else block.comment
            block = replace(block, text=block.text.replace(found[0], bait), revisions=(change,), comment=note)
        made.append(block)
    return made


def refile(draft: Draft, path: str, suffix: str) -> str:
    """File a planned document in another format; its new path."""
    document = draft.plan.documents.pop(path)
    draft.plan.source_of.pop(path)
    return draft.plan.add(replace(document, path=f"{path.rpartition('.')[0]}.{suffix}")).path
