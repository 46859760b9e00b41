"""The three states of a document with tracked changes: as accepted, as it was, and with marks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ..node import Document, Node

View = Literal["accepted", "original", "marked"]
HIDDEN_ROWS = {"accepted": "deletion", "original": "insertion"}
JOINED = {"accepted": "deleted", "original": "inserted"}
"""View -> state of a paragraph's end that does not exist in it, so that the next paragraph follows without a break."""


def view(document: Document, state: View = "accepted") -> str:
    """The text of a Word document, one paragraph per line, cells of a row separated by tabs.

    Args:
        document: as read.
        state: ``accepted``, ``original``, or ``marked`` with ``[+inserted+]`` and ``[-deleted-]``.
    """
    return "".join(_lines(document.nodes, state)).rstrip("\n")


def _lines(nodes: tuple[Node, ...], state: View) -> Iterator[str]:
    for node in nodes:
        if node.kind == "paragraph":
            yield _text(node, state)
            yield "" if node.attributes.get("mark", "none") == JOINED.get(state) else "\n"
            yield from _lines(tuple(child for child in node.children if child.kind == "textbox"), state)
        elif node.kind == "row":
            if node.attributes.get("tracked") != HIDDEN_ROWS.get(state, ""):
                cells = [
                    "".join(_lines(one.children, state)).rstrip("\n") for one in node.children if one.kind == "cell"
                ]
                yield "\t".join(cells) + "\n"
        else:
            yield from _lines(node.children, state)


def _text(node: Node, state: View) -> str:
    text = node.text if state == "accepted" else str(node.attributes.get(state, node.text))
    if state == "marked" and (mark := node.attributes.get("mark")):
        return text + ("[-¶-]" if mark == "deleted" else "[+¶+]")
    return text


def text_below(node: Node) -> str:
    """The text of a node and of everything in it as accepted: cells by tabs, paragraphs and rows by line feeds."""
    return "".join(_lines((node,), "accepted")).rstrip("\n")
