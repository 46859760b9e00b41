"""From the bytes of a PDF to its tree: pages, and in each its blocks in reading order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import Encrypted, UnreadableDocument
from ..node import Document, Node
from . import running
from .boxes import Box, Sheet, boxes_of, turn
from .extras import annotations_of, attachments_of, metadata_of
from .order import blocks, reads_leftward
from .paragraphs import Block, compounds_of, paragraphs
from .rulings import rulings_of, turn_ruling
from .tables import OPEN_REGIONS_PER_DOCUMENT, Table, open_tables, tables_of

MAX_PAGES = 2_000
"""Pages beyond are named in a warning and not read."""

MAX_OBJECTS_FOR_OPEN_TABLES = 5_000
"""Drawn pieces of a page above which it is not given to pdfplumber, which is slow on drawings."""

SCAN_SHARE = 0.5
"""Share of the page that images cover when the page is a scan."""

UNMAPPED_SHARE = 0.3
"""Share of characters without a meaning (private use, replacement) above which a page's text is not trusted."""

Region = tuple[float, float, float, float]


@dataclass
class Page:
    """One page while it is read; boxes are upright within their angle, tables within the main one."""

    number: int
    sheet: Sheet
    boxes: dict[int, list[Box]]
    main: int
    tables: list[Table]
    regions: list[Region]
    images: list[Region]
    extras: list[Node]
    n_unmapped: int = 0
    n_chars: int = 0
    is_cut: bool = False
    blocks: list[Block] = field(default_factory=list)
    angles: list[int] = field(default_factory=list)


def read_with_pdfium(data: bytes, name: str) -> Document:
    """The tree, see the package. Raises Encrypted, or UnreadableDocument for what pdfium cannot open."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        # pdfium keeps its last error from file to file, so its word counts only where the file agrees
        if "password" in str(error).lower() and b"/Encrypt" in data:
            raise Encrypted(name, "protected by a password", remedy="save it without a password") from error
        raise UnreadableDocument(name, "damaged pdf: it has no page that can be loaded") from error
    try:
        if len(document) < 1:
            raise UnreadableDocument(name, "damaged pdf: no page in it")
        form = _form_of(document)
        pages, broken = [], []
        for index in range(min(len(document), MAX_PAGES)):
            page = _page(document, index, form)
            if page is None:
                broken.append(index + 1)
            else:
                pages.append(page)
        if not pages:
            raise UnreadableDocument(name, f"damaged pdf: none of its {len(document)} pages can be loaded")
        _add_open_tables(data, pages)
        _arrange(pages)
        nodes = [_node(page, kinds) for page, kinds in zip(pages, _kinds(pages), strict=True)]
        warnings = list(_warnings(pages, broken, len(document)))
        return Document("pdf", name, (*nodes, *attachments_of(document)), metadata_of(document), tuple(warnings))
    finally:
        document.close()


def _form_of(document: Any) -> Any:
    if not document.get_formtype():
        return None
    document.init_forms()
    return document.formenv.raw if document.formenv else None


def _page(document: Any, index: int, form: Any) -> Page | None:
    """One page, or None when pdfium cannot load it."""
    from pypdfium2 import PdfiumError
    from pypdfium2.raw import FPDFPage_CountObjects

    try:
        page = document.get_page(index)
    except PdfiumError:
        return None
    try:
        sheet, found, is_cut = Sheet.of(page), list[Box](), False
        try:
            text_page = page.get_textpage()
        except PdfiumError:
            pass
        else:
            found, is_cut = boxes_of(text_page, sheet)
            text_page.close()
        rulings, images = rulings_of(page, sheet)
        groups: dict[int, list[Box]] = {}
        for box in found:
            groups.setdefault(box.angle, []).append(turn(box, box.angle, sheet.width, sheet.height))
        main = _main_angle(groups)
        turned = [turn_ruling(line, main, sheet.width, sheet.height) for line in rulings]
        tables, groups[main], regions = tables_of(groups.get(main, []), turned, sheet)
        extras = annotations_of(page, form, sheet, index + 1)
        is_plain = main == 0 and FPDFPage_CountObjects(page) <= MAX_OBJECTS_FOR_OPEN_TABLES
    finally:
        page.close()
    texts = [box.text for box in found]
    n_unmapped = sum(text.count("\ufffd") + sum("\ue000" <= c <= "\uf8ff" for c in text) for text in texts)
    n_chars = sum(map(len, texts))
    open_regions = regions if is_plain else []
    return Page(index + 1, sheet, groups, main, tables, open_regions, images, extras, n_unmapped, n_chars, is_cut)


def _main_angle(groups: dict[int, list[Box]]) -> int:
    """The direction in which most of a page's text is read, a multiple of 90 degrees."""
    letters = {angle: sum(len(box.text) for box in groups.get(angle, ())) for angle in (0, 90, 180, 270)}
    return max(letters, key=lambda angle: (letters[angle], -angle))


def _add_open_tables(data: bytes, pages: Sequence[Page]) -> None:
    """Give regions without vertical lines to pdfplumber, and take the text of the tables it finds out of the page."""
    wanted = [(page.number - 1, region) for page in pages for region in page.regions][:OPEN_REGIONS_PER_DOCUMENT]
    if not wanted:
        return
    found = open_tables(data, wanted)
    for page in pages:
        for region in page.regions:
            table = found.get((page.number - 1, region))
            if table is not None:
                page.tables.append(table)
                page.boxes[0] = [box for box in page.boxes[0] if not _holds(region, box)]


