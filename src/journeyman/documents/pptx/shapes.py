"""Shapes of a slide, recursively: groups, tables, charts, diagrams, pictures, whatever they are nested in.

Addresses: ``sh<id>`` with the shape's id in the file, which moving and editing keep; where a file uses an id twice the
second is ``sh<id>~2``. A cell is ``<table>/r1c2``, a series ``<chart>/series1``, a diagram's entry ``<diagram>/node1``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from ..errors import UnreadableDocument
from ..node import Node
from ..opc import Package
from .charts import chart_facts, series_nodes, series_of
from .names import DGM, EMU_PER_POINT, MC, a, c, local, number, p, r
from .text import body_text, paragraphs_of

KINDS = {"sp": "shape", "grpSp": "group", "graphicFrame": "object", "pic": "picture", "cxnSp": "connector"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands.

    Attributes:
        kind: of the node.
        part: name of the part.
        element: of the part's tree.
        slide: part of the slide.
    """

    kind: str
    part: str
    element: Any
    slide: str


@dataclass(slots=True)
class Walk:
    """One reading of a presentation.

    Attributes:
        package: of the file.
        places: address -> where.
        roots: part -> root element.
        warnings: for the document.
    """

    package: Package
    places: dict[str, Place] = field(default_factory=dict)
    roots: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def open(self, part: str) -> Any:
        """Root of a part; None with a warning when it is missing or damaged."""
        if part not in self.roots:
            try:
                self.roots[part] = self.package.xml(part)
            except UnreadableDocument as error:
                self.warnings.append(f"{part} is not read: {error.what}")
                return None
        return self.roots[part]

    def note(self, address: str, place: Place) -> str:
        """Remember a place; returns its address, made unique if the file uses an id twice."""
        unique, times = address, 2
        while unique in self.places:
            unique, times = f"{address}~{times}", times + 1
        self.places[unique] = place
        return unique


