"""Word trees as lines and facts, and the way from an address to an element of python-docx's tree."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

from .workspace import Refused, Workspace


def opened(workspace: Workspace, file_path: str) -> tuple[bytes, str, Any]:
    """Bytes, name and tree of a Word file."""
    from officedocs import open_document

    data, name = workspace.read(file_path)
    if name.rpartition(".")[2].lower() not in ("docx", "docm", "dotx", "dotm", "doc"):
        raise Refused(f"{file_path} is no Word document")
    return data, name, open_document(data, name)


def content_lines(document: Any) -> list[str]:
    """One line a block in reading order: address, what it is, text; tables a line per row."""
    lines: list[str] = []
    for node in document.nodes:
        if node.kind == "body":
            for block in node.children:
                lines += _block_lines(block)
        else:
            lines += _block_lines(node)
    return lines


def _block_lines(node: Any) -> list[str]:
    if node.kind == "table":
        facts = f"{node.address} table {node.attributes.get('rows')} x {node.attributes.get('columns')}"
        return [facts, *(f"  {row.address}: {_cells(row)}" for row in node.children if row.kind == "row")]
    if node.kind in ("header", "footer", "footnote", "endnote", "comment", "textbox"):
        return [f"{node.address} {node.kind}: {_below(node)}"]
    if node.kind == "section":
        return [f"{node.address} section {json.dumps(dict(node.attributes), default=str)}"]
    facts = node.attributes
    word = f"heading {facts['heading']}" if facts.get("heading") else str(facts.get("style") or node.kind)
    extra = "".join(f" [{child.kind} {child.address}]" for child in node.children if child.kind in SHOWN)
    return [f"{node.address} {word}: {node.text}{extra}"]


SHOWN = ("image", "textbox", "change", "comment")
"""Kinds of nodes in a paragraph that its line names."""


def _cells(row: Any) -> str:
    return json.dumps([_below(cell) for cell in row.children], ensure_ascii=False)


def _below(node: Any) -> str:
    texts = [node.text] if node.text else []
    texts += [_below(child) for child in node.children]
    return "\n".join(text for text in texts if text)


def overview(document: Any) -> dict[str, Any]:
    """What a document is made of, with addresses."""
    nodes = list(document.walk())
    texts = [node.text for node in nodes if node.text]
    return {
        "file": document.name,
        "metadata": dict(document.metadata),
        "words": sum(len(text.split()) for text in texts),
        "paragraphs": sum(node.kind == "paragraph" for node in nodes),
        "headings": [
            {"address": node.address, "level": node.attributes["heading"], "text": node.text}
            for node in nodes
            if node.attributes.get("heading")
        ],
        "tables": [{"address": node.address, **node.attributes} for node in nodes if node.kind == "table"],
        "images": [
            {"annotation": f"image{at}", "address": node.address, **node.attributes}
            for at, node in enumerate(node for node in nodes if node.kind == "image")
        ],
        "sections": [{"address": node.address, **node.attributes} for node in nodes if node.kind == "section"],
        "comments": sum(node.kind == "comment" for node in nodes),
        "tracked_changes": sum(node.kind == "change" for node in nodes),
        "warnings": list(document.warnings),
    }


def readback(workspace: Workspace, file_path: str) -> str:
    """What a saved document holds, its first 60 blocks."""
    document = opened(workspace, file_path)[2]
    lines = content_lines(document)
    more = [f"[{len(lines) - 60} more blocks; documents_read_document_content shows them]"] if len(lines) > 60 else []
    return "\n".join([f"saved {file_path}; read back:", *lines[:60], *more])


class Opened:
    """A Word file in python-docx, with officedocs' addresses.

    Args:
        workspace: of the call.
        file_path: as the agent wrote it.
    """

    def __init__(self, workspace: Workspace, file_path: str) -> None:
        from docx import Document

        self.workspace, self.file_path = workspace, file_path
        self.data, self.name, self.document = opened(workspace, file_path)
        self.file = Document(BytesIO(self.data))

    def element(self, address: str) -> Any:
        """The element of an address in python-docx's tree. Raises an officedocs error, or Refused outside the body."""
        from officedocs.docx.reader import read_places

        reading = read_places(self.data, self.name)
        place = reading.walk.places.get(address)
        if place is None:
            self.document.find(address)
            raise Refused(f"{address} cannot be formatted; give a paragraph or cell")
        root = reading.roots[place.part]
        at = next(n for n, one in enumerate(root.iter()) if one is place.element)
        for part in self.file.part.package.iter_parts():
            if str(part.partname).lstrip("/") == place.part.lstrip("/") and hasattr(part, "element"):
                return list(part.element.iter())[at]
        raise Refused(f"{address} lies in {place.part}, which cannot be changed here")

    def paragraphs(self, address: str) -> list[Any]:
        """The paragraphs at or below an address, as python-docx has them. Raises Refused when there is none."""
        from docx.text.paragraph import Paragraph

        element = self.element(address)
        tag = str(element.tag).rpartition("}")[2]
        found = [element] if tag == "p" else [one for one in element.iter() if str(one.tag).endswith("}p")]
        if not found:
            raise Refused(f"{address} holds no paragraph")
        return [Paragraph(one, self.file._body) for one in found]

    def save(self) -> None:
        """Write the file back."""
        buffer = BytesIO()
        self.file.save(buffer)
        self.workspace.write(self.workspace.file(self.file_path), buffer.getvalue())
