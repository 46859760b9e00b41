"""The zip container of an Office file as parts: what is not replaced stays byte-identical, in its place."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from ..container import members_of, parse_xml, relationships_part, resolved
from ..errors import MissingPart

CONTENT_TYPES = "[Content_Types].xml"
_TYPES = "{http://schemas.openxmlformats.org/package/2006/content-types}"
_RELATION = "{http://schemas.openxmlformats.org/package/2006/relationships}"
_ID = "id"


@dataclass(frozen=True, slots=True)
class Relation:
    """A link from one part to another: ``kind`` is the last word of its type; ``target`` a part, or a URL outside."""

    id: str
    kind: str
    target: str
    is_external: bool


class Package:
    """Parts by name, in the order of the container. State: the bytes of each part and which were replaced."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        self._parts: dict[str, bytes] = {}
        self._infos: dict[str, ZipInfo] = {}
        self._folded: dict[str, str] = {}
        self._relations: dict[str, tuple[Relation, ...]] = {}
        self.replaced: set[str] = set()
        for part, content, info in members_of(data, name):
            self._parts[part], self._infos[part] = content, info
            self._folded[part.lower()] = part

    def __contains__(self, part: str) -> bool:
        return part.lower() in self._folded

    def __iter__(self) -> Any:
        return iter(self._parts)

    def read(self, part: str) -> bytes:
        """The bytes of a part. Raises MissingPart."""
        found = self._folded.get(part.lower())
        if found is None:
            raise MissingPart(self.name, "the part is not in the container", place=part, remedy="save the file anew")
        return self._parts[found]

    def xml(self, part: str) -> Any:
        """The root element of a part. Raises MissingPart, or UnreadableDocument when it is no XML."""
        return parse_xml(self.read(part), self.name, part)

    def replace(self, part: str, data: bytes) -> None:
        """Put other bytes in the place of a part, or add one at the end."""
        found = self._folded.setdefault(part.lower(), part)
        if self._parts.get(found) != data:
            self._parts[found] = data
            self.replaced.add(found)
        self._relations.clear()

    def replace_xml(self, part: str, root: Any) -> None:
        """``replace`` with the serialised element."""
        from lxml import etree

        self.replace(part, etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True))

    def remove(self, part: str) -> None:
        """Drop a part, its relations and its content type."""
        found = self._folded.pop(part.lower(), None)
        if found is None:
            return
        del self._parts[found]
        self._infos.pop(found, None)
        self.replaced.add(found)
        self._relations.clear()
        root = self.xml(CONTENT_TYPES)
        for row in root.findall(f"{_TYPES}Override"):
            if row.get("PartName", "").lstrip("/").lower() == part.lower():
                root.remove(row)
                self.replace_xml(CONTENT_TYPES, root)

    def declare(self, part: str, content_type: str) -> None:
        """Give a new part its content type."""
        from lxml import etree

        root = self.xml(CONTENT_TYPES)
        etree.SubElement(root, f"{_TYPES}Override", PartName=f"/{part}", ContentType=content_type)
        self.replace_xml(CONTENT_TYPES, root)

    def relations(self, part: str) -> tuple[Relation, ...]:
        """What a part links to, in file order; empty when it links to nothing."""
        if part not in self._relations:
            path = relationships_part(part)
            rows = self.xml(path) if path in self else ()
            self._relations[part] = tuple(_relation(part, row) for row in rows if isinstance(row.tag, str))
        return self._relations[part]

    def relate(self, part: str, kind: str, target: str) -> str:
        """Link a part to another; returns the new relation's id. ``kind`` is the whole type URI."""
        from lxml import etree

        path = relationships_part(part)
        root = (
            self.xml(path)
            if path in self
            else etree.Element(f"{_RELATION}Relationships", nsmap={None: _RELATION[1:-1]})
        )
        taken = {row.get("Id") for row in root}
        new = next(f"rId{n}" for n in range(1, len(taken) + 2) if f"rId{n}" not in taken)
        etree.SubElement(root, f"{_RELATION}Relationship", Id=new, Type=kind, Target=f"/{target}")
        self.replace_xml(path, root)
        return new

    def to_bytes(self) -> bytes:
        """The container: kept parts with their own dates and order, new ones dated 1980, all deflated."""
        out = BytesIO()
        with ZipFile(out, "w", ZIP_DEFLATED) as archive:
            for part, data in self._parts.items():
                old = self._infos.get(part)
                info = ZipInfo(part, old.date_time if old else (1980, 1, 1, 0, 0, 0))
                info.compress_type = old.compress_type if old and old.compress_type == 0 else ZIP_DEFLATED
                info.external_attr = old.external_attr if old else 0
                archive.writestr(info, data)
        return out.getvalue()


def _relation(part: str, row: Any) -> Relation:
    target, is_external = row.get("Target", ""), row.get("TargetMode") == "External"
    kind = row.get("Type", "").rpartition("/")[2]
    return Relation(row.get("Id", ""), kind, target if is_external else resolved(part, target), is_external)


def local(element: Any) -> str:
    """The tag without its namespace; empty for comments and instructions."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def child(element: Any, *path: str) -> Any:
    """The first descendant along local names, or None."""
    for word in path:
        element = next((one for one in element if local(one) == word), None)
        if element is None:
            return None
    return element


def children(element: Any, word: str) -> list[Any]:
    """Children of this local name."""
    return [] if element is None else [one for one in element if local(one) == word]


def rel_id(element: Any, word: str = _ID) -> str:
    """The value of ``r:id``, in either namespace of Office files."""
    return next((value for key, value in element.attrib.items() if key.endswith(f"}}{word}")), "")