def _holds(region: Region, box: Box) -> bool:
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return region[0] - 1 <= x <= region[2] + 1 and region[1] - 1 <= y <= region[3] + 1


def _arrange(pages: Sequence[Page]) -> None:
    """Put blocks in reading order: the main direction with its tables first, then other text, the longest first."""
    compounds = {word for page in pages for group in page.boxes.values() for word in compounds_of(group)}
    for page in pages:
        sizes = Counter[float]()
        for group in page.boxes.values():
            for box in group:
                sizes[round(box.size, 1)] += len(box.text)
        body = max(sizes, key=lambda size: (sizes[size], size)) if sizes else 0.0
        page.tables.sort(key=lambda table: (table.box[1], table.box[0]))
        stand_ins = [
            Box(*table.box, base=table.box[1], size=1.0, angle=0, text="", table=number)
            for number, table in enumerate(page.tables, start=1)
        ]
        order = sorted(page.boxes, key=lambda angle: (angle != page.main, -len(page.boxes[angle]), angle))
        for angle in order:
            group = [*page.boxes[angle], *(stand_ins if angle == page.main else ())]
            leftward = reads_leftward(group)
            for block in blocks(group):
                for one in paragraphs(block, body, leftward, compounds):
                    page.blocks.append(_as_shown(one, angle, page.sheet))
                    page.angles.append(angle)


def _as_shown(block: Block, angle: int, sheet: Sheet) -> Block:
    """A block with its box as the page is shown, whatever way its text was turned to be read."""
    if angle not in (90, 180, 270):
        return block
    turned = (sheet.height, sheet.width) if angle in (90, 270) else (sheet.width, sheet.height)
    box = turn(Box(*block[:4], base=0.0, size=block.size, angle=0, text=""), 360 - angle, *turned)
    return block._replace(x0=box.x0, y0=box.y0, x1=box.x1, y1=box.y1)


def _kinds(pages: Sequence[Page]) -> list[list[str]]:
    return running.kinds([page.blocks for page in pages], [page.sheet.height for page in pages])


def _node(page: Page, kinds: Sequence[str]) -> Node:
    here, children, used = f"p{page.number}", list[Node](), Counter[str]()
    body = running.body_size(page.blocks)
    for block, kind, angle in zip(page.blocks, kinds, page.angles, strict=True):
        if block.table:
            table = page.tables[block.table - 1]._replace(box=(block.x0, block.y0, block.x1, block.y1))
            children.append(table.node(f"{here}/t{block.table}"))
            continue
        address = f"{here}@{block.x0:.0f},{block.y0:.0f},{block.x1:.0f},{block.y1:.0f}"
        used[address] += 1
        if used[address] > 1:
            address += f"#{used[address]}"
        attributes: dict[str, Any] = {"size": round(block.size, 1)}
        if angle:
            attributes["angle"] = angle
        if kind == "footnote":
            attributes["mark"] = (block.text.split(maxsplit=1)[0]).strip("().")[:4]
        if kind == "paragraph" and block.size > 1.15 * body and len(block.text) < 200:
            kind = "heading"
        children.append(Node(kind, address, block.text, attributes))
    children.extend(page.extras)
    attributes = {"width": round(page.sheet.width, 1), "height": round(page.sheet.height, 1)}
    if page.sheet.rotation:
        attributes["rotation"] = page.sheet.rotation
    if page.images:
        attributes["images"] = [[round(edge, 1) for edge in box] for box in page.images[:100]]
    state = _state(page)
    if state:
        attributes["text_layer"] = state
    return Node("page", here, attributes=attributes, children=tuple(children))


def _state(page: Page) -> str:
    """What is wrong with the text of a page; empty when nothing is."""
    if not page.n_chars:
        covered = sum(max(0.0, x1 - x0) * max(0.0, y1 - y0) for x0, y0, x1, y1 in page.images)
        is_scan = covered >= SCAN_SHARE * page.sheet.width * page.sheet.height
        return "none, scan" if is_scan else "none"
    return "unmapped" if page.n_unmapped > UNMAPPED_SHARE * page.n_chars else ""


def _warnings(pages: Sequence[Page], broken: Sequence[int], n_pages: int) -> Iterator[str]:
    said = {
        "none, scan": "no text layer, the page is a scanned image: its text needs OCR",
        "none": "no text layer",
        "unmapped": "the fonts do not say which letters they show: the text is not to be trusted",
    }
    for state, words in said.items():
        numbers = [page.number for page in pages if _state(page) == state]
        if numbers:
            yield f"pages {ranges(numbers)}: {words}" if len(numbers) > 1 else f"page {numbers[0]}: {words}"
    if broken:
        yield f"pages {ranges(broken)}: damaged, left out"
    cut = [page.number for page in pages if page.is_cut]
    if cut:
        yield f"pages {ranges(cut)}: more text than is read"
    if n_pages > MAX_PAGES:
        yield f"pages {MAX_PAGES + 1}-{n_pages}: not read, {MAX_PAGES} pages are the limit"


def ranges(numbers: Sequence[int]) -> str:
    """``1-3, 7`` of sorted numbers."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
