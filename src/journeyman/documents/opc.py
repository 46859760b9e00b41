"""Office containers: a zip of parts with relationships, rewritten part by part.

Promises: parts that an edit does not name keep their bytes, order, compression and time stamps. The strict variant of
the format is read as the transitional one and written back as what it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .container import members_of, parse_xml, part_of, relationships_part, resolved
from .errors import MissingPart, WrongKind

OFFICE_DOCUMENT = "/officeDocument"
PACKAGE_NS = "http://schemas.openxmlformats.org/package/2006/relationships"
R_NS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRICT = (
    (b"http://purl.oclc.org/ooxml/officeDocument/relationships", R_NS.encode()),
    (
        b"http://purl.oclc.org/ooxml/wordprocessingml/main",
        b"http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    ),
    (
        b"http://purl.oclc.org/ooxml/presentationml/main",
        b"http://schemas.openxmlformats.org/presentationml/2006/main",
    ),
    (b"http://purl.oclc.org/ooxml/spreadsheetml/main", b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"),
    (b"http://purl.oclc.org/ooxml/drawingml/", b"http://schemas.openxmlformats.org/drawingml/2006/"),
)
"""Namespaces of the strict variant -> of the transitional one."""


@dataclass(frozen=True, slots=True)
class Relationship:
    """One relationship of a part.

    Attributes:
        id: its id within the part.
        type: last word of its type URI, e.g. ``image``.
        target: name of a part of this container, or an address outside of it.
        external: whether ``target`` lies outside.
    """

    id: str
    type: str
    target: str
    external: bool


@dataclass(slots=True)
class Package:
    """The parts of one container.

    Attributes:
        name: file name as given, for messages.
        data: the container as it came.
        parts: part name without leading slash -> bytes, in the container's order.
    """

    name: str
    data: bytes
    parts: dict[str, bytes]
    _by_lower: dict[str, str] = field(default_factory=dict)
    _strict: set[str] = field(default_factory=set)
    _relationships: dict[str, dict[str, Relationship]] = field(default_factory=dict)

    def part_name(self, wanted: str) -> str | None:
        """The name under which the container holds this part, whatever its case; None where it has none."""
        wanted = wanted.replace("\\", "/").lstrip("/")
        return wanted if wanted in self.parts else self._by_lower.get(wanted.lower())

    def xml(self, part: str) -> Any:
        """Root element of a part. Raises MissingPart, TooLarge or UnreadableDocument with the part as place."""
        found = self.part_name(part)
        if found is None:
            raise MissingPart(self.name, "a required part is missing", place=part, remedy="save the file again")
        data = self.parts[found]
        if b"http://purl.oclc.org/ooxml/" in data:
            self._strict.add(found)
            for strict, transitional in STRICT:
                data = data.replace(strict, transitional)
        return parse_xml(data, self.name, part)

    def serialised(self, part: str, root: Any) -> bytes:
        """Bytes of a part after its tree was changed, in the variant of the format that it came in."""
        from lxml import etree

        data: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True)
        if self.part_name(part) in self._strict:
            for strict, transitional in STRICT:
                data = data.replace(transitional, strict)
        return data

    def relationships(self, part: str) -> dict[str, Relationship]:
        """Relationships of a part by id; the container's own for ``""``. Dangling targets are kept."""
        if part not in self._relationships:
            self._relationships[part] = self._read_relationships(part)
        return self._relationships[part]

    def related(self, part: str, kind: str) -> list[str]:
        """Names of existing parts that ``part`` is related to by this type, in order."""
        found = [r for r in self.relationships(part).values() if r.type == kind and not r.external]
        names = [self.part_name(relationship.target) for relationship in found]
        return [name for name in names if name is not None]

    def main(self, kinds: tuple[str, ...]) -> str:
        """The main part; its root element must be one of ``kinds`` (local names). Raises MissingPart or WrongKind."""
        from lxml import etree

        names = self.related("", "officeDocument")
        if not names:
            raise MissingPart(
                self.name, "the container names no main document", place="_rels/.rels", remedy="save the file again"
            )
        found = etree.QName(self.xml(names[0])).localname
        if found not in kinds:
            raise WrongKind(self.name, f"the main part is a {found!r}, not a {' or '.join(kinds)}", place=names[0])
        return names[0]

    def _read_relationships(self, part: str) -> dict[str, Relationship]:
        holder = relationships_part(part)
        if self.part_name(holder) is None:
            return {}
        found = {}
        for element in self.xml(holder):
            if not isinstance(element.tag, str) or not element.get("Id"):
                continue
            external = element.get("TargetMode") == "External"
            target = element.get("Target") or ""
            target = target if external else resolved(part, target)
            kind = (element.get("Type") or "").rpartition("/")[2]
            found[element.get("Id")] = Relationship(element.get("Id"), kind, target, external)
        return found


def open_package(data: bytes, name: str) -> Package:
    """Unpack a container. Raises Encrypted, WrongKind, TooLarge or UnreadableDocument."""
    parts = {part: content for part, content, _ in members_of(data, name)}
    return Package(name, data, parts, {part.lower(): part for part in parts})


def rewritten(package: Package, changed: Mapping[str, bytes | None]) -> bytes:
    """The container with some parts replaced, added or, where the value is None, removed; all else as it was."""
    from io import BytesIO
    from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

    changed = {package.part_name(part) or part: content for part, content in changed.items()}
    out = BytesIO()
    with ZipFile(BytesIO(package.data)) as source, ZipFile(out, "w", ZIP_DEFLATED) as target:
        for member in source.infolist():
            part = part_of(member)
            content = changed.pop(part, package.parts.get(part, b""))
            if content is not None:
                kept = ZipInfo(member.filename, member.date_time)
                kept.compress_type, kept.external_attr = member.compress_type, member.external_attr
                kept.comment, kept.create_system = member.comment, member.create_system
                target.writestr(kept, content)
        for part, content in changed.items():
            if content is not None:
                added = ZipInfo(part)
                added.compress_type = ZIP_DEFLATED
                target.writestr(added, content)
    return out.getvalue()


def repacked(data: bytes) -> bytes:
    """The same parts in the same order with one fixed time stamp, so that equal parts are equal bytes."""
    from io import BytesIO
    from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

    out = BytesIO()
    with ZipFile(BytesIO(data)) as source, ZipFile(out, "w", ZIP_DEFLATED) as target:
        for member in source.infolist():
            kept = ZipInfo(member.filename)
            kept.compress_type = ZIP_DEFLATED
            target.writestr(kept, source.read(member))
    return out.getvalue()