@dataclass(slots=True)
class Shapes:
    """Reads the shapes of one part of one slide.

    Attributes:
        walk: of the presentation.
        part: that holds the shapes.
        slide: part of the slide.
    """

    walk: Walk
    part: str
    slide: str

    def nodes(self, tree: Any, address: str) -> tuple[Node, ...]:
        """Nodes of the shapes in a tree or group, in order of drawing."""
        found: list[Node] = []
        for child in tree:
            if local(child) in KINDS:
                found.append(self.node(child, address))
            elif local(child) == "AlternateContent":
                choice = child.find(f"{{{MC}}}Choice")
                chosen = child.find(f"{{{MC}}}Fallback") if choice is None else choice
                found.extend(() if chosen is None else self.nodes(chosen, address))
        return tuple(found)

    def node(self, element: Any, address: str) -> Node:
        """One shape with what it holds."""
        properties = next((one for one in element.iter() if local(one) == "cNvPr"), None)
        shape_id = "0" if properties is None else properties.get("id") or "0"
        kind = KINDS[local(element)]
        place = self.walk.note(f"{address}/sh{shape_id}", Place(kind, self.part, element, self.slide))
        attributes = _facts(element, properties)
        text = ""
        children: tuple[Node, ...] = ()
        if kind == "group":
            children = self.nodes(element, place)
        elif kind == "object":
            kind, more, children = self.frame(element, place)
            attributes.update(more)
        elif kind == "picture":
            attributes.update(self.image(element))
        body = element.find(p("txBody"))
        if body is not None:
            text, paragraphs = body_text(body), paragraphs_of(body)
            attributes.update({"paragraphs": paragraphs} if paragraphs else {})
        if kind == "shape" and element.find(f"{p('spPr')}/{a('blipFill')}") is not None:
            attributes.update(self.image(element))
        if kind != self.walk.places[place].kind:
            self.walk.places[place] = Place(kind, self.part, element, self.slide)
        return Node(kind, place, text, attributes, children)

    def frame(self, element: Any, address: str) -> tuple[str, dict[str, Any], tuple[Node, ...]]:
        """Kind, attributes and children of a frame: a table, chart, diagram or embedded object."""
        table = next(element.iter(a("tbl")), None)
        if table is not None:
            return "table", {}, self.rows(table, address)
        chart = next(element.iter(c("chart")), None)
        if chart is not None:
            return self.chart(chart, address)
        relations = next(element.iter(f"{{{DGM}}}relIds"), None)
        if relations is not None:
            return "diagram", {}, self.diagram(relations.get(r("dm")) or "", address)
        embedded = next((one for one in element.iter() if local(one) == "oleObj"), None)
        facts = (
            {} if embedded is None else {"program": embedded.get("progId") or ""} | self.target(embedded.get(r("id")))
        )
        return "object", facts, ()

    def rows(self, table: Any, address: str) -> tuple[Node, ...]:
        """Rows of a table with their cells."""
        rows = []
        for row_number, row in enumerate(table.findall(a("tr")), start=1):
            place = self.walk.note(f"{address}/r{row_number}", Place("row", self.part, row, self.slide))
            cells = []
            for column, cell in enumerate(row.findall(a("tc")), start=1):
                at = self.walk.note(f"{place}c{column}", Place("cell", self.part, cell, self.slide))
                spans = (("columns", number(cell.get("gridSpan"))), ("rows", number(cell.get("rowSpan"))))
                attributes: dict[str, Any] = {key: span for key, span in spans if span and span > 1}
                if cell.get("hMerge") in ("1", "true") or cell.get("vMerge") in ("1", "true"):
                    attributes["merged"] = True
                body = cell.find(a("txBody"))
                paragraphs = [] if body is None else paragraphs_of(body)
                attributes.update({"paragraphs": paragraphs} if paragraphs else {})
                cells.append(Node("cell", at, body_text(body), attributes))
            rows.append(Node("row", place, "", {}, tuple(cells)))
        return tuple(rows)

    def chart(self, chart: Any, address: str) -> tuple[str, dict[str, Any], tuple[Node, ...]]:
        """A chart's facts and series."""
        part = self.walk.package.part_name(str(self.target(chart.get(r("id"))).get("target", "")))
        root = None if part is None else self.walk.open(part)
        if part is None or root is None:
            return "chart", {}, ()
        nodes = series_nodes(root, address)
        for node, series in zip(nodes, series_of(root), strict=True):
            self.walk.note(node.address, Place("series", part, series, self.slide))
        return "chart", chart_facts(root), nodes

    def diagram(self, relation: str, address: str) -> tuple[Node, ...]:
        """Entries of a diagram (SmartArt) that have text."""
        part = self.walk.package.part_name(str(self.target(relation).get("target", "")))
        root = None if part is None else self.walk.open(part)
        if part is None or root is None:
            return ()
        nodes: list[Node] = []
        for body in root.iter(f"{{{DGM}}}t"):
            if body_text(body).strip():
                place = self.walk.note(f"{address}/node{len(nodes) + 1}", Place("entry", part, body, self.slide))
                nodes.append(Node("entry", place, body_text(body)))
        return tuple(nodes)

    def image(self, element: Any) -> dict[str, Any]:
        """Target and digest of the image of a picture."""
        blip = next(element.iter(a("blip")), None)
        return {} if blip is None else self.target(blip.get(r("embed")) or blip.get(r("link")))

    def target(self, relation: str | None) -> dict[str, Any]:
        """Where a relationship leads, with the digest of what lies there."""
        found = self.walk.package.relationships(self.part).get(relation or "")
        if found is None:
            return {}
        part = None if found.external else self.walk.package.part_name(found.target)
        facts: dict[str, Any] = {"target": found.target}
        return facts if part is None else facts | {"sha256": sha256(self.walk.package.parts[part]).hexdigest()}


def _facts(element: Any, properties: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if properties is not None:
        names = (("name", "name"), ("alt", "descr"), ("title", "title"))
        facts.update({key: properties.get(source) for key, source in names if properties.get(source)})
        if properties.get("hidden") in ("1", "true"):
            facts["hidden"] = True
    holder = next((one for one in element[:1] if local(one).startswith("nv")), None)
    placeholder = None if holder is None else next(holder.iter(p("ph")), None)
    if placeholder is not None:
        facts["placeholder"] = placeholder.get("type") or "body"
        facts["placeholder_index"] = number(placeholder.get("idx")) or 0
    frame = position_of(element)
    if frame is not None:
        offset, extent = frame.find(a("off")), frame.find(a("ext"))
        for node, lengths in (
            (offset, (("x", "x_pt"), ("y", "y_pt"))),
            (extent, (("cx", "width_pt"), ("cy", "height_pt"))),
        ):
            for source, key in lengths:
                length = None if node is None else number(node.get(source))
                if length is not None:
                    facts[key] = round(length / EMU_PER_POINT, 3)
    return facts


def position_of(element: Any) -> Any:
    """The element with a shape's own position and size; None where they are inherited from the layout."""
    for holder in (p("spPr"), p("grpSpPr")):
        if (found := element.find(f"{holder}/{a('xfrm')}")) is not None:
            return found
    return element.find(p("xfrm"))
