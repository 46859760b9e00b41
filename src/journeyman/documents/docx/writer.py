"""From a tree to a Word document: paragraphs, tables, headers, footers, hyperlinks, sections and properties.

What cannot be written is refused by name, never left out silently. The same tree gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from io import BytesIO
from typing import Any

from ..errors import Unsupported
from ..node import Document, Node
from ..opc import repacked
from .blocks import TWENTIETHS
from .names import W14, R, w
from .text import text_elements

RUN_TOGGLES = {
    "bold": "bold",
    "italic": "italic",
    "strike": "strike",
    "caps": "all_caps",
    "small_caps": "small_caps",
    "hidden": "hidden",
}
PARAGRAPH_KEYS = {"style", "heading", "alignment", "runs", "position", "list"}
"""``heading`` and ``list`` are those of the style; ``position`` is where the paragraph stands."""
RUN_KEYS = {*RUN_TOGGLES, "text", "underline", "color", "size_pt", "font", "link"}
METADATA = {
    "title": "title",
    "subject": "subject",
    "author": "author",
    "keywords": "keywords",
    "description": "comments",
    "category": "category",
    "status": "content_status",
    "language": "language",
    "last_modified_by": "last_modified_by",
    "revision": "revision",
    "created_at": "created",
    "modified_at": "modified",
}
"""Key of ``Document.metadata`` -> property of python-docx."""


def write(document: Document) -> bytes:
    """The file of a tree. Raises Unsupported with the address of what cannot be written."""
    from docx import Document as new_document

    file = new_document()
    body = file.element.body
    for child in list(body):
        body.remove(child)
    _write_metadata(file.core_properties, document)
    for node in document.nodes:
        if node.kind == "body":
            _Writer(document.name, file, file.part).blocks(body, node.children)
    if file.sections:
        for node in document.nodes:
            if node.kind in ("header", "footer"):
                _write_margin(file, node, document.name)
    unknown = [node for node in document.nodes if node.kind not in ("body", "header", "footer")]
    if unknown:
        _refuse(document.name, unknown[0], f"a {unknown[0].kind}")
    out = BytesIO()
    file.save(out)
    return repacked(out.getvalue())


def _refuse(name: str, node: Node, what: str) -> None:
    raise Unsupported(name, f"{what} is not written", place=node.address, remedy="edit a file that has it")


def _write_margin(file: Any, node: Node, name: str) -> None:
    if node.attributes.get("pages") != ["default"]:
        _refuse(name, node, f"a {node.kind} on some pages only")
    margin = getattr(file.sections[0], node.kind)
    margin.is_linked_to_previous = False
    root = margin.part.element
    for child in list(root):
        root.remove(child)
    _Writer(name, file, margin.part).blocks(root, node.children)


def _write_metadata(properties: Any, document: Document) -> None:
    element = properties._element
    for child in list(element):
        element.remove(child)
    for key, text in document.metadata.items():
        if key not in METADATA:
            raise Unsupported(
                document.name, f"the property {key!r} is not written", remedy=f"known: {', '.join(METADATA)}"
            )
        value: Any = text
        if key.endswith("_at"):
            value = datetime.fromisoformat(text).replace(tzinfo=None)
        elif key == "revision":
            value = int(text)
        setattr(properties, METADATA[key], value)


class _Writer:
    """Writes the blocks of one story into its part."""

    def __init__(self, name: str, file: Any, part: Any) -> None:
        self.name, self.file, self.part = name, file, part
        self.styles = {style.element.name_val.lower(): style for style in file.styles}

    def blocks(self, holder: Any, nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            if node.kind == "paragraph":
                self.paragraph(holder, node)
            elif node.kind == "table":
                self.table(holder, node)
            elif node.kind == "section" and node is nodes[-1]:
                self.section(holder, node)
            else:
                _refuse(self.name, node, f"a {node.kind} here")

    def paragraph(self, holder: Any, node: Node) -> None:
        from docx.enum.text import WD_ALIGN_PARAGRAPH
        from docx.oxml import OxmlElement
        from docx.text.paragraph import Paragraph

        unknown = [*(set(node.attributes) - PARAGRAPH_KEYS), *(child.kind for child in node.children)]
        if unknown:
            _refuse(self.name, node, f"{sorted(unknown)[0]!r} of a paragraph")
        element = OxmlElement("w:p")
        holder.append(element)
        if node.address.startswith("para:"):
            element.set(f"{{{W14}}}paraId", node.address.removeprefix("para:"))
        paragraph = Paragraph(element, self.part)
        if "style" in node.attributes:
            paragraph.style = self.style(node, str(node.attributes["style"]))
        if "alignment" in node.attributes:
            paragraph.alignment = WD_ALIGN_PARAGRAPH.from_xml(node.attributes["alignment"])
        for run in node.attributes.get("runs", [{"text": node.text}] if node.text else []):
            self.run(paragraph, node, run)

    def run(self, paragraph: Any, node: Node, run: Mapping[str, Any]) -> None:
        from docx.oxml import OxmlElement
        from docx.shared import Pt, RGBColor
        from docx.text.run import Run

        unknown = set(run) - RUN_KEYS
        if unknown or run.get("underline", "single") != "single":
            _refuse(self.name, node, f"{sorted(unknown)[0] if unknown else 'this underline'!r} of a run")
        element, holder = OxmlElement("w:r"), paragraph._p
        if "link" in run:
            target, _, anchor = str(run["link"]).partition("#")
            holder = OxmlElement("w:hyperlink")
            if target:
                holder.set(f"{{{R}}}id", self.part.relate_to(target, f"{R}/hyperlink", is_external=True))
            if anchor:
                holder.set(w("anchor"), anchor)
            paragraph._p.append(holder)
        holder.append(element)
        font = Run(element, paragraph).font
        for key, name in RUN_TOGGLES.items():
            if run.get(key):
                setattr(font, name, True)
        if "underline" in run:
            font.underline = True
        if "color" in run:
            font.color.rgb = RGBColor.from_string(run["color"])
        if "size_pt" in run:
            font.size = Pt(run["size_pt"])
        if "font" in run:
            font.name = run["font"]
        element.extend(text_elements(run["text"]))

    def style(self, node: Node, name: str) -> Any:
        found = self.styles.get(name.lower())
        if found is None:
            _refuse(self.name, node, f"the style {name!r}")
        return found

    def table(self, holder: Any, node: Node) -> None:
        from docx.oxml.table import CT_Tbl
        from docx.shared import Inches
        from docx.table import Table

        rows, columns = len(node.children), int(node.attributes["columns"])
        element = CT_Tbl.new_tbl(rows, columns, Inches(6))
        holder.append(element)
        table = Table(element, self.file)
        if "style" in node.attributes:
            table.style = self.style(node, str(node.attributes["style"]))
        open_below = _rows_below(node)
        for row, tr in zip(node.children, list(element.tr_lst), strict=True):
            for tc in list(tr.tc_lst):
                tr.remove(tc)
            for cell in row.children:
                self.cell(tr, cell, open_below)

    def cell(self, row: Any, node: Node, merged: set[str]) -> None:
        from docx.oxml.table import CT_Tc

        if node.kind != "cell":
            _refuse(self.name, node, f"a {node.kind} of a row")
        element = CT_Tc.new()
        for child in list(element):
            if child.tag == w("p"):
                element.remove(child)
        row.append(element)
        if node.attributes.get("columns", 1) > 1:
            element.grid_span = node.attributes["columns"]
        if "merged_into" in node.attributes:
            element.vMerge = "continue"
        elif node.address in merged:
            element.vMerge = "restart"
        self.blocks(element, node.children)

    def section(self, holder: Any, node: Node) -> None:
        from docx.oxml import OxmlElement

        element = OxmlElement("w:sectPr")
        holder.append(element)
        facts = node.attributes
        if facts.get("begins", "nextPage") != "nextPage":
            _child(element, "type", val=facts["begins"])
        size = {key: facts.get(name) for key, name in (("w", "width_pt"), ("h", "height_pt"))}
        values = {key: str(round(one * TWENTIETHS)) for key, one in size.items() if one is not None}
        if "orientation" in facts:
            values["orient"] = facts["orientation"]
        if values:
            _child(element, "pgSz", **values)
        if "columns" in facts:
            _child(element, "cols", num=str(facts["columns"]))


def _child(element: Any, name: str, **attributes: str) -> None:
    from lxml import etree

    child = etree.SubElement(element, w(name))
    for key, text in attributes.items():
        child.set(w(key), text)


def _rows_below(table: Node) -> set[str]:
    """Addresses of cells that cells further down belong to."""
    return {
        cell.attributes["merged_into"]
        for row in table.children
        for cell in row.children
        if "merged_into" in cell.attributes
    }
