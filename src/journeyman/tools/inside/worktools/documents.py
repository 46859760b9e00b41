"""documents: Word files read by address, edited part by part; what officedocs cannot goes through python-docx."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

from . import word_pages, word_pictures
from .word_blocks import append_blocks, set_properties
from .word_views import content_lines, opened, overview, readback
from .workspace import Refused, Workspace

BLOCKS_PER_PAGE = 100
SUFFIXES = ("docx", "docm", "dotx", "dotm")


def create_document(
    workspace: Workspace,
    directory: str,
    file_name: str,
    content: Sequence[dict[str, Any]],
    metadata: dict[str, Any] | None = None,
) -> str:
    """A new document; the answer is its text with addresses as it was saved."""
    from docx import Document

    path = workspace.new_file(directory, file_name, ".docx")
    file = Document()
    append_blocks(file, content)
    set_properties(file.core_properties, {"author": "", "comments": "", **(metadata or {})})
    buffer = BytesIO()
    file.save(buffer)
    workspace.write(path, buffer.getvalue())
    return readback(workspace, workspace.shown(path))


def delete_document(workspace: Workspace, file_path: str) -> dict[str, Any]:
    """Remove the file."""
    path = workspace.file(file_path)
    if path.suffix.lower().lstrip(".") not in SUFFIXES:
        raise Refused(f"{file_path} is no Word document; it was left")
    workspace.remove(path)
    return {"deleted": workspace.shown(path), "exists": path.exists()}


def get_document_overview(workspace: Workspace, file_path: str) -> dict[str, Any]:
    """Headings, tables, images, sections, length."""
    return overview(opened(workspace, file_path)[2])


def read_document_content(workspace: Workspace, file_path: str, page_index: int = 0) -> str:
    """One line a block with its address; a page is 100 blocks."""
    document = opened(workspace, file_path)[2]
    lines = content_lines(document)
    pages = max(1, -(-len(lines) // BLOCKS_PER_PAGE))
    if page_index >= pages:
        raise Refused(f"{file_path} has {pages} pages of {BLOCKS_PER_PAGE} blocks, the last is {pages - 1}")
    part = lines[page_index * BLOCKS_PER_PAGE : (page_index + 1) * BLOCKS_PER_PAGE]
    facts = {"file": document.name, "page_index": page_index, "pages": pages, "blocks": len(lines)}
    warnings = [f"warning: {one}" for one in document.warnings]
    return "\n".join([json.dumps(facts, ensure_ascii=False), *part, *warnings])


def _edited(workspace: Workspace, file_path: str, changes: Sequence[dict[str, Any]]) -> str:
    """Apply changes through officedocs; one line each with what the saved file holds."""
    from officedocs import edit

    data, name, _ = opened(workspace, file_path)
    done = edit(data, name, changes)
    workspace.write(workspace.file(file_path), done.data)
    lines = [json.dumps(one.as_json(), ensure_ascii=False) for one in done.changed]
    return "\n".join(["saved; read back:", *lines, *(f"warning: {one}" for one in done.warnings)])


def _node(workspace: Workspace, file_path: str, identifier: str) -> Any:
    return opened(workspace, file_path)[2].find(identifier)


def _text_of(node: Any) -> str:
    from officedocs.docx import text_below

    return str(node.text or text_below(node))


def add_content_text(workspace: Workspace, file_path: str, identifier: str, text: str, position: str = "end") -> str:
    """Text in or beside a paragraph."""
    if position in ("before", "after"):
        change = {"op": "insert", "address": identifier, "text": text, "where": position}
        return _edited(workspace, file_path, [change])
    if identifier == "body":
        if position == "start":
            raise Refused("give the first paragraph's address and position before")
        return _edited(workspace, file_path, [{"op": "insert", "address": "body", "text": text}])
    old = _text_of(_node(workspace, file_path, identifier))
    new = f"{text}{old}" if position == "start" else f"{old}{text}"
    return _edited(workspace, file_path, [{"op": "set", "address": identifier, "text": new}])


def edit_content_text(workspace: Workspace, file_path: str, identifier: str, new_text: str) -> str:
    """The whole new text of a place."""
    return _edited(workspace, file_path, [{"op": "set", "address": identifier, "text": new_text}])


def delete_content_text(
    workspace: Workspace, file_path: str, identifier: str, scope: str = "content", collapse_whitespace: bool = False
) -> str:
    """Empty a place or remove it; empty paragraphs right beside it go with it if wanted."""
    document = opened(workspace, file_path)[2]
    node = document.find(identifier)
    changes: list[dict[str, Any]] = []
    if scope == "element":
        changes.append({"op": "delete", "address": identifier})
    else:
        changes.append({"op": "set", "address": identifier, "text": ""})
    if collapse_whitespace:
        body = next((one for one in document.nodes if one.kind == "body"), None)
        siblings = list(body.children) if body is not None else []
        at = next((n for n, one in enumerate(siblings) if one.address == node.address), None)
        for n in () if at is None else (at - 1, at + 1):
            if 0 <= n < len(siblings) and siblings[n].kind == "paragraph" and not _text_of(siblings[n]).strip():
                changes.append({"op": "delete", "address": siblings[n].address})
    return _edited(workspace, file_path, changes)


def comments(
    workspace: Workspace,
    file_path: str,
    action: str,
    identifier: str | None = None,
    text: str | None = None,
    author: str | None = None,
    comment_id: int | None = None,
) -> str:
    """Read, add or delete comments; every answer ends with the comments that are there now."""
    if action == "add":
        if not identifier or not text:
            raise Refused("comments with action add needs identifier and text")
        change = {"op": "comment", "address": identifier, "text": text, "author": author or "Author"}
        said = _edited(workspace, file_path, [change])
    elif action == "delete":
        if comment_id is None:
            raise Refused("comments with action delete needs comment_id")
        said = _edited(workspace, file_path, [{"op": "delete", "address": f"comment:{comment_id}"}])
    else:
        said = ""
    found = [one for one in opened(workspace, file_path)[2].walk() if one.kind == "comment"]
    listed = [
        json.dumps({"address": one.address, "text": _text_of(one), **one.attributes}, ensure_ascii=False)
        for one in found
    ]
    return "\n".join([*([said] if said else []), f"{len(found)} comments", *listed])


TOOLS: dict[str, Callable[..., Any]] = {
    "create_document": create_document,
    "delete_document": delete_document,
    "get_document_overview": get_document_overview,
    "read_document_content": read_document_content,
    "read_image": word_pictures.read_image,
    "add_content_text": add_content_text,
    "edit_content_text": edit_content_text,
    "delete_content_text": delete_content_text,
    "add_image": word_pictures.add_image,
    "modify_image": word_pictures.modify_image,
    "apply_formatting": word_pages.apply_formatting,
    "header_footer": word_pages.header_footer,
    "page_margins": word_pages.page_margins,
    "page_orientation": word_pages.page_orientation,
    "comments": comments,
}
