"""Blocks of a story in reading order: paragraphs, tables, section breaks, each with its address and its element.

Addresses: ``para:<paraId>`` for a paragraph whose id is unique in the file, else its position in what holds it, e.g.
``body/p12``, ``body/t1/r2c3/p1``, ``header1/p1``; both find the paragraph. Columns of tables are those of the grid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..node import Node
from ..opc import Package
from .inline import Content, FieldState, chosen, content_of, runs_of
from .names import DELETED, INSERTED, KIND_OF_CHANGE, W14, local, value, w
from .pictures import pictures_of
from .styles import Styles

HOLDERS = {"sdt", "sdtContent", "customXml", "ins", "del", "moveFrom", "moveTo", "smartTag"}
"""Elements around blocks that readers do not see."""
TWENTIETHS = 20
"""Lengths are stored in twentieths of a point."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands.

    Attributes:
        part: name of the part.
        element: of the part's tree.
    """

    part: str
    element: Any


@dataclass(slots=True)
class Walk:
    """One reading of a package: what its stories share.

    Attributes:
        package, styles: of the file.
        places: address -> where; several addresses may name one place.
        warnings: for the document.
        anchors: comment id -> address of the paragraph where it begins, and the text it is about.
        seen_ids: paragraph ids given out so far.
        num_changes: tracked changes met so far.
    """

    package: Package
    styles: Styles
    places: dict[str, Place] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    anchors: dict[str, tuple[str, str]] = field(default_factory=dict)
    num_sections: int = 0
    has_hidden_text: bool = False
    num_changes: int = 0

    def note(self, address: str, part: str, element: Any) -> str:
        """Remember a place; returns its address, made unique if the file uses an id twice."""
        unique, number = address, 2
        while unique in self.places:
            unique, number = f"{address}~{number}", number + 1
        self.places[unique] = Place(part, element)
        return unique


@dataclass(slots=True)
class Story:
    """One run of blocks: body, header, footnote, ...

    Attributes:
        walk: what all stories share.
        part: that the story stands in.
        links: external targets of the part's relationships.
        state: open fields and comment ranges.
    """

    walk: Walk
    part: str
    links: dict[str, str]
    state: FieldState = field(default_factory=FieldState)

    def blocks(self, holder: Any, address: str) -> tuple[Node, ...]:
        """Nodes of everything that ``holder`` holds, addressed below ``address``."""
        nodes: list[Node] = []
        self._collect(holder, address, nodes, {"p": 0, "t": 0})
        return tuple(nodes)

    def _collect(self, holder: Any, address: str, nodes: list[Node], counts: dict[str, int]) -> None:
        for child in holder:
            name = local(child)
            if name == "p":
                counts["p"] += 1
                nodes.append(self.paragraph(child, f"{address}/p{counts['p']}"))
                section = child.find(f"{w('pPr')}/{w('sectPr')}")
                if section is not None:
                    nodes.append(self.section(section))
            elif name == "tbl":
                counts["t"] += 1
                nodes.append(self.table(child, f"{address}/t{counts['t']}"))
            elif name == "sectPr":
                nodes.append(self.section(child))
            elif name in HOLDERS:
                self._collect(child, address, nodes, counts)
            elif name == "AlternateContent":
                self._collect(chosen(child), address, nodes, counts)
            elif name == "altChunk":
                self.walk.warnings.append(f"{address}: an embedded file of another format is not read (altChunk)")

    def paragraph(self, element: Any, position: str) -> Node:
        """One paragraph with its text as accepted; text boxes, images and tracked changes are its children."""
        walk = self.walk
        para_id = element.get(f"{{{W14}}}paraId")
        address = f"para:{para_id}" if para_id else position
        if address in walk.places:
            address = position
        walk.places[address] = walk.places[position] = Place(self.part, element)
        content = content_of(element, self.links, self.state)
        properties = element.find(w("pPr"))
        attributes = self._attributes(content, properties)
        if address != position:
            attributes["position"] = position
        for comment, words in content.comments.items():
            known = walk.anchors.get(comment)
            quoted = "".join(words)
            walk.anchors[comment] = (
                (known[0], known[1] + "\n" + quoted) if known and quoted else known or (address, quoted)
            )
        children = [*self._changes(content), *pictures_of(self, content.drawings, address)]
        return Node("paragraph", address, content.accepted(), attributes, tuple(children))

    def _attributes(self, content: Content, properties: Any) -> dict[str, Any]:
        styles = self.walk.styles
        found: dict[str, Any] = {}
        if properties is not None:
            style_id = value(properties, "pStyle")
            if style_id:
                found["style"] = styles.names.get(style_id, style_id)
            if (level := styles.outline(properties)) is not None:
                found["heading"] = level
            if (listed := styles.list_of(properties)) is not None:
                found["list"] = listed
            if (alignment := value(properties, "jc")) is not None:
                found["alignment"] = alignment
            found.update(_mark_of(properties))
        runs = list(runs_of(content))
        if any(formats for _, formats in runs):
            found["runs"] = [{"text": text, **formats} for text, formats in runs]
            self.walk.has_hidden_text |= any("hidden" in formats for _, formats in runs)
        if any(piece.inserted is not None or piece.deleted is not None for piece in content.pieces):
            found["original"], found["marked"] = content.original(), content.marked()
        if content.fields:
            found["fields"] = [{"code": code, "result": result} for code, result in content.fields]
        for name in ("notes", "bookmarks"):
            if getattr(content, name):
                found[name] = getattr(content, name)
        if content.comments:
            found["comments"] = [f"comment:{comment}" for comment in content.comments]
        return found

    def _changes(self, content: Content) -> list[Node]:
        return [self.change(element) for element in content.changes]

    def change(self, element: Any) -> Node:
        """One tracked change. Its text is an attribute, because the paragraph's text has it already."""
        self.walk.num_changes += 1
        address = self.walk.note(f"change:{element.get(w('id'))}", self.part, element)
        texts = [one.text or "" for one in element.iter(w("t"), w("delText"))]
        parent = local(element.getparent())
        kind = KIND_OF_CHANGE.get(local(element), local(element))
        attributes = {"type": kind, "author": element.get(w("author")), "date": element.get(w("date"))}
        if texts:
            attributes["content"] = "".join(texts)
        if parent == "rPr" and local(element) != "rPrChange":
            attributes["of"] = "paragraph mark"
        elif parent in ("trPr", "tcPr"):
            attributes["of"] = {"trPr": "row", "tcPr": "cell"}[parent]
        return Node("change", address, "", {key: one for key, one in attributes.items() if one})

    def table(self, element: Any, address: str) -> Node:
        """One table; nested tables are among the children of their cells."""
        self.walk.places[address] = Place(self.part, element)
        rows: list[Node] = []
        open_merges: dict[int, str] = {}
        for row in within(element, "tr"):
            rows.append(self._row(row, f"{address}/r{len(rows) + 1}", open_merges))
        style = value(element, "tblPr/tblStyle")
        attributes: dict[str, Any] = {"rows": len(rows)}
        attributes["columns"] = max((row.attributes["columns"] for row in rows), default=0)
        if style:
            attributes["style"] = self.walk.styles.names.get(style, style)
        return Node("table", address, "", attributes, tuple(rows))

    def _row(self, element: Any, address: str, open_merges: dict[int, str]) -> Node:
        self.walk.places[address] = Place(self.part, element)
        cells: list[Node] = []
        column = 1 + _number(value(element, "trPr/gridBefore"))
        for cell in within(element, "tc"):
            width = max(1, _number(value(cell, "tcPr/gridSpan")))
            place = f"{address}c{column}"
            self.walk.places[place] = Place(self.part, cell)
            attributes: dict[str, Any] = {"columns": width} if width > 1 else {}
            merge = cell.find(f"{w('tcPr')}/{w('vMerge')}")
            if merge is None:
                open_merges.pop(column, None)
            elif merge.get(w("val")) == "restart" or column not in open_merges:
                open_merges[column] = place
            else:
                attributes["merged_into"] = open_merges[column]
            cells.append(Node("cell", place, "", attributes, self.blocks(cell, place)))
            column += width
        tracked = element.find(w("trPr"))
        changes = [] if tracked is None else [one for one in tracked if local(one) in ("ins", "del")]
        attributes = {"columns": column - 1}
        if changes:
            attributes["tracked"] = KIND_OF_CHANGE[local(changes[0])]
        return Node("row", address, "", attributes, (*cells, *(self.change(one) for one in changes)))

    def section(self, element: Any) -> Node:
        """The end of a section: page size in points, orientation, columns."""
        self.walk.num_sections += 1
        address = f"body/section{self.walk.num_sections}"
        self.walk.places.setdefault(address, Place(self.part, element))
        attributes: dict[str, Any] = {"begins": value(element, "type") or "nextPage"}
        for name, source in (("width_pt", "w"), ("height_pt", "h")):
            if (size := value(element, "pgSz", source)) and size.isdigit():
                attributes[name] = int(size) / TWENTIETHS
        if (orientation := value(element, "pgSz", "orient")) is not None:
            attributes["orientation"] = orientation
        if (columns := value(element, "cols", "num")) is not None:
            attributes["columns"] = _number(columns)
        return Node("section", address, "", attributes)


def within(element: Any, name: str) -> list[Any]:
    """Children of this name, also those inside content controls and tracked changes."""
    found: list[Any] = []
    for child in element:
        if local(child) == name:
            found.append(child)
        elif local(child) in HOLDERS:
            found.extend(within(child, name))
    return found


def _mark_of(properties: Any) -> dict[str, str]:
    """Whether the paragraph's end is a tracked change: then it was split off, or is to be joined with the next."""
    mark = properties.find(w("rPr"))
    names = set() if mark is None else {local(one) for one in mark}
    if names & DELETED:
        return {"mark": "deleted"}
    return {"mark": "inserted"} if names & INSERTED else {}


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() and len(text) < 6 else 0
