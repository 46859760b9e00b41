"""pdfs: text in reading order with addresses, search, pages and images as pictures, new files from blocks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from typing import Any

from .pdf_writing import write_pdf
from .workspace import Refused, Workspace

DRAW_SCALE = 2.0
"""Pixels per point of a drawn page: 144 dots per inch."""

MAX_PIXELS = 30_000_000


def _open(workspace: Workspace, file_path: str) -> tuple[bytes, str, Any]:
    from officedocs import open_document

    data, name = workspace.read(file_path)
    if not name.lower().endswith(".pdf"):
        raise Refused(f"{file_path} is no PDF")
    return data, name, open_document(data, name)


def _pages(document: Any) -> list[Any]:
    return [node for node in document.nodes if node.kind == "page"]


def create_pdf(
    workspace: Workspace,
    directory: str,
    file_name: str,
    content: Sequence[dict[str, Any]],
    metadata: dict[str, Any] | None = None,
    page_size: str = "letter",
) -> str:
    """A new PDF; the answer is what its pages hold when they are read again."""
    path = workspace.new_file(directory, file_name, ".pdf")
    workspace.write(path, write_pdf(content, metadata or {}, page_size))
    return f"saved {workspace.shown(path)}; read back:\n{read_pdf_pages(workspace, workspace.shown(path))}"


def read_pdf_pages(workspace: Workspace, file_path: str, pages: Sequence[int] | None = None) -> str:
    """A line a block with its address; images are named for read_image."""
    data, name, document = _open(workspace, file_path)
    found = _pages(document)
    wanted = list(pages) if pages else list(range(1, len(found) + 1))
    beyond = [number for number in wanted if not 1 <= number <= len(found)]
    if beyond:
        raise Refused(f"{file_path} has {len(found)} pages, no page {beyond[0]}; pages count from 1")
    images = _images(data, set(wanted))
    lines = [json.dumps({"file": name, "pages": len(found), **_brief(document.metadata)}, ensure_ascii=False)]
    for number in wanted:
        page = found[number - 1]
        layer = page.attributes.get("text_layer")
        lines.append(f"--- page {number}{f' (text layer: {layer})' if layer else ''}")
        lines += [line for node in page.children for line in _lines(node)]
        lines += [f"[image p{number}/image{at} {width} x {height}]" for at, width, height in images.get(number, ())]
    return "\n".join([*lines, *(f"warning: {one}" for one in document.warnings[:10])])


def _brief(metadata: Any) -> dict[str, Any]:
    return {key: metadata[key] for key in ("title", "author", "subject") if metadata.get(key)}


def _lines(node: Any) -> Iterator[str]:
    if node.kind == "table":
        yield f"{node.address} table"
        for row in node.children:
            yield f"  {json.dumps([cell.text for cell in row.children], ensure_ascii=False)}"
        return
    word = "" if node.kind == "paragraph" else f" ({node.kind})"
    if node.text:
        yield f"{node.address}{word} {node.text}"
    for child in node.children:
        yield from _lines(child)


def _images(data: bytes, pages: set[int] | None = None) -> dict[int, list[tuple[int, int, int]]]:
    """Page -> (number from 1, width, height in pixels) of its images; a page that cannot be looked at has none."""
    import pypdfium2

    found: dict[int, list[tuple[int, int, int]]] = {}
    try:
        file = pypdfium2.PdfDocument(data)
        for number in range(1, len(file) + 1):
            if pages is None or number in pages:
                objects = _image_objects(file[number - 1])
                found[number] = [(at, *one.get_px_size()) for at, one in enumerate(objects, start=1)]
    except Exception:  # the reader had its say already; images are an extra
        return found
    return found


def _image_objects(page: Any) -> list[Any]:
    import pypdfium2.raw as raw

    return [one for one in page.get_objects(max_depth=3) if one.type == raw.FPDF_PAGEOBJ_IMAGE]


def read_image(workspace: Workspace, file_path: str, annotation: str) -> dict[str, Any]:
    """An image by the name that read_pdf_pages gives it."""
    import pypdfium2

    data, _, document = _open(workspace, file_path)
    match = re.fullmatch(r"p(\d+)/image(\d+)", annotation.strip().strip("[]@"))
    known = [f"p{page}/image{at}" for page, images in _images(data).items() for at, _, _ in images]
    if match is None or match[0] not in known:
        shown = ", ".join(known[:20]) or "none"
        raise Refused(f"{file_path} has no image {annotation!r}; there are {shown}")
    page, at = int(match[1]), int(match[2])
    objects = _image_objects(pypdfium2.PdfDocument(data)[page - 1])
    buffer = BytesIO()
    objects[at - 1].get_bitmap().to_pil().convert("RGB").save(buffer, "PNG")
    return {"image": match[0], "pages": len(_pages(document)), **workspace.keep_image(buffer.getvalue(), annotation)}


def read_page_as_image(workspace: Workspace, file_path: str, page_number: int) -> dict[str, Any]:
    """A page drawn at 144 dots per inch."""
    import pypdfium2

    data, _, document = _open(workspace, file_path)
    count = len(_pages(document))
    if page_number > count:
        raise Refused(f"{file_path} has {count} pages, no page {page_number}; pages count from 1")
    page = pypdfium2.PdfDocument(data)[page_number - 1]
    width, height = page.get_size()
    scale = min(DRAW_SCALE, (MAX_PIXELS / max(width * height, 1)) ** 0.5)
    buffer = BytesIO()
    page.render(scale=scale).to_pil().convert("RGB").save(buffer, "PNG")
    return {"page_number": page_number, "pages": count, **workspace.keep_image(buffer.getvalue(), file_path)}


def search_pdf(
    workspace: Workspace,
    file_path: str,
    query: str,
    case_sensitive: bool = False,
    whole_word: bool = False,
    max_results: int = 100,
    context_chars: int = 50,
) -> str:
    """Hits in reading order: page, address, the words around."""
    _, name, document = _open(workspace, file_path)
    if not query.strip():
        raise Refused("the query is empty")
    words = r"\s+".join(re.escape(word) for word in query.split())
    pattern = re.compile(rf"\b{words}\b" if whole_word else words, 0 if case_sensitive else re.IGNORECASE)
    hits = []
    for number, page in enumerate(_pages(document), start=1):
        for address, text in _texts(page):
            for match in pattern.finditer(text):
                start, end = max(0, match.start() - context_chars), match.end() + context_chars
                hits.append({"page": number, "address": address, "text": text[start:end]})
    lines = [json.dumps(hit, ensure_ascii=False) for hit in hits[:max_results]]
    missing = [page.address for page in _pages(document) if page.attributes.get("text_layer")]
    notes = [f"warning: no text layer on {', '.join(missing[:10])}, which cannot be searched"] if missing else []
    return "\n".join([f"{len(hits)} hits for {query!r} in {name}", *lines, *notes])


def _texts(node: Any) -> Iterator[tuple[str, str]]:
    for child in node.children:
        if child.text:
            yield child.address, child.text
        yield from _texts(child)


TOOLS: dict[str, Callable[..., Any]] = {
    "create_pdf": create_pdf,
    "read_pdf_pages": read_pdf_pages,
    "read_image": read_image,
    "read_page_as_image": read_page_as_image,
    "search_pdf": search_pdf,
}
