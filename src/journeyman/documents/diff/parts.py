"""What is compared as a whole: parts that no reader here interprets, and what a save writes about itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from ..errors import UnreadableDocument
from ..xlsx.book import Book, canonical
from ..xlsx.package import Package, child, local
from ..xlsx.reading import properties
from .entry import METADATA, OPAQUE, STYLE, Entry

INTERPRETED = frozenset({
    "officeDocument", "worksheet", "chartsheet", "styles", "theme", "sharedStrings", "calcChain", "core-properties",
    "extended-properties", "comments", "vmlDrawing", "drawing", "chart", "image", "table", "threadedComment", "person",
    "hyperlink", "printerSettings", "sheetMetadata", "thumbnail", "chartStyle", "chartColorStyle", "chartUserShapes",
    "themeOverride", "custom-properties", "metadata",
})  # fmt: skip
"""Kinds of parts that are compared by what they say, or that every writer makes anew."""


def opaque(package: Package) -> dict[str, str]:
    """Part -> digest, of parts that are reachable and not interpreted; XML by its content, not its bytes."""
    found: dict[str, str] = {}
    seen: set[str] = set()
    stack = [""]
    while stack:
        for relation in package.relations(stack.pop()):
            if relation.is_external or relation.target in seen or relation.target not in package:
                continue
            seen.add(relation.target)
            stack.append(relation.target)
            if relation.kind not in INTERPRETED:
                found[relation.target] = f"{relation.kind} {_digest(package, relation.target)}"
    return found


def _digest(package: Package, part: str) -> str:
    data = package.read(part)
    if "/externalLinks/" in part:
        targets = sorted(one.target for one in package.relations(part))
        names = sorted(one.get("val", "") for one in package.xml(part).iter() if local(one) == "sheetName")
        return f"{' '.join(targets)} {', '.join(names)}"
    if "/pivot" in part:
        return _pivot(package.xml(part))
    if part.endswith((".xml", ".vml")):
        try:
            data = canonical(package.xml(part)).encode()
        except UnreadableDocument:
            return hashlib.sha256(data).hexdigest()[:16]
    return hashlib.sha256(data).hexdigest()[:16]


def _pivot(root: Any) -> str:
    """Where a pivot table reads and stands and which fields it has; the copy of its source is not compared."""
    facts = [
        canonical(one) for one in root.iter() if local(one) in ("worksheetSource", "location", "rowFields", "colFields")
    ]
    facts += [one.get("name", "") for one in root.iter() if local(one) in ("cacheField", "dataField")]
    return hashlib.sha256(" ".join([root.get("name", ""), *facts]).encode()).hexdigest()[:16]


def compare_parts(a: Package, b: Package) -> Iterator[Entry]:
    """Opaque parts by content, whatever their names; a part of the same name and other content changed."""
    first, second = opaque(a), opaque(b)
    for part, digest in list(first.items()):
        twin = part if second.get(part) == digest else next((p for p, d in second.items() if d == digest), None)
        if twin is not None:
            del first[part], second[twin]
    for part in sorted(first.keys() | second.keys()):
        one, two = first.get(part), second.get(part)
        what = "part changed" if one and two else "part removed" if one else "part added"
        yield Entry(OPAQUE, what, f"part:{part}", one, two)


def compare_workbook_looks(a: Book, b: Book) -> Iterator[Entry]:
    """Default font and theme colours."""
    font_a, font_b = ({k: book.default_font.get(k) for k in ("font", "size")} for book in (a, b))
    if font_a != font_b and any(font_a.values()) and any(font_b.values()):
        yield Entry(STYLE, "default font", "workbook/font", font_a, font_b)
    one, two = _colors(a), _colors(b)
    if one and two and one != two:
        yield Entry(STYLE, "theme colours", "workbook/theme", one, two)


def _colors(book: Book) -> dict[str, str]:
    for relation in book.package.relations(book.workbook_part):
        if relation.kind == "theme" and relation.target in book.package:
            scheme = child(book.package.xml(relation.target), "themeElements", "clrScheme")
            if scheme is not None:
                return {
                    local(one): next((c.get("lastClr") or c.get("val", "") for c in one), "").upper() for one in scheme
                }
    return {}


def compare_metadata(a: Package, b: Package) -> Iterator[Entry]:
    """Document properties."""
    first, second = properties(a), properties(b)
    for key in sorted(first.keys() | second.keys()):
        if first.get(key) != second.get(key):
            yield Entry(METADATA, "property", f"property:{key}", first.get(key), second.get(key))
