"""Trees of presentations as text: a slide's title, shapes, tables, charts, images and notes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from .workspace import Refused, Workspace


def opened(workspace: Workspace, file_path: str) -> tuple[bytes, str, Any]:
    """Bytes, name and tree of a presentation."""
    from officedocs import open_document

    data, name = workspace.read(file_path)
    if name.rpartition(".")[2].lower() not in ("pptx", "pptm", "ppsx", "potx", "ppt"):
        raise Refused(f"{file_path} is no presentation")
    return data, name, open_document(data, name)


def shown_slides(document: Any, indexes: Sequence[int] | None, is_full: bool = False) -> str:
    """Some slides, or all, one line a thing."""
    slides = [node for node in document.nodes if node.kind == "slide"]
    wanted = range(len(slides)) if indexes is None else indexes
    lines = [json.dumps({"file": document.name, "slides": len(slides)}, ensure_ascii=False)]
    for at in wanted:
        slide = slides[at]
        facts = slide.attributes
        hidden = ", hidden" if facts.get("hidden") else ""
        lines.append(f"--- slide {at} ({facts.get('layout', '')}{hidden}): {facts.get('title', '')}")
        images = [0]
        for child in slide.children:
            lines += _lines(child, at, images, is_full)
    return "\n".join([*lines, *(f"warning: {one}" for one in document.warnings[:10])])


def _lines(node: Any, slide: int, images: list[int], is_full: bool) -> Iterator[str]:
    facts = dict(node.attributes)
    shown = {key: value for key, value in facts.items() if is_full or key in ("name", "placeholder", "type", "title")}
    head = f"{node.address} {node.kind} {json.dumps(shown, ensure_ascii=False, default=str)}"
    if node.kind == "table" or any(child.kind == "row" for child in node.children):
        yield head
        for row in node.children:
            yield f"  {json.dumps([cell.text for cell in row.children], ensure_ascii=False)}"
        return
    if node.kind == "picture":
        yield f"{head} [slide{slide}/image{images[0]}]"
        images[0] += 1
        return
    if node.kind == "series":
        yield f"  {node.address} {json.dumps({'name': node.text, **facts}, ensure_ascii=False, default=str)}"
        return
    yield f"{head}: {node.text}" if node.text else head
    for child in node.children:
        yield from _lines(child, slide, images, is_full)
