"""Title, author and dates of an office container."""

from __future__ import annotations

from .errors import UnreadableDocument
from .opc import Package

NAMES = {
    "title": "title",
    "subject": "subject",
    "creator": "author",
    "keywords": "keywords",
    "description": "description",
    "category": "category",
    "contentStatus": "status",
    "language": "language",
    "lastModifiedBy": "last_modified_by",
    "revision": "revision",
    "created": "created_at",
    "modified": "modified_at",
}
"""Local name in the part of core properties -> key of ``Document.metadata``."""


def core_properties(package: Package) -> dict[str, str]:
    """The core properties that are set, as text; empty when the part is missing or damaged."""
    for part in package.related("", "core-properties")[:1]:
        try:
            root = package.xml(part)
        except UnreadableDocument:
            return {}
        found = {str(one.tag).rpartition("}")[2]: (one.text or "").strip() for one in root if isinstance(one.tag, str)}
        return {key: found[name] for name, key in NAMES.items() if found.get(name)}
    return {}
